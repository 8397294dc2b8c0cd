/**
 * Makes fixtures/upgrade-703b5e1: a store and an audit log as the server of an earlier commit leaves them, with what its devices have.
 *
 *   git worktree add --detach OLD 703b5e1 && (cd OLD && npm ci && npm run build)
 *   sed -i 's/\b\(3650\|1825\|825\)\b/10950/' OLD/scripts/lib/throwaway-pki.sh     # so that the fixture does not expire
 *   node scripts/lib/upgrade-fixture.ts OLD fixtures/upgrade-703b5e1
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { parse, stringify } from 'smol-toml';
import { makeKey, onTheWire, simpleCsr } from '../../test/support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity, type EstCall } from '../../test/support/estuary.ts';
import { requestId } from '../../test/support/queued-requests.ts';
import { NODE, untilListening } from '../../test/support/server-process.ts';
import type { Upgrade } from '../../test/support/upgrade.ts';

const [old = '', dir = ''] = process.argv.slice(2);
const DECADE = new Date(Date.now() + 9.9 * 365.25 * 86_400_000).toISOString();

function configure(): void {
  execFileSync(join(old, 'scripts/quickstart'), ['--no-start', '--dir', dir, '--est-port', '0', '--admin-port', '0']);
  const file = join(dir, 'est.toml');
  const config = parse(readFileSync(file, 'utf8'));
  writeFileSync(join(dir, 'otp.key'), randomBytes(32), { mode: 0o600 });
  Object.assign(section(config, 'otp'), { hash_algorithm: 'sha256-hmac', hmac_key_file: 'otp.key', max_failures: 50 });
  const base_url = 'http://pki.example.test';
  Object.assign(section(config, 'publication'), {
    enabled: true,
    host: '127.0.0.1',
    port: 0,
    base_url,
    crl_interval: 10,
  });
  section(config, 'requests')['pending_ttl'] = 31_536_000;
  section(config, 'requests')['retention'] = 31_536_000;
  section(config, 'serverkeygen')['encryption'] = 'optional';
  Object.assign(section(caSection(config), 'profile'), { validity_days: 9000, max_validity_days: 9000 });
  Object.assign(section(caSection(config, 1), 'profile'), { validity_days: 9000, max_validity_days: 9000 });
  caSection(config, 1)['approval'] = 'manual';
  writeFileSync(file, stringify(config));
}

const expectStatus = (what: string, wanted: number, status: number): void => {
  if (status !== wanted) throw new Error(`${what}: ${status} in place of ${wanted}`);
};

/** What the devices and the administrator do, and what they then have. */
async function use(estuary: Estuary): Promise<Upgrade> {
  const otp = (client_id: string, more: object = {}) => estuary.otp({ client_id, expires_at: DECADE, ...more });
  const key = makeKey();
  const csr = (name: string): string => onTheWire(simpleCsr(key, name, [`${name}.example.com`]));
  const enroll = async (name: string, wanted: number, options: EstCall & { readonly path?: string }) => {
    const answer = await estuary.enroll(csr(name), options);
    expectStatus(name, wanted, answer.status);
  };
  const enrolled = (name: string): Promise<ClientIdentity> => estuary.enrolled(key, name, [`${name}.example.com`]);
  const serial = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();
  const decide = async (name: string, decision: string, body?: object): Promise<void> => {
    const id = await requestId(estuary, name);
    expectStatus(decision, 200, (await estuary.admin('POST', `/admin/requests/${id}/${decision}`, body)).status);
  };

  const kept = await enrolled('kept');
  const revoked = await enrolled('revoked');
  const revocation = await estuary.admin('POST', `/admin/certificates/${serial(revoked)}/revoke`, {
    reason: 'keyCompromise',
  });
  expectStatus('revoke', 200, revocation.status);
  const [unused, used, twice, dead, forLab] = [
    (await otp('unused')).token,
    (await otp('used')).token,
    (await otp('twice', { max_uses: 2 })).token,
    await otp('dead'),
    (await otp('for-lab', { ca: 'lab' })).token,
  ];
  await enroll('used', 200, { password: used });
  await enroll('twice', 200, { password: twice });
  expectStatus('revoke a token', 204, (await estuary.admin('DELETE', `/admin/otp/${dead.id}`)).status);
  await enroll('nobody', 401, { password: 'a wrong password' });

  const queued = { waiting: '', approved: '', rejected: '', generated: '' };
  for (const name of ['waiting', 'approved', 'rejected'] as const) {
    queued[name] = (await otp(name)).token;
    await enroll(name, 202, { password: queued[name], path: 'lab/simpleenroll' });
  }
  queued.generated = (await otp('generated')).token;
  await enroll('generated', 202, { password: queued.generated, path: 'lab/serverkeygen' });
  await decide('approved', 'approve');
  await decide('rejected', 'reject', { reason: 'nobody knows it' });

  const crl = await fetch(`http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`);
  expectStatus('crl', 200, crl.status);
  await estuary.admin('GET', '/admin/certificates?limit=1000');
  return {
    key: key.pem,
    kept: kept.cert,
    revoked: revoked.cert,
    tokens: { unused, used, twice, dead: dead.token, forLab },
    queued,
    crl: Buffer.from(await crl.arrayBuffer()).toString('base64'),
  };
}

configure();
const child = spawn(NODE, [join(old, 'dist/server.js'), '--config', join(dir, 'est.toml')], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
const estuary = new Estuary(dir, await untilListening(child, ['est', 'admin', 'publication']), {});
const made = await use(estuary);
await estuary.server.stop();
writeFileSync(join(dir, 'made.json'), `${JSON.stringify(made, null, 2)}\n`);
for (const name of ['data/est.db', 'data/audit.log'].map((file) => join(dir, file))) {
  writeFileSync(`${name}.gz`, gzipSync(readFileSync(name), { level: 9 }));
  rmSync(name);
}
