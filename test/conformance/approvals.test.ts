/** Two-person approval on the built server: an administrator counts once, with any credential and on every way in. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { ecdsaTwin, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { requestId } from '../support/queued-requests.ts';
import { runAny } from '../support/command.ts';
import { NODE, SERVER } from '../support/server-process.ts';

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

let estuary: Estuary;
let ada: Issuer;
let adaRenewed: Issuer;
let unlisted: Issuer;

beforeAll(async () => {
  const ca = await makeCa('CN=Administrators');
  ada = await makeClient('CN=Ada', ca);
  adaRenewed = await makeClient('CN=Ada', ca, { slot: 'renewed' });
  unlisted = await makeClient('CN=Cy', ca);
  estuary = await Estuary.start({
    configure: (config, dir) => {
      Object.assign(caSection(config, 1), { approval: 'manual', approvals: 2 });
      writeFileSync(join(dir, 'admin/own.pem'), encodePem('CERTIFICATE', ca.der));
      const trust = { trust_anchors: 'admin/own.pem', mode: 'optional', default_roles: ['admin'] };
      Object.assign(section(config, 'admin', 'tls'), trust);
      section(config, 'admin')['clients'] = [
        { name: 'Ada', fingerprint: `sha256:${sha256(ada.der)}`, roles: ['ra'] },
        { name: 'Ada', subject: 'CN=Ada', issuer: 'CN=Administrators', roles: ['ra'] },
      ];
      const tokens = section(config, 'admin', 'bearer_token')['tokens'];
      const own = ['Ada', 'Bob'].map((name) => ({
        token_hash: `sha256:${sha256(`the-token-of-${name}`)}`,
        description: `a token of ${name}`,
        ...{ name, roles: ['ra'] },
      }));
      section(config, 'admin', 'bearer_token')['tokens'] = [...(Array.isArray(tokens) ? tokens : []), ...own];
      writeFileSync(join(dir, 'bob.token'), 'the-token-of-Bob', { mode: 0o600 });
    },
  });
});
afterAll(() => estuary.stop());

async function queued(cn: string): Promise<string> {
  const { token } = await estuary.otp({ client_id: cn });
  const answer = await estuary.enroll(onTheWire(simpleCsr(makeKey(), cn, [])), {
    path: 'lab/simpleenroll',
    password: token,
  });
  expect(answer.status).toBe(202);
  return requestId(estuary, cn);
}

interface Credential {
  readonly der?: Buffer;
  readonly keys?: Issuer['keys'];
  readonly headers?: Record<string, string>;
}

/** The status of the request after an approval, or the code of the refusal. */
async function approved(id: string, { der, keys, headers = {} }: Credential): Promise<string> {
  const certificate =
    der === undefined || keys === undefined ? {} : { cert: encodePem('CERTIFICATE', der), key: pkcs8Pem(keys) };
  const { text } = await call({
    port: estuary.server.port('admin'),
    method: 'POST',
    path: `/admin/requests/${id}/approve`,
    headers,
    tls: { ca: estuary.root, ...certificate },
  });
  const { status, code } = JSON.parse(text) as { status?: string; code?: string };
  return code ?? status ?? text;
}

const tokenOf = (name: string) => ({ headers: { Authorization: `Bearer the-token-of-${name}` } });

async function restarted(configure: (config: TomlTable) => void): Promise<void> {
  estuary.reconfigure(configure);
  estuary.server.signal('SIGTERM');
  await estuary.server.exited;
  await estuary.restart();
}

/** A browser's session that began with a token. */
async function sessionOf(name: string): Promise<Credential> {
  const host = `localhost:${estuary.server.port('admin')}`;
  const own = { Host: host, Origin: `https://${host}` };
  const answer = await call({
    ...{ port: estuary.server.port('admin'), method: 'POST', path: '/admin/session', tls: { ca: estuary.root } },
    headers: { ...own, ...tokenOf(name).headers },
  });
  return { headers: { ...own, Cookie: answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '' } };
}

const approveByCommand = (id: string) =>
  runAny(
    NODE,
    [
      ...[
        SERVER,
        'admin',
        'request',
        'approve',
        id,
        '--yes',
        '--url',
        `https://localhost:${estuary.server.port('admin')}`,
      ],
      ...['--token-file', join(estuary.dir, 'bob.token'), '--ca', join(estuary.dir, 'ca/root.pem')],
    ],
    { env: estuary.env },
  );

test('an administrator approves once, by whatever credential, and a second one by any way in', async () => {
  const id = await queued('twice');
  expect(await approved(id, ada)).toBe('pending');
  for (const again of [ada, { ...ada, der: ecdsaTwin(ada.der) }, adaRenewed, tokenOf('Ada'), await sessionOf('Ada')])
    expect(await approved(id, again)).toBe('APPROVED_ALREADY');
  expect(await approved(id, unlisted)).toBe('APPROVER_NOT_LISTED');
  const { code, output } = await approveByCommand(id);
  expect([code, output]).toEqual([0, expect.any(String)]);
  const { json } = await estuary.admin('GET', `/admin/requests/${id}`);
  expect(json).toMatchObject({ status: 'approved', decided_by: ['Ada', 'Bob'] });
});

test('a certificate that is re-encoded keeps its entry and its roles', async () => {
  const rolesOf = async ({ der, keys }: Issuer): Promise<unknown> => {
    const cert = { cert: encodePem('CERTIFICATE', der), key: pkcs8Pem(keys) };
    const answer = await call({
      ...{ port: estuary.server.port('admin'), method: 'GET', path: '/admin/session' },
      tls: { ca: estuary.root, ...cert },
    });
    return JSON.parse(answer.text);
  };
  expect(await rolesOf({ ...ada, der: ecdsaTwin(ada.der) })).toEqual(await rolesOf(ada));
  expect(await rolesOf(ada)).toMatchObject({ subject: 'Ada', roles: ['ra'] });
});

test('a queued request needs as many approvals as before while its label is missing from the configuration, or has fewer', async () => {
  const [missing, fewer] = [await queued('missing'), await queued('fewer')];
  let removed: unknown;
  await restarted((config) => {
    const cas = config['ca'];
    if (Array.isArray(cas)) removed = cas.pop();
  });
  expect(await approved(missing, ada)).toBe('pending');
  expect(await approved(missing, unlisted)).toBe('APPROVER_NOT_LISTED');
  await restarted((config) => {
    const cas = config['ca'];
    if (Array.isArray(cas)) cas.push({ ...(removed as object), approvals: 1 });
  });
  expect(await approved(missing, { ...ada, der: ecdsaTwin(ada.der) })).toBe('APPROVED_ALREADY');
  expect(await approved(fewer, unlisted)).toBe('APPROVER_NOT_LISTED');
  expect(await approved(fewer, tokenOf('Ada'))).toBe('pending');
  for (const id of [missing, fewer]) expect(await approved(id, await sessionOf('Bob'))).toBe('approved');
});
