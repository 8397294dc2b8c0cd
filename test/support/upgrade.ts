/** The folder of an earlier server: fixtures/upgrade-COMMIT, which scripts/lib/upgrade-fixture.ts makes. */
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { ROOT } from './root.ts';

/** What the devices of that server have. */
export interface Upgrade {
  /** PEM PKCS #8 of the one key of all its devices. */
  readonly key: string;
  /** PEM: a certificate that is valid, and one that is revoked. */
  readonly kept: string;
  readonly revoked: string;
  /** One-time passwords: unused, used up, used once of twice, revoked, and unused for the CA `lab`. */
  readonly tokens: Readonly<Record<'unused' | 'used' | 'twice' | 'dead' | 'forLab', string>>;
  /** Passwords of the requests in the queue of `lab`, by the name and the state of each; `generated` waits for a key, too. */
  readonly queued: Readonly<Record<'waiting' | 'approved' | 'rejected' | 'generated', string>>;
  /** Base64 of the DER of the last CRL of `devices`. */
  readonly crl: string;
}

/** A copy of the folder, with its database and its audit log in place. @returns its path */
export function copyOfUpgrade(commit: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-upgrade-'));
  cpSync(join(ROOT, 'fixtures', `upgrade-${commit}`), dir, { recursive: true });
  for (const name of ['data/est.db', 'data/audit.log'].map((file) => join(dir, file))) {
    writeFileSync(name, gunzipSync(readFileSync(`${name}.gz`)));
    rmSync(`${name}.gz`);
  }
  // Git keeps no modes; what is written here is for its owner only.
  for (const { name, parentPath } of readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  ))
    chmodSync(join(parentPath, name), 0o600);
  return dir;
}

/** What its devices have. */
export function readUpgrade(dir: string): Upgrade {
  const made: unknown = JSON.parse(readFileSync(join(dir, 'made.json'), 'utf8'));
  if (!isUpgrade(made)) throw new Error('made.json is no such file');
  return made;
}

function isUpgrade(value: unknown): value is Upgrade {
  return typeof value === 'object' && value !== null && 'kept' in value && 'tokens' in value && 'queued' in value;
}
