/** A server that is backed up while it runs, continues, is killed, and restored. */
import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { generalizedTime } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificateList, revokedEntries } from '../../src/pki/x509/crl.ts';
import { certificateOf, postCmc, requestBy } from '../support/cmc.ts';
import { runAny, type CommandResult } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';

let estuary: Estuary;
const key = makeKey();

/** What was there before the backup, and came after it. */
interface Made {
  readonly kept: ClientIdentity;
  readonly campaign: string;
  readonly heldSince: ClientIdentity;
  readonly releasedSince: ClientIdentity;
  readonly revokedSince: ClientIdentity;
  readonly issuedSince: ClientIdentity;
  readonly issuedAndRevokedSince: ClientIdentity;
  readonly usedSince: string;
  readonly revokedTokenSince: string;
  readonly unused: readonly string[];
  readonly madeSince: string;
  readonly lastCrl: number;
}
let made: Made;
let refused: CommandResult;
let restored: CommandResult;

const command = (...args: string[]): Promise<CommandResult> =>
  runAny(NODE, [SERVER, ...args, '--config', join(estuary.dir, 'est.toml')]);

const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();
/** Since when the keys of revoked certificates may be compromised. */
const INVALID_SINCE = '2026-01-02T03:04:05Z';
const revoke = (who: ClientIdentity) =>
  estuary.admin('POST', `/admin/certificates/${serialOf(who)}/revoke`, {
    reason: 'keyCompromise',
    invalidity_date: INVALID_SINCE,
  });
/** The same by full CMC (RFC 5272 §6.11). */
async function revokeByCmc(who: ClientIdentity): Promise<number> {
  const { issuer, serialNumber } = certificateOf(who);
  const order = { issuer, serialNumber, reason: 'keyCompromise' as const, invalidityDate: new Date(INVALID_SINCE) };
  const der = await requestBy(who, { controlSequence: [buildControl(1, 'revokeRequest', order)] });
  return (await postCmc(estuary, der, who)).status;
}

async function crl() {
  const response = await fetch(`http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`);
  const list = parseCertificateList(Buffer.from(await response.arrayBuffer()));
  const { value } = list.extensions.find(({ oid }) => oid === OID.cRLNumber) ?? { value: Buffer.from([2, 1, 0]) };
  const number = Number.parseInt(value.subarray(2).toString('hex'), 16);
  const entries = [...revokedEntries(list)].map(({ serialNumber, extensions }) => ({
    serialNumber,
    extensions: extensions.map(({ oid, value }) => `${oid} ${value.toString('hex')}`),
  }));
  return { number, entries };
}

async function enroll(name: string, password: string): Promise<number> {
  return (await estuary.enroll(onTheWire(simpleCsr(key, name)), { password })).status;
}
const renew = async (client: ClientIdentity, name: string): Promise<number> =>
  (await estuary.enroll(onTheWire(simpleCsr(key, name)), { client, path: 'simplereenroll' })).status;

