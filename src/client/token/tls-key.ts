/**
 * TLS with a key in a token: libp11's engine signs in Node's OpenSSL. Node has no other way to delegate a handshake
 * signature.
 */
import { existsSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { withPinFile } from '../../pki/pkcs11-engine.ts';
import { ClientError } from '../client-error.ts';
import type { TokenConfig } from '../config/schema.ts';
import { SYSTEM } from '../system.ts';

export interface TokenTlsKey {
  /** RFC 7512, without a PIN. */
  readonly uri: string;
  readonly token: TokenConfig;
  /** Read on use. */
  readonly pin: () => string;
}

/** @throws ClientError `KEY_UNUSABLE` */
export function tokenSecureContext(
  { uri, token, pin }: TokenTlsKey,
  options: Omit<SecureContextOptions, 'key'>,
): SecureContext {
  const engine = token.engine ?? SYSTEM.engines.find((path) => existsSync(path));
  if (engine === undefined)
    throw unusable(token, "libp11's engine is missing (on Debian, install libengine-pkcs11-openssl)");
  return withPinFile(pin(), (source) =>
    withEnvironment({ OPENSSL_ENGINES: dirname(engine), PKCS11_MODULE_PATH: token.module }, () => {
      try {
        return createSecureContext({
          ...options,
          privateKeyEngine: basename(engine, '.so'),
          privateKeyIdentifier: `${uri}?pin-source=file:${source}`,
        });
      } catch (error) {
        throw unusable(token, error instanceof Error ? error.message : String(error), error);
      }
    }),
  );
}

/** The engine reads both from the environment, which hooks must not see. */
function withEnvironment<T>(values: Readonly<Record<string, string>>, work: () => T): T {
  const former = Object.keys(values).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, values);
  try {
    return work();
  } finally {
    for (const [name, value] of former)
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
  }
}

const unusable = ({ label }: TokenConfig, why: string, cause?: unknown): ClientError =>
  new ClientError('local', 'KEY_UNUSABLE', `the token "${label}" does not work for TLS: ${why}`, { cause });
