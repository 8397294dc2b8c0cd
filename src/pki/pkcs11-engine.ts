/** libp11's engine for OpenSSL 3, by which TLS signs with a key in a PKCS#11 token. */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Linux distributions install it. */
export const PKCS11_ENGINES = [
  '/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so',
  '/usr/lib/aarch64-linux-gnu/engines-3/pkcs11.so',
  '/usr/lib64/engines-3/pkcs11.so',
  '/usr/lib/engines-3/pkcs11.so',
] as const;

/**
 * The engine reports the whole URI of a missing key, so the PIN must not be in it; pass it in an unlinked file.
 */
export function withPinFile<T>(pin: string, work: (source: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-pin-'));
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
