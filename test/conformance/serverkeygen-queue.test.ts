/**
 * RFC 7030 §4.4 with §4.2.3: a server-generated key that an administrator must approve.
 *
 * Longer than other files: its cases share a server.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  extensionRequest,
  makeKey,
  onTheWire,
  san,
  type TestKey,
} from '../support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity, type EstCall } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { approve, auditOf, requestId, requestsOf, usesOf } from '../support/queued-requests.ts';
import {
  expectMatch,
  openEnveloped,
  PRE_SHARED,
  readPkcs8,
  readServerKey,
  usePreSharedSecret,
  type ServerKeyAnswer,
} from '../support/server-key.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';

const folder = temporaryFolder();
const KEK = randomBytes(32);
const KEK_ID = '6b6579312d';
const key = makeKey();
let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      writeFileSync(join(dir, 'kek.bin'), KEK);
      section(config, 'serverkeygen')['keys'] = [{ id: KEK_ID, symmetric_key_file: 'kek.bin' }];
      usePreSharedSecret(config, dir);
      caSection(config)['approval'] = 'manual';
      section(config, 'est')['retry_after'] = 7;
      section(config, 'otp')['max_failures'] = 50;
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  folder.remove();
});

let names = 0;
const freshName = (): string => `generated-${++names}`;

interface Wish {
  /** The CSR's own key. */
  readonly from?: TestKey;
  readonly hosts?: readonly string[];
  readonly attributes?: readonly Buffer[];
}

const wire = (cn: string, { from = key, hosts = ['a.example'], attributes = [] }: Wish = {}): string =>
  onTheWire(
    buildCsr(from, {
      subject: commonName(cn),
      attributes: [extensionRequest(san(...hosts.map(dns))), ...attributes],
    }),
  );
const ask = (cn: string, credentials: Pick<EstCall, 'password' | 'client'>, wish?: Wish): Promise<Answer> =>
  estuary.enroll(wire(cn, wish), { path: 'serverkeygen', ...credentials });
const kekIdentifier = csrAttribute(OID.decryptKeyIdentifier, octetString(Buffer.from(KEK_ID, 'hex')));

/** What a client has that has opened the key of the answer. */
const identityOf = ({ certificate, key: der }: ServerKeyAnswer, password: string): ClientIdentity => ({
  cert: certificate.toString(),
  key: readPkcs8(der, password).export({ format: 'pem', type: 'pkcs8' }),
});

interface Queued {
  readonly cn: string;
  readonly otp: { readonly id: string; readonly token: string };
  readonly poll: (wish?: Wish) => Promise<Answer>;
}

/** A request that waits, made with a single-use token. */
async function queued(wish: Wish = {}): Promise<Queued> {
  const cn = freshName();
  const otp = await estuary.otp({ client_id: cn });
  const poll = (changed: Wish = {}): Promise<Answer> => ask(cn, { password: otp.token }, { ...wish, ...changed });
  expect((await poll()).status).toBe(202);
  return { cn, otp, poll };
}

const reload = async (): Promise<void> => {
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
};

const certificatesOf = async (cn: string): Promise<unknown> =>
  (await estuary.admin('GET', `/admin/certificates?subject=${cn}`)).json['items'];

