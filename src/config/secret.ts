import { inspect } from 'node:util';

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
