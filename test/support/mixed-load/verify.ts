/** Conditions that hold after a mixed load. */
import { join } from 'node:path';
import { runAny } from '../command.ts';
import { NODE, SERVER } from '../server-process.ts';
import { storedRows } from '../stored-rows.ts';
import type { MixedLoad } from './load.ts';
import { pause } from '../until.ts';

export interface Known {
  /** The database, where that is not the quickstart's. */
  readonly store?: string;
  /** Serial numbers that a CA says it has issued to this server. */
  readonly issued?: readonly string[];
}

interface Stored {
  readonly serial: string;
  readonly subject: string;
  readonly revoked: number;
}

/**
 * Looks into the store and the audit log of the server, which may go on: what is answered is stored and audited, a token has yielded one
 * certificate, nothing is open, and the chain is whole.
 *
 * @returns what is wrong, with what the book says went wrong before
 */
export async function wrongAfter(load: MixedLoad, { store, issued = [] }: Known = {}): Promise<string[]> {
  const wrong = [...load.book.problems];
  const rows = <Row extends object>(select: string): Promise<Row[]> => storedRows<Row>(load.estuary.dir, select, store);
  if (!(await isEmpty(() => rows('SELECT request_id FROM reservation')))) wrong.push('reservations stay open');
  const stored = await rows<Stored>(
    'SELECT serial, subject, CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END AS revoked FROM certificate',
  );
  const bySerial = new Map(stored.map((row) => [row.serial, row]));
  const certificatesOf = new Map<string, number>();
  for (const { subject } of stored) certificatesOf.set(subject, (certificatesOf.get(subject) ?? 0) + 1);
  for (const [serial, { name, once }] of load.book.certificates) {
    if (bySerial.get(serial)?.subject !== `CN=${name}`) wrong.push(`${name}: ${serial} was answered and is not stored`);
    if (once && certificatesOf.get(`CN=${name}`) !== 1 && !load.renewed.has(name))
      wrong.push(`${name}: one token, ${certificatesOf.get(`CN=${name}`)} certificates`);
  }
  for (const serial of load.book.revoked)
    if (bySerial.get(serial)?.revoked !== 1) wrong.push(`${serial}: its revocation was answered and is not stored`);
  for (const serial of issued) if (!bySerial.has(serial)) wrong.push(`a CA has issued ${serial}, which is not stored`);
  const count = async (what: string): Promise<number> =>
    (await rows<{ count: number }>(`SELECT count(*) AS count FROM audit WHERE ${what}`))[0]?.count ?? 0;
  const unaudited = stored.length - (await count("type = 'certificate.issued'"));
  // A record is on disk before its change: a process killed in between leaves a record ahead, and another record says so.
  if (unaudited > 0 || (unaudited < 0 && (await count("type = 'audit.recovered'")) === 0))
    wrong.push(`${stored.length} certificates are stored, ${stored.length - unaudited} are audited`);
  const config = join(load.estuary.dir, 'est.toml');
  const verdict = await runAny(NODE, [SERVER, 'audit', 'verify', '--config', config], {
    env: load.estuary.env,
    timeout: 600_000,
  });
  // Before it stands, where that took seconds, how far it had come.
  if (verdict.code !== 0 || !/^the audit log is intact/m.test(verdict.output)) wrong.push(verdict.output);
  return wrong;
}

/** What nobody waits for any more is closed in the background. */
async function isEmpty(rows: () => Promise<readonly object[]>): Promise<boolean> {
  for (let n = 0; n < 300; n++) {
    if ((await rows()).length === 0) return true;
    await pause(200);
  }
  return false;
}
