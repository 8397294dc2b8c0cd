/**
 * TLS with a key in a token: libp11's engine signs in Node's OpenSSL. Node has no other way to delegate a handshake
 * signature.
 */
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { ClientError } from '../client-error.ts';
import type { TokenConfig } from '../config/client-config.ts';
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
  return withPin(pin(), (source) =>
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

/** The engine reports the whole URI of a missing key, so the PIN must not be in it; pass it in an unlinked file. */
function withPin<T>(pin: string, work: (source: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-client-'));
  let file: number;
  try {
    const path = join(folder, 'pin');
    writeFileSync(path, pin, { mode: 0o600, flag: 'wx' });
    file = openSync(path, 'r');
  } finally {
    rmSync(folder, { recursive: true });
  }
  try {
    return work(`/dev/fd/${file}`);
  } finally {
    closeSync(file);
  }
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