async function startCampaign(subject: string): Promise<string> {
  const by = new Date(Date.now() + 86_400_000).toISOString();
  return String((await estuary.admin('POST', '/admin/renewals', { filter: { subject }, by })).json['id']);
}

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      const base_url = 'http://pki.example.test';
      Object.assign(section(config, 'publication'), { enabled: true, host: '127.0.0.1', port: 0, base_url });
    },
  });
  const token = async (client_id: string, max_uses = 1) => estuary.otp({ client_id, max_uses });
  const kept = await estuary.enrolled(key, 'kept');
  const [heldSince, releasedSince] = [await estuary.enrolled(key, 'held'), await estuary.enrolled(key, 'released')];
  const hold = (who: ClientIdentity) =>
    estuary.admin('POST', `/admin/certificates/${serialOf(who)}/revoke`, { reason: 'certificateHold' });
  await hold(releasedSince);
  const revokedSince = await estuary.enrolled(key, 'revoked-since');
  const [used, revokedToken] = [await token('used', 2), await token('revoked')];
  const unused = [(await token('unused-1')).token, (await token('unused-2')).token];
  expect((await estuary.admin('POST', '/admin/devices', { id: 'tag: 1' })).status).toBe(201);
  expect(await enroll('used', used.token)).toBe(200);
  await crl();

  const [campaign, campaignEndedSince] = [await startCampaign('kept'), await startCampaign('ended')];

  const backup = await command('backup', '--to', join(estuary.dir, 'backup'));
  expect(backup.output).toContain('the backup is complete');
  expect(backup.code).toBe(0);

  expect(await enroll('used', used.token)).toBe(200);
  const issuedSince = await estuary.enrolled(key, 'issued-since');
  const issuedAndRevokedSince = await estuary.enrolled(key, 'issued-and-revoked-since');
  expect([(await revoke(revokedSince)).status, await revokeByCmc(issuedAndRevokedSince)]).toEqual([200, 200]);
  await hold(heldSince);
  expect((await estuary.admin('POST', `/admin/certificates/${serialOf(releasedSince)}/release`)).status).toBe(200);
  expect((await estuary.admin('DELETE', `/admin/otp/${revokedToken.id}`)).status).toBe(204);
  expect((await estuary.admin('PATCH', '/admin/devices/tag%3A%201', { enabled: false })).status).toBe(200);
  expect((await estuary.admin('DELETE', `/admin/renewals/${campaignEndedSince}`)).status).toBe(204);
  await startCampaign('started-since');
  const { token: madeSince } = await token('made-since');
  const { number: lastCrl } = await crl();
  refused = await command('restore', '--from', join(estuary.dir, 'backup'));
  made = {
    kept,
    campaign,
    heldSince,
    releasedSince,
    revokedSince,
    issuedSince,
    issuedAndRevokedSince,
    usedSince: used.token,
    revokedTokenSince: revokedToken.token,
    unused,
    madeSince,
    lastCrl,
  };
  estuary.server.signal('SIGKILL');
  await estuary.server.exited;
  restored = await command('restore', '--from', join(estuary.dir, 'backup'));
  await estuary.restart();
});
afterAll(() => estuary.stop());

