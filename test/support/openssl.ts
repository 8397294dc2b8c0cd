/** The openssl command as an independent check. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from './folders.ts';

/** Runs openssl; throws with its stderr when it fails. */
export function openssl(args: readonly string[], input?: Uint8Array | string): Buffer {
  return execFileSync('openssl', args, { input, timeout: 60_000, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** The same, as text. */
export const opensslText = (args: readonly string[], input?: Uint8Array | string): string =>
  openssl(args, input).toString('utf8');

/** A new folder under the system's temporary one, and how to remove it. */
export function temporaryFolder(): { path: string; file: (name: string) => string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'estuary-'));
  return { path, file: (name) => join(path, name), remove: () => removeFolder(path) };
}

/** A new P-256 key in a file, and a certificate of it, self-signed unless the arguments name an issuer. */
export function certifyNewKey(key: string, certificate: string, args: readonly string[]): void {
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(['req', '-x509', ...newKey, '-keyout', key, '-out', certificate, ...args]);
}
