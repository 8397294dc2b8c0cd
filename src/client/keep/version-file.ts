/** The files that stand in a version of a certificate's folder. */
import { isKeyUri } from '../token/key-uri.ts';

/** A file of a version: its name and what it holds. */
export interface VersionFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** Whether it holds the private key. */
  readonly secret: boolean;
}

/** @param key PEM, or the URI of a key in a token */
export const keyFile = (key: string): VersionFile =>
  isKeyUri(key)
    ? { name: 'key.uri', content: `${key.trim()}\n`, secret: false }
    : { name: 'key.pem', content: key, secret: true };