describe.skipIf(!requires('storeInFile'))('backup and restore', () => {
  test('the backup is for its owner only, and names what is not in it', async () => {
    const folder = join(estuary.dir, 'backup');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    const again = await command('backup', '--to', join(estuary.dir, 'backup-2'));
    expect(again.output).toContain('ca/issuing.key');
    const over = await command('backup', '--to', folder);
    expect(over.output).toContain('the folder of the backup is not empty');
    expect(over.code).toBe(1);
  });

  test('a store in use is refused, with the host and pid of its server', () => {
    expect(refused.output).toMatch(/the store is in use by another service: host \S+, pid \d+/);
    expect(refused.code).toBe(1);
  });

  test('it prints what was applied and what was lost, warns about certificates that the store may not know, and keeps the former store', () => {
    expect(restored.output).toContain('applied: 3 revocations\n');
    expect(restored.output).toContain('applied: 1 releases of held certificates\n');
    expect(restored.output).toContain('applied: 3 certificates issued\n');
    expect(restored.output).toContain('applied: 1 revocations of tokens\n');
    expect(restored.output).toContain('applied: 1 devices disabled\n');
    expect(restored.output).toContain('applied: 1 replacement campaigns ended\n');
    expect(restored.output).toContain('lost: 1 replacement campaigns started since');
    expect(restored.output).toContain('lost: 3 tokens created since');
    expect(restored.output).toMatch(/^warning: of 3 certificates issued after the backup of \S+, the store knows/m);
    expect(restored.output).not.toContain('may be unknown');
    expect(restored.code).toBe(0);
    const [, kept = ''] = /^kept: (.*est\.db.*)$/m.exec(restored.output) ?? [];
    expect(existsSync(kept)).toBe(true);
  });

  test('revoked certificates stay revoked, whether issued before the backup or since', async () => {
    expect(await renew(made.kept, 'kept')).toBe(200);
    expect(await renew(made.revokedSince, 'revoked-since')).toBe(401);
    expect(await renew(made.issuedAndRevokedSince, 'issued-and-revoked-since')).toBe(401);
    const { json } = await estuary.admin('GET', `/admin/certificates/${serialOf(made.issuedAndRevokedSince)}`);
    expect(json).toMatchObject({ status: 'revoked', reason: 'keyCompromise', subject: 'CN=issued-and-revoked-since' });
    expect((await revoke(made.revokedSince)).status).toBe(409);
    expect(await renew(made.heldSince, 'held')).toBe(401);
    expect(await renew(made.releasedSince, 'released')).toBe(200);
    expect((await estuary.admin('POST', `/admin/certificates/${serialOf(made.heldSince)}/release`)).status).toBe(200);
    expect(await renew(made.heldSince, 'held')).toBe(200);
  });

  test('campaigns that were not ended since go on', async () => {
    const { json } = await estuary.admin('GET', '/admin/renewals');
    expect(itemsOf(json).map(({ id }) => id)).toEqual([made.campaign]);
    expect((await estuary.admin('GET', `/admin/renewals/${made.campaign}`)).json).toMatchObject({ total: 1 });
  });

  test('a certificate issued since is known: it renews under its own name, can ask for no other, and can be revoked', async () => {
    expect(await renew(made.issuedSince, 'issued-since')).toBe(200);
    const other = await estuary.enroll(onTheWire(simpleCsr(key, 'other')), { client: made.issuedSince });
    expect(other.status).toBe(403);
    const { not_after } = (await estuary.admin('GET', `/admin/certificates/${serialOf(made.issuedSince)}`)).json;
    expect(Date.parse(String(not_after))).toBe(Date.parse(new X509Certificate(made.issuedSince.cert).validTo));
    expect((await revoke(made.issuedSince)).status).toBe(200);
    expect(await renew(made.issuedSince, 'issued-since')).toBe(401);
  });

  test('RFC 5280 §5.2.3: CRL numbers go on, and the list has what was revoked since, with its reason and invalidity date', async () => {
    const { number, entries } = await crl();
    expect(number).toBeGreaterThan(made.lastCrl);
    const extensions = [
      `${OID.cRLReason} 0a0101`,
      `${OID.invalidityDate} ${generalizedTime(new Date(INVALID_SINCE)).toString('hex')}`,
    ];
    for (const one of [made.revokedSince, made.issuedAndRevokedSince])
      expect(entries).toContainEqual({ serialNumber: serialOf(one), extensions });
  });

  test('no serial number comes twice, and the audit log is intact', async () => {
    for (let n = 0; n < 5; n++) await estuary.enrolled(key, `more-${n}`);
    const { json } = await estuary.admin('GET', '/admin/certificates?limit=1000');
    const serials = itemsOf(json).map(({ serial }) => serial);
    expect(new Set(serials).size).toBe(serials.length);
    expect(serials).toEqual(
      expect.arrayContaining([made.kept, made.issuedSince, made.issuedAndRevokedSince].map(serialOf)),
    );
    const verified = await command('audit', 'verify');
    expect(verified.stdout.toString()).toMatch(/^the audit log is intact/);
  });

  test('without the audit file it warns about certificates that the store may not know, revokes every unused token, and CRL numbers still grow', async () => {
    const { number: before } = await crl();
    await estuary.server.stop();
    rmSync(join(estuary.dir, 'data/audit.log'));
    const { output, code } = await command('restore', '--from', join(estuary.dir, 'backup'));
    expect(output).toMatch(/revoked: [34] unused tokens/);
    expect(output).toMatch(/^warning: certificates issued after the backup of \S+ may be unknown to the store/m);
    expect(code).toBe(0);
    await estuary.restart();
    expect(await enroll('unused-2', made.unused[1] ?? '')).toBe(401);
    expect(await renew(made.kept, 'kept')).toBe(200);
    // A certificate that the store does not know any more keeps to its names.
    for (const [cn, status] of [
      ['issued-since', 200],
      ['other', 403],
    ] as const)
      expect((await estuary.enroll(onTheWire(simpleCsr(key, cn)), { client: made.issuedSince })).status).toBe(status);
    expect((await crl()).number).toBeGreaterThan(before);
    expect((await command('audit', 'verify')).stdout.toString()).toMatch(/^the audit log is intact/);
    expect(readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8')).toContain('"store.restored"');
    expect(
      certificatePem(await estuary.enroll(onTheWire(simpleCsr(key, 'new')), { password: (await estuary.otp()).token })),
    ).toContain('BEGIN');
  });
});
