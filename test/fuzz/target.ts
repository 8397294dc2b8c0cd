/** What the fuzzer drives: one way into a parser of bytes from outside. */
import { DerError } from '../../src/pki/der/der.ts';
import { EstuaryError } from '../../src/errors.ts';

/** Larger bodies are refused before a parser sees them. */
export const MAX_LENGTH = 64 * 1024;

/** CPU milliseconds of this process that one input may take, measured three times before it is believed. */
export const SLOW = 100;

export interface Target {
  /** How inputs are changed: by element of DER, or by words and lines. */
  readonly grammar: 'der' | 'text';
  /** Words that mean something to the parser of a text. */
  readonly words?: readonly string[];
  /** Octets of the longest input that gets to the parser; {@link MAX_LENGTH} unless given. */
  readonly maxLength?: number;
  /** CPU milliseconds of this process that one input may take; {@link SLOW} unless given. */
  readonly milliseconds?: number;
  /** Inputs to begin with: one of every kind that the parser knows. They must not depend on random keys that `read` needs. */
  readonly seeds: () => Promise<readonly Buffer[]> | readonly Buffer[];
  /** Reads an input as the server does. What holds for every input may be checked here too: any `Error` is a finding. */
  readonly read: (input: Buffer) => unknown;
  /** Whether `read` may throw this: an error class that the parser declares. */
  readonly isRefusal: (error: unknown) => boolean;
  /** Stops its background services. */
  readonly stop?: () => Promise<void>;
}

export const isDerError = (error: unknown): boolean => error instanceof DerError;

/** A refusal of the client, not a failure of ours. */
export const isClientError = (error: unknown): boolean => error instanceof EstuaryError && error.status < 500;

/** The result of `read`, or undefined where it refuses; for readers that go on with what else there is. */
export async function unlessRefused<T>(
  read: () => T | Promise<T>,
  isRefusal: (error: unknown) => boolean,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}
