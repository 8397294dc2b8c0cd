import { inspect, isDeepStrictEqual } from 'node:util';
import { isTable } from './toml.ts';

/**
 * A secret of the configuration, loaded from a file or an environment variable. It never shows itself: JSON, string
 * conversion and `util.inspect` all give `[secret]`. Only {@link Secret.reveal} gives the bytes.
 */
export class Secret {
  readonly #bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes);
  }

  /** The bytes themselves; the caller neither changes nor logs them. */
  reveal(): Buffer {
    return this.#bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  equals(other: Secret): boolean {
    return this.#bytes.equals(other.#bytes);
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}

/** Whether two parts of a configuration are equal, secrets included. */
export function isSameConfig(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(revealed(one), revealed(other));
}

/** The same with comparable secrets. An inner table stands under `table`, so that no key of it can be mistaken for a secret. */
function revealed(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal() };
  if (Array.isArray(value)) return value.map(revealed);
  if (!isTable(value)) return value;
  const given = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return { table: Object.fromEntries(given.map(([name, inner]) => [name, revealed(inner)])) };
}
