/** Full CMC round trips with Bouncy Castle: its requests, our answers, verified by it and by OpenSSL. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { issuedOutside, postCmc, RA_EXTENSIONS } from '../support/cmc.ts';
import { compileCmcClient, type CmcClient, type CmcCommand, type ReadResponse } from '../support/cmc-client.ts';
import { makeKey } from '../support/csr.ts';
import { caSection, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';
import { requires } from '../support/requires.ts';

const SECRET = 'a shared secret of 20';
const IDENTIFICATION = 'device-7';
const SECRETS = { secret: SECRET, identification: IDENTIFICATION };
const [SUCCESS, FAILED, PENDING] = [0, 2, 3];
const [BAD_IDENTITY, POP_FAILED] = [7, 9];

describe.skipIf(!requires('bouncycastle', 'openssl'))('RFC 5272: full CMC with Bouncy Castle', () => {
  const folder = temporaryFolder();
  const { file } = folder;
  let server: Estuary;
  let client: CmcClient;
  /** Of the issuing CA. */
  let device: ClientIdentity;
  let ra: ClientIdentity;

  beforeAll(async () => {
    client = await compileCmcClient(folder.path);
    server = await Estuary.start({
      configure: (config, dir) => {
        writeFileSync(join(dir, 'cmc.secret'), SECRET, { mode: 0o600 });
        section(config, 'est')['fullcmc_require_mtls'] = false;
        section(config, 'cmc')['shared_secrets'] = [{ identification: IDENTIFICATION, secret_file: 'cmc.secret' }];
        caSection(config, 1)['approval'] = 'manual';
      },
    });
    device = await server.enrolled(makeKey(), 'device-1');
    ra = issuedOutside(server, 'issuing', makeKey(), '/CN=registration authority', RA_EXTENSIONS);
    for (const [name, { cert, key }] of Object.entries({ device, ra })) {
      writeFileSync(file(`${name}.pem`), cert);
      writeFileSync(file(`${name}.key`), key, { mode: 0o600 });
    }
  });
  afterAll(async () => {
    await server.stop();
    await client.stop();
    folder.remove();
  });

  interface RoundTrip extends ReadResponse {
    readonly http: number;
    /** End entities' certificates of the response. */
    readonly issued: readonly Certificate[];
  }

  /** Bouncy Castle makes a message, Estuary answers it, Bouncy Castle and OpenSSL verify and read the answer. */
  async function roundTrip(
    [command, options]: CmcCommand,
    connection: { readonly tls?: ClientIdentity; readonly path?: string } = {},
  ): Promise<RoundTrip> {
    const [out, answer, certificates] = [file('request'), file('response'), file('certificates.pem')];
    await client.run([command, { ...options, out }]);
    const { status: http, text } = await postCmc(server, readFileSync(out), connection.tls, connection.path);
    writeFileSync(answer, Buffer.from(text, 'base64'));
    const root = join(server.dir, 'ca/root.pem');
    openssl(['cms', '-verify', '-binary', '-inform', 'DER', '-in', answer, '-CAfile', root, '-purpose', 'any']);
    const response = await client.read({ in: answer, out: certificates });
    expect(response.verified).toBe(true);
    expect(response.controls.get('recipientNonce')).toMatch(/^[0-9a-f]{32}$/);
    expect(response.controls.get('senderNonce')).not.toBe(response.controls.get('recipientNonce'));
    const issued = parsePemCertificates(readFileSync(certificates, 'utf8')).filter(({ isCa }) => !isCa);
    return { http, issued, ...response };
  }

  const holder = (name: string): { cert: string; key: string } => ({
    cert: file(`${name}.pem`),
    key: file(`${name}.key`),
  });
  const status = (number: number, ...body: number[]) => expect.objectContaining({ status: number, body }) as unknown;
  /** Keeps a new certificate and its key under a name, for later messages. */
  const keep = (name: string, certificate: Certificate | undefined, keyFile: string): void => {
    if (certificate === undefined) throw new Error('no certificate');
    const pem = openssl(['x509', '-inform', 'DER', '-outform', 'PEM'], certificate.der);
    writeFileSync(file(`${name}.pem`), pem);
    writeFileSync(file(`${name}.key`), readFileSync(keyFile), { mode: 0o600 });
    const key = openssl(['pkey', '-in', keyFile, '-pubout', '-outform', 'DER']);
    expect(certificate.publicKey.spki.equals(key)).toBe(true);
  };
  const statusOf = async (name: string): Promise<unknown> => {
    const [certificate] = parsePemCertificates(readFileSync(file(`${name}.pem`), 'utf8'));
    const { json } = await server.admin('GET', `/admin/certificates/${certificate?.serialNumber ?? ''}`);
    return json['status'] === 'revoked' ? json['reason'] : json['status'];
  };

  test.each([
    ['PKCS#10', { format: 'pkcs10' }],
    ['CRMF', { format: 'crmf' }],
  ])('a first enrollment, proved by a shared secret and signed with the requested key: %s', async (kind, options) => {
    const newkey = file(`first-${kind}`);
    const { http, statuses, issued } = await roundTrip([
      'enroll',
      { subject: `CN=first ${kind}`, newkey, ...SECRETS, ...options },
    ]);
    expect(http).toBe(200);
    expect(statuses).toEqual([status(SUCCESS, 1)]);
    expect(issued.map(({ subject }) => formatName(subject))).toEqual([`CN=first ${kind}`]);
    keep(`first-${kind}`, issued[0], `${newkey}-1.pem`);
  });

  test('a first enrollment in AuthenticatedData under the shared secret', async () => {
    const newkey = file('mac');
    const { http, statuses, issued } = await roundTrip([
      'enroll',
      { subject: 'CN=mac', newkey, mac: 'yes', ...SECRETS },
    ]);
    expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
    keep('mac', issued[0], `${newkey}-1.pem`);
  });

  test.each([
    ['identityProofV2', {}],
    ['AuthenticatedData', { mac: 'yes' }],
  ])('a wrong shared secret is badIdentity: %s', async (_, options) => {
    const { http, statuses, issued } = await roundTrip([
      'enroll',
      { subject: 'CN=x', newkey: file('wrong'), identification: IDENTIFICATION, secret: 'another', ...options },
    ]);
    expect(http).toBe(401);
    expect(statuses).toEqual([expect.objectContaining({ status: FAILED, failInfo: BAD_IDENTITY })]);
    expect(issued).toEqual([]);
  });

  test.each(['pkcs10', 'crmf'])('an enrollment and a key update by the holder of a certificate: %s', async (format) => {
    const newkey = file(`update-${format}`);
    const command: CmcCommand = ['enroll', { subject: 'CN=device-1', newkey, format, ...holder('device') }];
    const { http, statuses, issued } = await roundTrip(command, { tls: device });
    expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
    keep(`update-${format}`, issued[0], `${newkey}-1.pem`);
    // The new certificate works where the old one did.
    const tls = {
      cert: readFileSync(file(`update-${format}.pem`), 'utf8'),
      key: readFileSync(file(`update-${format}.key`), 'utf8'),
    };
    const again = await roundTrip(
      ['enroll', { subject: 'CN=device-1', newkey: file('again'), format, ...holder(`update-${format}`) }],
      { tls },
    );
    expect({ http: again.http, issued: again.issued.length }).toEqual({ http: 200, issued: 1 });
  });

  test('three requests of which the second is not signed with its key: the others are issued', async () => {
    const command: CmcCommand = [
      'enroll',
      { subject: 'CN=a|CN=b|CN=c', newkey: file('three'), bad: '2', ...holder('ra') },
    ];
    const { http, statuses, issued } = await roundTrip(command, { tls: ra });
    expect(http).toBe(200);
    expect(statuses).toContainEqual(expect.objectContaining({ status: FAILED, body: [2], failInfo: POP_FAILED }));
    expect(issued.map(({ subject }) => formatName(subject)).sort()).toEqual(['CN=a', 'CN=c']);
  });

  test('a batch of three messages of which the second is wrong: each has its own answer', async () => {
    const parts = ['p1', 'p2', 'p3'];
    const enroll = (name: string, more: Readonly<Record<string, string>> = {}): CmcCommand => [
      'enroll',
      { subject: 'CN=device-1', newkey: file(name), out: file(`${name}.req`), ...holder('device'), ...more },
    ];
    await client.run(enroll('p1'), enroll('p2', { bad: '1' }), enroll('p3', { format: 'crmf' }));
    const batch: CmcCommand = ['batch', { in: parts.map((name) => file(`${name}.req`)).join('|'), ...holder('ra') }];
    const { http, responses, issued, controls } = await roundTrip(batch, { tls: ra });
    expect(http).toBe(200);
    expect(controls.get('batchResponses')?.split(',')).toHaveLength(3);
    expect(responses.map(({ verified }) => verified)).toEqual([true, true, true]);
    expect(responses.map(({ statuses }) => statuses.map((status) => [status.status, status.failInfo]))).toEqual([
      [[SUCCESS, undefined]],
      [[FAILED, POP_FAILED]],
      [[SUCCESS, undefined]],
    ]);
    expect(issued.map(({ subject }) => formatName(subject))).toEqual(['CN=device-1', 'CN=device-1']);
  });

  test('another client than the RA may not ask for other names', async () => {
    const command: CmcCommand = ['enroll', { subject: 'CN=other', newkey: file('other'), ...holder('device') }];
    const { http, statuses, issued } = await roundTrip(command, { tls: device });
    expect(http).toBe(403);
    expect(statuses).toEqual([expect.objectContaining({ status: FAILED, body: [1], failInfo: BAD_IDENTITY })]);
    expect(issued).toEqual([]);
  });

  test('confirmCertAcceptance by the owner', async () => {
    const { http, statuses } = await roundTrip(['confirm', { target: file('update-crmf.pem'), ...holder('device') }], {
      tls: device,
    });
    expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
  });

  describe('revocation', () => {
    test('by the owner', async () => {
      const command: CmcCommand = ['revoke', { target: file('update-pkcs10.pem'), reason: '4', ...holder('device') }];
      const { http, statuses } = await roundTrip(command, { tls: device });
      expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
      expect(await statusOf('update-pkcs10')).toBe('superseded');
    });

    test('not by another', async () => {
      const command: CmcCommand = ['revoke', { target: file('first-PKCS#10.pem'), ...holder('device') }];
      const { http, statuses } = await roundTrip(command, { tls: device });
      expect(http).toBe(403);
      expect(statuses).toEqual([expect.objectContaining({ status: FAILED, failInfo: BAD_IDENTITY })]);
      expect(await statusOf('first-PKCS#10')).toBe('valid');
    });

    test('by an RA', async () => {
      const command: CmcCommand = ['revoke', { target: file('first-PKCS#10.pem'), reason: '5', ...holder('ra') }];
      const { http, statuses } = await roundTrip(command, { tls: ra });
      expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
      expect(await statusOf('first-PKCS#10')).toBe('cessationOfOperation');
    });

    test('unsigned, with the shared secret', async () => {
      const target = { target: file('first-CRMF.pem') };
      const wrong = await roundTrip(['revoke', { ...target, 'revocation-secret': 'another' }]);
      expect(wrong.http).toBe(401);
      expect(await statusOf('first-CRMF')).toBe('valid');
      const { http, statuses } = await roundTrip(['revoke', { ...target, 'revocation-secret': SECRET }]);
      expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
      expect(await statusOf('first-CRMF')).toBe('keyCompromise');
    });

    test('in AuthenticatedData under the shared secret', async () => {
      const { http, statuses } = await roundTrip(['revoke', { target: file('mac.pem'), mac: 'yes', ...SECRETS }]);
      expect({ http, statuses }).toEqual({ http: 200, statuses: [status(SUCCESS, 1)] });
      expect(await statusOf('mac')).toBe('keyCompromise');
    });
  });

  test('pending, queryPending until it is approved, and the certificate', async () => {
    const connection = { path: 'lab/fullcmc' };
    const newkey = file('queued');
    const queued = await roundTrip(['enroll', { subject: 'CN=queued', newkey, mac: 'yes', ...SECRETS }], connection);
    expect(queued.http).toBe(200);
    const pending = queued.statuses.find(({ status: number }) => number === PENDING);
    expect(pending).toMatchObject({ body: [1] });
    const token = pending?.pendToken;
    if (token === undefined) throw new Error('no pendToken');

    const query: CmcCommand = ['query', { token, mac: 'yes', ...SECRETS }];
    const waiting = await roundTrip(query, connection);
    expect(waiting.statuses).toContainEqual(expect.objectContaining({ status: PENDING, pendToken: token }));
    expect(waiting.issued).toEqual([]);

    const [request] = itemsOf((await server.admin('GET', '/admin/requests?status=pending')).json);
    const approved = await server.admin('POST', `/admin/requests/${String(request?.['id'])}/approve`);
    expect(approved.status).toBe(200);
    const done = await roundTrip(query, connection);
    expect(done.http).toBe(200);
    expect(done.statuses).toEqual([status(SUCCESS, 1)]);
    expect(done.issued.map(({ subject }) => formatName(subject))).toEqual(['CN=queued']);
    keep('queued', done.issued[0], `${newkey}-1.pem`);
  });
});
