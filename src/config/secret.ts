import { isUtf8 } from 'node:buffer';
import { resolve } from 'node:path';
import { getSystemErrorMessage, inspect, isDeepStrictEqual } from 'node:util';
import { ContentError, readContent } from './content.ts';
import { isTable } from './problem.ts';

/**
 * A configured secret, from a file or an environment variable. JSON, string conversion and `util.inspect` give
 * `[secret]`; only {@link Secret.reveal} returns the bytes.
 */
export class Secret {
  readonly #bytes: Buffer;
  /** The key that says where it is, such as `pin_file`; empty: it is not configured. */
  readonly key: string;

  constructor(bytes: Uint8Array, key = '') {
    this.#bytes = Buffer.from(bytes);
    this.key = key;
  }

  /** The bytes; do not change or log them. */
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

/** Whether two parts of a configuration are equal, including secrets. */
export function isSameConfig(before: unknown, after: unknown): boolean {
  return isDeepStrictEqual(revealed(before), revealed(after));
}

/**
 * The same with comparable secrets. An inner table is wrapped in `table`, so that none of its keys can be mistaken for
 * a secret.
 */
function revealed(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal() };
  if (Array.isArray(value)) return value.map(revealed);
  if (!isTable(value)) return value;
  const given = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return { table: Object.fromEntries(given.map(([name, inner]) => [name, revealed(inner)])) };
}

/** Far above any key or password; a mistaken path to a device or a disk image must not fill the memory. */
const MAX_SECRET = 65536;

/** The base of relative paths, and the source of secrets. */
export interface Surroundings {
  /** Absolute path of the configuration file's folder. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The secret that an earlier reading found in a file, if it is still to be used. */
  readonly secretBefore?: (key: string, file: string) => Secret | undefined;
  /** Keeps a secret for the next reading. */
  readonly keepSecret?: (key: string, file: string, secret: Secret) => void;
}

export type SecretForm = 'secret' | 'bytes' | 'pin';

/** Loads `<key>_file`: its bytes, or its text without one line end. Returns the reason of a failure. */
export async function secretFromFile(file: string, form: SecretForm, where: Surroundings): Promise<Secret | string> {
  try {
    const bytes = await readContent(resolve(where.folder, file));
    return checked(form === 'bytes' ? bytes : withoutLineEnd(bytes), form, `the file ${file}`);
  } catch (error) {
    return `cannot read ${file}: ${errorCode(error)}`;
  }
}

/** Loads `<key>_env`. Returns the reason of a failure. */
export function secretFromEnv(name: string, form: SecretForm, where: Surroundings): Secret | string {
  const value = where.env[name];
  return value === undefined
    ? `the environment variable ${name} is not set`
    : checked(Buffer.from(value, 'utf8'), form, `the environment variable ${name}`);
}

function checked(bytes: Buffer, form: SecretForm, source: string): Secret | string {
  if (form === 'pin') return pin(bytes, source);
  if (bytes.length === 0) return `${source} is empty`;
  return bytes.length > MAX_SECRET ? `${source} is too long for a secret` : new Secret(bytes);
}

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');
/** What Node makes of octets in the environment that are not UTF-8. */
const REPLACEMENT = '\uFFFD';

function pin(given: Buffer, source: string): Secret | string {
  const bytes = given.subarray(given.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0);
  if (!isUtf8(bytes) || bytes.includes(REPLACEMENT) || bytes.includes(0)) return `${source} is not UTF-8 text`;
  return bytes.length > MAX_SECRET ? `${source} is too long for a PIN` : new Secret(bytes);
}

function withoutLineEnd(bytes: Buffer): Buffer {
  if (bytes.at(-1) !== 0x0a) return bytes;
  return bytes.subarray(0, bytes.at(-2) === 0x0d ? -2 : -1);
}

/** Why the system refused a file, in words. */
export function errorCode(error: unknown): string {
  if (error instanceof ContentError) return error.message;
  if (!(error instanceof Error && 'code' in error && 'errno' in error)) return 'unreadable';
  return WORDS[String(error.code)] ?? getSystemErrorMessage(Number(error.errno));
}

/** Where the system's own words are vague. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
};