describe('a request for a generated key that waits', () => {
  test('is answered 202 with Retry-After and an empty body; no key is generated for it', async () => {
    const cn = freshName();
    const otp = await estuary.otp({ client_id: cn });
    const answer = await ask(cn, { password: otp.token }, { from: makeKey('P-384') });
    expect(answer.status).toBe(202);
    expect(answer.headers['retry-after']).toBe('7');
    expect(answer.headers['content-length']).toBe('0');
    expect(answer.body).toHaveLength(0);
    expect(await usesOf(estuary, otp.id)).toBe(1);
    const id = await requestId(estuary, cn);
    const { json } = await estuary.admin('GET', `/admin/requests/${id}`);
    expect(json).toMatchObject({
      operation: 'serverkeygen',
      subject: `CN=${cn}`,
      sans: ['DNS:a.example'],
      key_type: 'ec:P-384',
      spki_sha256: null,
      status: 'pending',
      serial: null,
    });
    expect(await auditOf(estuary, 'request.queued', id)).toHaveLength(1);
    expect(await auditOf(estuary, 'key.generated', id)).toEqual([]);
    await approve(estuary, cn);
    expect(await auditOf(estuary, 'key.generated', id)).toEqual([]);
  });

  test('the poll after the approval gets certificate and key, made at that moment', async () => {
    const { cn, otp, poll } = await queued();
    expect((await poll()).status).toBe(202);
    await approve(estuary, cn);
    const answer = readServerKey(await poll());
    expectMatch(answer, readPkcs8(answer.key, otp.token));
    expect(answer.certificate.subject).toBe(`CN=${cn}`);
    expect(answer.certificate.subjectAltName).toBe('DNS:a.example');
    const id = await requestId(estuary, cn);
    const serial = answer.certificate.serialNumber.toLowerCase();
    expect((await estuary.admin('GET', `/admin/requests/${id}`)).json).toMatchObject({ status: 'issued', serial });
    expect((await estuary.admin('GET', `/admin/certificates/${serial}`)).json).toMatchObject({ request_id: id });
    expect(await auditOf(estuary, 'key.generated', id)).toMatchObject([{ detail: 'ec:P-256' }]);
    expect(await usesOf(estuary, otp.id)).toBe(1);
  });

  test('an encrypted key is encrypted, and a poll that asks for a plain one is another request', async () => {
    const { cn, otp, poll } = await queued({ attributes: [kekIdentifier] });
    await approve(estuary, cn);
    const plain = await poll({ attributes: [] });
    expect([plain.status, plain.text]).toEqual([401, 'invalid OTP token']);
    const unknown = csrAttribute(OID.decryptKeyIdentifier, octetString(Buffer.from('ff', 'hex')));
    expect((await poll({ attributes: [unknown] })).status).toBe(400);
    expect((await requestsOf(estuary, cn))[0]).toMatchObject({ status: 'approved' });
    const answer = readServerKey(await poll());
    const args = ['-secretkey', KEK.toString('hex'), '-secretkeyid', KEK_ID];
    expectMatch(answer, openEnveloped(answer, args, estuary.root, folder.file));
    expect(await usesOf(estuary, otp.id)).toBe(1);
  });

  test('an approved request without any password left is 400, stays approved, and gets its key once there is one', async () => {
    const cn = freshName();
    const client = await estuary.enrolled(makeKey(), cn, ['a.example'], 'lab/simpleenroll');
    estuary.reconfigure((config) => (caSection(config, 1)['approval'] = 'manual'));
    await reload();
    const poll = (): Promise<Answer> => estuary.enroll(wire(cn), { path: 'lab/serverkeygen', client });
    expect((await poll()).status).toBe(202);
    await approve(estuary, cn);
    estuary.reconfigure((config) => delete section(config, 'serverkeygen')['password_file']);
    await reload();
    const refused = await poll();
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('serverkeygen.password_file')]);
    expect((await requestsOf(estuary, cn))[0]).toMatchObject({ status: 'approved' });
    estuary.reconfigure((config, dir) => {
      usePreSharedSecret(config, dir);
      delete caSection(config, 1)['approval'];
    });
    await reload();
    const answer = readServerKey(await poll());
    expectMatch(answer, readPkcs8(answer.key, PRE_SHARED));
  });
});

describe('the answer with the key is the only one', () => {
  test('asking again is 403 with a sentence that says what to do; there is one certificate and one use', async () => {
    const { cn, otp, poll } = await queued();
    await approve(estuary, cn);
    const { certificate } = readServerKey(await poll());
    const again = await poll();
    expect(again.status).toBe(403);
    expect(again.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(again.text).toBe(
      `The private key was sent with certificate ${certificate.serialNumber.toLowerCase()} and is not kept; have that certificate revoked, then request a new one.`,
    );
    expect(await certificatesOf(cn)).toHaveLength(1);
    expect(await usesOf(estuary, otp.id)).toBe(1);
  });

  test('once that certificate is revoked, a token with a use left asks anew, and one without gets 401', async () => {
    for (const [max_uses, status] of [
      [2, 202],
      [1, 401],
    ] as const) {
      const cn = freshName();
      const { token, id } = await estuary.otp({ max_uses });
      await ask(cn, { password: token });
      await approve(estuary, cn);
      const { certificate } = readServerKey(await ask(cn, { password: token }));
      expect((await ask(cn, { password: token })).status).toBe(403);
      expect(await usesOf(estuary, id)).toBe(1);
      const path = `/admin/certificates/${certificate.serialNumber.toLowerCase()}/revoke`;
      expect((await estuary.admin('POST', path, { reason: 'keyCompromise' })).status).toBe(200);
      expect((await ask(cn, { password: token })).status).toBe(status);
      expect(await usesOf(estuary, id)).toBe(max_uses);
    }
  });

  test('a client that presents the certificate with the generated key gets the next one the same way', async () => {
    const { cn, otp, poll } = await queued();
    await approve(estuary, cn);
    const first = readServerKey(await poll());
    const client = identityOf(first, otp.token);
    expect((await ask(cn, { client })).status).toBe(202);
    const [, renewal] = await requestsOf(estuary, cn);
    await estuary.admin('POST', `/admin/requests/${String(renewal?.['id'])}/approve`);
    const second = readServerKey(await ask(cn, { client }));
    expectMatch(second, readPkcs8(second.key, PRE_SHARED));
    expect((await ask(cn, { client })).status).toBe(403);
    expect((await ask(cn, { client: identityOf(second, PRE_SHARED) })).status).toBe(202);
  });
});

describe('restarts', () => {
  test('a request and a decision survive one', async () => {
    const [waiting, decided] = [await queued(), await queued()];
    await approve(estuary, decided.cn);
    await estuary.server.stop();
    await estuary.restart();
    expect((await waiting.poll()).status).toBe(202);
    readServerKey(await decided.poll());
    expect((await decided.poll()).status).toBe(403);
  });
});
