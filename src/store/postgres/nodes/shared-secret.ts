/** The nodes' shared secret, encrypted in the database under a key that is not there (`store.shared_key`). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Client } from 'pg';

/** The secret of a period; earlier ones are forgotten. */
export interface PeriodSecret {
  readonly secret: string;
  readonly period: number;
}

const NONCE = 12;
const TAG = 16;

/**
 * The secret of all nodes: the stored one, otherwise the given one.
 * @returns undefined if the stored one was encrypted under another key
 */
export async function shareSecret(
  client: Client,
  key: Buffer,
  name: string,
  own: PeriodSecret,
): Promise<PeriodSecret | undefined> {
  await client.query(
    'INSERT INTO shared_secret (name, period, sealed) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
    [name, own.period, seal(key, name, own)],
  );
  const { rows } = await client.query<{ period: string; sealed: Buffer }>(
    'SELECT period::text, sealed FROM shared_secret WHERE name = $1',
    [name],
  );
  const [row] = rows;
  return row && open(key, name, Number(row.period), row.sealed);
}

/** Replaces the secret with that of a later period, so that the old one can no longer be read. */
export async function advanceSecret(client: Client, key: Buffer, name: string, own: PeriodSecret): Promise<void> {
  await client.query('UPDATE shared_secret SET period = $2, sealed = $3 WHERE name = $1 AND period < $2', [
    name,
    own.period,
    seal(key, name, own),
  ]);
}

const keyOf = (key: Buffer, name: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', `estuary shared ${name}`, 32));

function seal(key: Buffer, name: string, { secret, period }: PeriodSecret): Buffer {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', keyOf(key, name), nonce).setAAD(Buffer.from(`${name} ${period}`));
  const sealed = Buffer.concat([cipher.update(secret, 'hex'), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
}

function open(key: Buffer, name: string, period: number, sealed: Buffer): PeriodSecret | undefined {
  if (sealed.length < NONCE + TAG) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', keyOf(key, name), sealed.subarray(0, NONCE))
    .setAAD(Buffer.from(`${name} ${period}`))
    .setAuthTag(sealed.subarray(-TAG));
  try {
    const secret = Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
    return { secret: secret.toString('hex'), period };
  } catch {
    return undefined;
  }
}
