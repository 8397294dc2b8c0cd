/** Issue 16: today's server on what the server of an earlier commit left behind; test/support/upgrade.ts tells what that is. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OID } from '../../src/pki/der/oids.ts';
import { type CertificateList, parseCertificateList, revokedEntries } from '../../src/pki/x509/crl.ts';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../support/csr.ts';
import { certificatePem, Estuary, itemsOf, type ClientIdentity, type EstCall } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve, requestId, requestsOf } from '../support/queued-requests.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, startServer } from '../support/server-process.ts';
import { ROOT } from '../support/root.ts';
import { copyOfUpgrade, readUpgrade, type Upgrade } from '../support/upgrade.ts';

const COMMIT = '703b5e1';
let estuary: Estuary;
let made: Upgrade;
/** The one key of the devices of then. */
let key: TestKey;

beforeAll(async () => {
  const dir = copyOfUpgrade(COMMIT);
  try {
    made = readUpgrade(dir);
    key = keyOf(made.key);
    stayInTheQueue(dir);
    const listeners = ['est', 'admin', 'publication'] as const;
    estuary = new Estuary(dir, await startServer({ config: join(dir, 'est.toml'), listeners }), { listeners });
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}, 120_000);
afterAll(() => estuary.stop());

function keyOf(pem: string): TestKey {
  const privateKey = createPrivateKey(pem);
  const publicKey = createPublicKey(pem);
  return { privateKey, publicKey, spki: publicKey.export({ type: 'spki', format: 'der' }), pem };
}

/** A request waits for a year at most: the fixture's are made new, or it could be used for no longer. */
function stayInTheQueue(dir: string): void {
  const db = new Database(join(dir, 'data/est.db'));
  const now = Date.now();
  const { changes } = db
    .prepare(
      'UPDATE request SET created_at = ?, changed_at = ?, decided_at = CASE WHEN decided_at IS NULL THEN NULL ELSE ? END',
    )
    .run(now, now, now);
  db.close();
  expect(changes).toBe(4);
}

const serialOf = (cert: string): string => new X509Certificate(cert).serialNumber.toLowerCase();
const client = (cert: string): ClientIdentity => ({ cert, key: made.key });

/** As the device of this name asked then. */
const ask = (name: string, options: EstCall & { readonly path?: string }, by = key): Promise<Answer> =>
  estuary.enroll(onTheWire(simpleCsr(by, name, [`${name}.example.com`])), options);
const statusOf = async (name: string, options: EstCall & { readonly path?: string }, by = key): Promise<number> =>
  (await ask(name, options, by)).status;

async function crl(): Promise<CertificateList> {
  const response = await fetch(`http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`);
  return parseCertificateList(Buffer.from(await response.arrayBuffer()));
}
function numberOf(list: CertificateList): number {
  const { value } = list.extensions.find(({ oid }) => oid === OID.cRLNumber) ?? { value: Buffer.of(2, 1, 0) };
  return Number.parseInt(value.subarray(2).toString('hex'), 16);
}

describe.skipIf(!requires('storeInFile'))(`issue 16: upgrade from ${COMMIT}`, () => {
  test('every certificate is there with its state, and is found by its name', async () => {
    const { json } = await estuary.admin('GET', '/admin/certificates?limit=1000');
    expect(Object.fromEntries(itemsOf(json).map(({ subject, status }) => [subject, status]))).toEqual({
      'CN=kept': 'valid',
      'CN=revoked': 'revoked',
      'CN=used': 'valid',
      'CN=twice': 'valid',
    });
    for (const [name, cert] of Object.entries({ kept: made.kept, revoked: made.revoked })) {
      const record = (await estuary.admin('GET', `/admin/certificates/${serialOf(cert)}`)).json;
      expect(record).toMatchObject({ ca: 'devices', subject: `CN=${name}`, sans: [`DNS:${name}.example.com`] });
      expect(record['pem']).toBe(cert);
    }
    // Names are indexed behind.
    const found = async (query: string): Promise<unknown> =>
      itemsOf((await estuary.admin('GET', `/admin/certificates?${query}`)).json).map(({ subject }) => subject);
    await expect.poll(() => found('subject=kept'), { timeout: 30_000 }).toEqual(['CN=kept']);
    await expect.poll(() => found('san=twice.example'), { timeout: 30_000 }).toEqual(['CN=twice']);
  });

  test('renewals work, and what was revoked stays revoked', async () => {
    const renewed = await ask('kept', { client: client(made.kept), path: 'simplereenroll' });
    expect(renewed.status).toBe(200);
    const again = client(certificatePem(renewed));
    expect(await statusOf('kept', { client: again, path: 'simplereenroll' })).toBe(200);
    expect(await statusOf('other', { client: again, path: 'simplereenroll' })).toBe(403);
    expect(await statusOf('revoked', { client: client(made.revoked), path: 'simplereenroll' })).toBe(401);
  });

  test('tokens have the uses that were left', async () => {
    const { unused, used, twice, dead, forLab } = made.tokens;
    const fresh = makeKey();
    expect(await statusOf('unused', { password: unused }, fresh)).toBe(200);
    expect(await statusOf('unused', { password: unused }, makeKey())).toBe(401);
    expect(await statusOf('used', { password: used }, fresh)).toBe(401);
    expect(await statusOf('twice', { password: twice }, fresh)).toBe(200);
    expect(await statusOf('twice', { password: twice }, makeKey())).toBe(401);
    expect(await statusOf('dead', { password: dead }, fresh)).toBe(401);
    expect(await statusOf('for-lab', { password: forLab }, fresh)).not.toBe(200);
    expect(await statusOf('for-lab', { password: forLab, path: 'lab/simpleenroll' }, fresh)).toBe(202);
  });

  test('queued requests can be polled, approved and fetched; decisions of then stand', async () => {
    const path = 'lab/simpleenroll';
    const states = await Promise.all(
      Object.keys(made.queued).map(async (name) => (await requestsOf(estuary, name)).map(({ status }) => status)),
    );
    expect(states).toEqual([['pending'], ['approved'], ['rejected'], ['pending']]);
    expect(certificatePem(await ask('approved', { password: made.queued.approved, path }))).toContain('BEGIN');
    const rejected = await ask('rejected', { password: made.queued.rejected, path });
    expect(rejected).toMatchObject({ status: 403, text: expect.stringContaining('nobody knows it') as unknown });
    const waiting = { password: made.queued.waiting, path };
    expect(await statusOf('waiting', waiting)).toBe(202);
    await approve(estuary, 'waiting');
    const issued = new X509Certificate(certificatePem(await ask('waiting', waiting)));
    expect(issued.subject).toBe('CN=waiting');
    const generated = { password: made.queued.generated, path: 'lab/serverkeygen' };
    expect(await statusOf('generated', generated)).toBe(202);
    await approve(estuary, 'generated');
    const answer = await ask('generated', generated);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('application/pkcs8');
    const { json } = await estuary.admin('GET', `/admin/requests/${await requestId(estuary, 'generated')}`);
    expect(json).toMatchObject({ status: 'issued', operation: 'serverkeygen' });
  });

  test('RFC 5280 §5.2.3: CRL numbers go on, and a certificate of then can be revoked', async () => {
    const before = parseCertificateList(Buffer.from(made.crl, 'base64'));
    const { json } = await estuary.admin('GET', '/admin/certificates?subject=used');
    const serial = String(itemsOf(json)[0]?.['serial']);
    expect((await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'superseded' })).status).toBe(
      200,
    );
    await expect.poll(async () => numberOf(await crl()), { timeout: 30_000 }).toBeGreaterThan(numberOf(before));
    const serials = async (): Promise<string[]> =>
      [...revokedEntries(await crl())].map(({ serialNumber }) => serialNumber);
    await expect.poll(serials, { timeout: 30_000 }).toEqual(expect.arrayContaining([serialOf(made.revoked), serial]));
  });

  test('the audit log goes on where it ended, and is whole; also after kill -9', async () => {
    const then = gunzipSync(readFileSync(join(ROOT, `fixtures/upgrade-${COMMIT}/data/audit.log.gz`)));
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    await estuary.restart();
    const now = readFileSync(join(estuary.dir, 'data/audit.log'));
    expect(now.length).toBeGreaterThan(then.length);
    expect(now.subarray(0, then.length).equals(then)).toBe(true);
    const { output, code } = await runAny(NODE, [SERVER, 'audit', 'verify', '--config', join(estuary.dir, 'est.toml')]);
    expect(output).toMatch(/^the audit log is whole/);
    expect(code).toBe(0);
  });
});
