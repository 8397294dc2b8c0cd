/** A server with data of every kind, for the tests of the console. */
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../support/csr.ts';
import { caSection, Estuary, itemsOf, section } from '../support/estuary.ts';
import { type TokenIssuer, WEB_CLIENT, WEB_SECRET } from '../support/token-issuer.ts';

export const ROLES = ['ra', 'auditor', 'operator'] as const;
export type OneRole = (typeof ROLES)[number];

type Configure = (config: TomlTable, dir: string) => void;

export interface World {
  readonly estuary: Estuary;
  /** A bearer token for each role; that of `admin` is the server's own. */
  readonly tokens: Readonly<Record<OneRole | 'admin' | 'nobody', string>>;
  readonly key: TestKey;
}

/** @param more what a test adds to the configuration */
export async function makeWorld(more: Configure = () => undefined): Promise<World> {
  const made = Object.fromEntries([...ROLES, 'nobody'].map((role) => [role, randomBytes(24).toString('hex')]));
  const estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure: (config, dir) => {
      configure(config, dir, made);
      more(config, dir);
    },
  });
  const token = (role: string): string => made[role] ?? '';
  const tokens = {
    admin: estuary.adminToken,
    ra: token('ra'),
    auditor: token('auditor'),
    operator: token('operator'),
    nobody: token('nobody'),
  };
  return { estuary, tokens, key: makeKey() };
}

function configure(config: TomlTable, dir: string, tokens: Readonly<Record<string, string>>): void {
  Object.assign(section(config, 'otp'), { lockout_scope: 'username', lockout_duration: 86_400 });
  Object.assign(section(config, 'publication'), {
    enabled: true,
    host: '127.0.0.1',
    port: 0,
    base_url: 'http://pki.factory.example',
  });
  Object.assign(caSection(config, 1), { approval: 'manual', approvals: 2, profile: { validity_days: 5 } });
  const mail = { kind: 'smtp', host: 'localhost', security: 'none', from: 'est@factory.example' };
  config['notifications'] = [{ ...mail, name: 'operators', to: ['pki@factory.example'] }];
  const { publicKey } = new X509Certificate(readFileSync(join(dir, 'admin/client.pem')));
  const spki_sha256 = createHash('sha256')
    .update(publicKey.export({ format: 'der', type: 'spki' }))
    .digest('hex');
  section(config, 'admin')['clients'] = [{ spki_sha256, roles: ['admin'] }];
  const bearer = section(config, 'admin', 'bearer_token');
  const known = Array.isArray(bearer['tokens']) ? bearer['tokens'] : [];
  bearer['tokens'] = [
    ...known,
    ...Object.entries(tokens).map(([role, value]) => ({
      token_hash: `sha256:${createHash('sha256').update(value).digest('hex')}`,
      description: `${role}’s token`,
      roles: role === 'nobody' ? [] : [role],
    })),
  ];
}

/** Enrolls; 202 where the CA asks somebody first. */
export async function enroll(
  { estuary, key }: World,
  id: string,
  names: readonly string[] = [],
  path = 'simpleenroll',
) {
  const { token } = await estuary.otp({ client_id: id });
  const answer = await estuary.enroll(onTheWire(simpleCsr(key, id, names)), { password: token, path });
  if (![200, 202].includes(answer.status)) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
  return answer;
}

/** What a small factory looks like after some days. */
export async function settle(world: World): Promise<void> {
  const { estuary } = world;
  const rows = ['press-1', 'press-2', 'oven-7', 'gate-north'].map((id) => `${id},,hall 4 ${id},hall 4`);
  for (const row of rows) {
    const [id = '', , note = '', site = ''] = row.split(',');
    await estuary.admin('POST', '/admin/devices', { id, note, attributes: { site } });
  }
  for (const id of ['press-1', 'press-2', 'oven-7', 'robot-3', 'scale-12', 'valve-9'])
    await enroll(world, id, [`${id}.factory.example`, `${id}.hall4.factory.example`]);
  for (const id of ['gate-north', 'gate-south', 'press-1'])
    await enroll(world, id, [`${id}.lab.example`], 'lab/simpleenroll');
  const { json } = await estuary.admin('GET', '/admin/certificates?subject=valve-9');
  const [valve] = itemsOf(json);
  await estuary.admin('POST', `/admin/certificates/${String(valve?.['serial'])}/revoke`, { reason: 'keyCompromise' });
  for (const id of ['robot-4', 'robot-5']) await estuary.otp({ client_id: id });
  const by = new Date(Date.now() + 5 * 86_400_000).toISOString();
  await estuary.admin('POST', '/admin/renewals', {
    filter: { ca: 'devices', subject: 'press' },
    by,
    reason: 'New root',
  });
  const wrong = Buffer.from('stranger:wrong').toString('base64');
  for (let attempt = 0; attempt < 6; attempt++)
    await estuary.enroll(onTheWire(simpleCsr(world.key, 'stranger')), { headers: { Authorization: `Basic ${wrong}` } });
}

/** The fields of the newest of a list. */
export async function firstItem({ estuary }: World, list: string): Promise<(field: string) => string> {
  const { json } = await estuary.admin('GET', `${list}&order=desc`);
  const [item] = itemsOf(json);
  return (field) => String(item?.[field]);
}

/** `[admin.oidc]` for sign-in at a provider. @param roles for the groups of its accounts */
export function oidcSection(issuer: TokenIssuer, dir: string, redirect_url: string, roles: object): TomlTable {
  writeFileSync(join(dir, 'idp-ca.pem'), issuer.ca);
  writeFileSync(join(dir, 'oidc-secret'), WEB_SECRET, { mode: 0o600 });
  const files = { client_secret_file: 'oidc-secret', trust_anchors: 'idp-ca.pem' };
  return { issuer: issuer.url, client_id: WEB_CLIENT, ...files, redirect_url, roles: { ...roles } };
}
