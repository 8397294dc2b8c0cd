/**
 * Which credentials authenticate in full CMC at the built server: `[ca.auth] methods`, `client_issuers`, and the labels of a shared secret.
 *
 * Longer than other files: each rule is tried with each kind of sender, at one server.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildControl, KEYED_WITNESS } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, encodeReqSequence, type TaggedAttribute } from '../../src/pki/cmc/pki-data.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import {
  exchange,
  fullRequest,
  IDENTIFICATION,
  inShort,
  issuedBy,
  issuedOutside,
  ownKeyIdentifier,
  pendTokenOf,
  postCmc,
  readResponse,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  withParticipants,
  type CmcReply,
} from '../support/cmc.ts';
import {
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  extensionRequest,
  makeKey,
  onTheWire,
  revocationChallenge,
  san,
  simpleCsr,
  type TestKey,
} from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { buildAuthenticatedData, createIdentityProof, createPopLinkWitness } from '../support/cmc-secrets.ts';

const maker = await makeCa('CN=Maker');
const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);

/** A device with the manufacturer's certificate. */
async function madeDevice(cn = 'device-1'): Promise<ClientIdentity> {
  const leaf = await makeClient(`CN=${cn}`, maker);
  return { cert: pem(leaf), key: pkcs8Pem(leaf.keys) };
}

/** Labels with these methods of the CA "devices". */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  certificates: ['mtls'],
  secrets: ['cmc'],
  passwords: ['otp'],
  both: ['mtls', 'cmc'],
};
const LIMIT = 3;

/** A certificate of the other CA, which does not count at the labels of "devices". */
const madeAtLab = (): Promise<ClientIdentity> =>
  Promise.resolve(issuedOutside(server, 'lab', makeKey(), '/CN=device-1', ['extendedKeyUsage=clientAuth']));
const certificatesIn = (answer: Answer): Certificate[] => certificatesOf(answer).map(parseCertificate);

const setting = withParticipants((config, dir) => {
  section(config, 'est')['fullcmc_require_mtls'] = false;
  Object.assign(section(config, 'otp'), { max_failures: LIMIT, lockout_scope: 'address' });
  appendFileSync(join(dir, 'tls/client-anchors.pem'), pem(maker));
  writeFileSync(join(dir, 'lab.secret'), 'a secret for the lab alone', { mode: 0o600 });
  const cmc = section(config, 'cmc');
  const secrets = cmc['shared_secrets'];
  if (!Array.isArray(secrets)) throw new TypeError('no secrets');
  secrets.push({ identification: 'lab device', secret_file: 'lab.secret', ca: ['lab', 'both'] });
  config['label'] = Object.entries(METHODS).map(([name, methods]) => ({
    name,
    ca: 'devices',
    auth: { methods: [...methods] },
    profile: structuredClone(section(caSection(config), 'profile')),
  }));
  caSection(config, 1)['approval'] = 'manual';
});
let server: Estuary;
let device: ClientIdentity;

beforeAll(async () => {
  server = await Estuary.start({ configure: setting.configure });
  device = await madeDevice();
});
afterAll(() => server.stop());
afterEach(() => server.admin('DELETE', '/admin/lockouts/address:127.0.0.1'));

interface SharedSecret {
  readonly identification: string;
  readonly secret: string;
}
const OWN: SharedSecret = { identification: IDENTIFICATION, secret: SECRET };
const LAB: SharedSecret = { identification: 'lab device', secret: 'a secret for the lab alone' };

const identified = ({ identification }: SharedSecret): TaggedAttribute =>
  buildControl(111, 'identification', identification);
const known = ({ secret, identification }: SharedSecret) => ({ secret: Buffer.from(secret), identification });

interface Asked {
  readonly secret?: SharedSecret;
  /** Signs the message; else the requested key does. */
  readonly signer?: ClientIdentity;
  readonly key?: TestKey;
  readonly cn?: string;
  readonly names?: readonly Buffer[];
}

/** A message with one request; with identityProofV2 if it has a secret. */
function message({ secret, signer, key = makeKey(), cn = 'device-1', names = [] }: Asked = {}): Promise<Buffer> {
  const random = randomBytes(64);
  const extensions = [ownKeyIdentifier(key), ...(names.length === 0 ? [] : [san(...names)])];
  const link = secret !== undefined && signer !== undefined ? [witness(random, secret)] : [];
  const csr = buildCsr(key, { subject: commonName(cn), attributes: [extensionRequest(...extensions), ...link] });
  const reqSequence = [tcr(1, csr)];
  const proof = secret && createIdentityProof(encodeReqSequence(reqSequence), known(secret));
  const controlSequence = [
    buildControl(102, 'senderNonce', randomBytes(16)),
    ...(secret === undefined || proof === undefined
      ? []
      : [identified(secret), buildControl(112, 'identityProofV2', proof)]),
    ...(link.length === 0 ? [] : [buildControl(113, 'popLinkRandom', random)]),
  ];
  return signer === undefined
    ? fullRequest({ controlSequence, reqSequence }, { signers: [requestedKey(key)] })
    : requestBy(signer, { controlSequence, reqSequence });
}

const witness = (random: Buffer, { secret }: SharedSecret): Buffer =>
  csrAttribute(OID.popLinkWitnessV2, KEYED_WITNESS.encode(createPopLinkWitness(random, Buffer.from(secret))));

/** AuthenticatedData, linked by popLinkWitnessV2. */
function macked(shared: SharedSecret = OWN, key = makeKey()): Promise<Buffer> {
  const random = randomBytes(64);
  const csr = buildCsr(key, { subject: commonName('device-1'), attributes: [witness(random, shared)] });
  const controlSequence = [identified(shared), buildControl(113, 'popLinkRandom', random)];
  const content = buildPkiData({ controlSequence, reqSequence: [tcr(1, csr)] });
  const password = Buffer.from(`${shared.identification}${shared.secret}`);
  return Promise.resolve(buildAuthenticatedData(OID.pkiData, content, password));
}

const revoke = (certificate: Certificate, sharedSecret?: string): TaggedAttribute =>
  buildControl(120, 'revokeRequest', {
    issuer: certificate.issuer,
    serialNumber: certificate.serialNumber,
    reason: 'superseded',
    ...(sharedSecret === undefined ? {} : { sharedSecret: Buffer.from(sharedSecret) }),
  });

const summary = (reply: CmcReply): string => `${reply.status} ${inShort(reply).join(', ')}`;
const send = (label: string, der: Promise<Buffer>, client?: ClientIdentity): Promise<CmcReply> =>
  exchange(server, der, client, `${label}/fullcmc`);
const ask = async (...parameters: Parameters<typeof send>): Promise<string> => summary(await send(...parameters));
const text = ({ statuses }: CmcReply): string | undefined => statuses[0]?.statusString;

function only(reply: Pick<CmcReply, 'certificates'>): Certificate {
  const [certificate, ...more] = issuedBy(reply);
  if (certificate === undefined || more.length > 0) throw new Error('not exactly one certificate');
  return certificate;
}

async function requesterOf({ serialNumber }: Certificate): Promise<unknown> {
  return (await server.admin('GET', `/admin/certificates/${serialNumber}?ca=devices`)).json['requester'];
}

/** Changes the table of a further label, and has it count. */
async function change(label: string, changes: TomlTable): Promise<void> {
  server.reconfigure((config) => {
    const labels = config['label'];
    const table: unknown = Array.isArray(labels)
      ? labels.find((one) => section({ one }, 'one')['name'] === label)
      : undefined;
    Object.assign(section({ table: table as TomlTable }, 'table'), changes);
  });
  expect((await server.admin('POST', '/admin/reload')).status).toBe(200);
}
const withMethods = (methods: readonly string[]): TomlTable => ({ auth: { methods: [...methods] } });

const DONE = '200 success [1]';
const NOBODY = '401 failed badIdentity [0]';
const NOT_ACCEPTED = 'client certificate not accepted by this CA';

describe('[ca.auth] methods: a shared secret is the method cmc, a certificate the method mtls', () => {
  const senders: readonly (readonly [sender: string, method: string, ask: (label: string) => Promise<string>])[] = [
    ['identityProofV2', 'cmc', (label) => ask(label, message({ secret: OWN }))],
    ['AuthenticatedData', 'cmc', (label) => ask(label, macked())],
    ['a signature', 'mtls', (label) => ask(label, message({ signer: device }))],
    [
      'a signature, and the same certificate in TLS',
      'mtls',
      (label) => ask(label, message({ signer: device }), device),
    ],
    ['the certificate in TLS', 'mtls', (label) => ask(label, message(), device)],
    ['an RA of [cmc]', 'mtls', (label) => ask(label, message({ signer: setting.participants.configuredRa }))],
  ];
  const cases = senders.flatMap(([sender, method, by]) =>
    Object.entries(METHODS).map(([label, methods]) => ({ sender, label, by, counts: methods.includes(method) })),
  );

  test.each(cases)('$sender at the label "$label": $counts', async ({ label, by, counts }) => {
    expect(await by(label)).toBe(counts ? DONE : NOBODY);
  });

  test('without methods, all of them count', async () => {
    for (const [, , by] of senders) expect(await by('devices')).toBe(DONE);
  });

  test('EST ignores them at a label for shared secrets alone', async () => {
    const { token } = await server.otp();
    const answer = await server.enroll(onTheWire(simpleCsr(makeKey())), {
      path: 'secrets/simpleenroll',
      client: device,
      password: token,
    });
    expect(answer.status).toBe(401);
  });

  test('a message in an RA’s batch', async () => {
    const { configuredRa: ra } = setting.participants;
    const inner = async (label: string): Promise<string> => {
      const cmsSequence = [{ bodyPartID: 7, contentInfo: await message({ secret: OWN }) }];
      const batch = requestBy(ra, { controlSequence: [buildControl(5, 'batchRequests', [7])], cmsSequence });
      const [first] = (await send(label, batch)).inner;
      return first === undefined ? 'no answer' : inShort(readResponse(server, first)).join();
    };
    expect(await inner('both')).toBe('success [1]');
    expect(await inner('certificates')).toBe('failed badIdentity [0]');
    expect(await inner('secrets')).toBe('no answer');
  });

  test('revokeRequest with a shared secret, and with a revocationChallenge', async () => {
    const bySecret = only(await send('both', message({ secret: OWN })));
    const attributes = [revocationChallenge('let me revoke it')];
    const csr = buildCsr(makeKey(), { subject: commonName('device-1'), attributes });
    const answer = await server.enroll(onTheWire(csr), { path: 'both/simpleenroll', client: device });
    const [challenged] = certificatesIn(answer);
    if (challenged === undefined) throw new Error('no certificate');
    const unsigned = (control: TaggedAttribute): Promise<string> =>
      ask('both', fullRequest({ controlSequence: [control] }, {}));
    const signed = (control: TaggedAttribute): Promise<string> =>
      ask('both', requestBy(device, { controlSequence: [control] }));

    await change('both', withMethods(['mtls']));
    for (let i = 0; i <= LIMIT; i++)
      expect(await unsigned(revoke(bySecret, 'wrong'))).toBe('401 failed badIdentity [120]');
    for (const [certificate, secret] of [
      [bySecret, SECRET],
      [challenged, 'let me revoke it'],
    ] as const) {
      expect(await unsigned(revoke(certificate, secret))).toBe('401 failed badIdentity [120]');
      expect(await signed(revoke(certificate, secret))).toBe('403 failed badIdentity [120]');
    }
    await change('both', withMethods(['mtls', 'cmc']));
    expect(await unsigned(revoke(bySecret, SECRET))).toBe('200 success [120]');
    expect(await signed(revoke(challenged, 'let me revoke it'))).toBe('200 success [120]');
  });

  test('queryPending, with the key of the request and with the credential that it was queued by', async () => {
    const key = makeKey();
    const queued = { approval: 'manual' };
    const query = (token: Buffer, secret?: SharedSecret): Promise<string> => {
      const reqSequence: never[] = [];
      const proof = secret && createIdentityProof(encodeReqSequence(reqSequence), known(secret));
      const controlSequence = [
        buildControl(102, 'senderNonce', randomBytes(16)),
        ...(secret === undefined || proof === undefined
          ? []
          : [identified(secret), buildControl(112, 'identityProofV2', proof)]),
        buildControl(5, 'queryPending', token),
      ];
      return ask('both', fullRequest({ controlSequence }, { signers: [requestedKey(key)] }));
    };
    const byDevice = (token: Buffer): Promise<string> =>
      ask('both', requestBy(device, { controlSequence: [buildControl(5, 'queryPending', token)] }));

    await change('both', { ...queued, ...withMethods(['mtls', 'cmc']) });
    const bySecret = pendTokenOf(await send('both', message({ secret: OWN, key })));
    const own = pendTokenOf(await send('both', message({ signer: device })));
    expect([await query(bySecret), await query(bySecret, OWN), await byDevice(own)]).toEqual(
      Array(3).fill('200 pending [5]'),
    );
    await change('both', withMethods(['mtls']));
    expect([await query(bySecret), await query(bySecret, OWN)]).toEqual([NOBODY, NOBODY]);
    await change('both', withMethods(['cmc']));
    expect([await query(bySecret), await byDevice(own)]).toEqual(['200 pending [5]', NOBODY]);
    await change('both', { approval: 'auto', ...withMethods(['mtls', 'cmc']) });
  });
});

describe('the labels of a shared secret', () => {
  test.each([
    ['identityProofV2', (secret: SharedSecret) => message({ secret })],
    ['AuthenticatedData', macked],
  ])('%s: works at these, and counts as unknown at others', async (_, by) => {
    expect(await ask('both', by(LAB))).toBe(DONE);
    expect(await ask('lab', by(LAB))).toBe('200 pending [1]');
    for (let i = 0; i <= LIMIT; i++) {
      const reply = await send('devices', by(LAB));
      expect([reply.status, text(reply)]).toEqual([401, 'The shared secret is wrong.']);
    }
    expect(text(await send('devices', by(OWN)))).toBe('too many failures, locked out');
    const records = itemsOf((await server.admin('GET', '/admin/audit?type=auth.cmc&order=desc&limit=1000')).json);
    expect(records).toContainEqual(
      expect.objectContaining({ ca: 'devices', outcome: 'failure', detail: 'the secret is for other labels' }),
    );
  });

  test('revokeRequest: neither does it revoke elsewhere', async () => {
    const certificate = only(await send('devices', message({ secret: OWN })));
    const controlSequence = [identified(LAB), revoke(certificate, LAB.secret)];
    expect(await ask('devices', fullRequest({ controlSequence }, {}))).toBe('401 failed badIdentity [120]');
  });
});

describe('client_issuers: a certificate that counts enrolls for its own subject', () => {
  test.each([
    ['that signs', (asked: Asked) => ask('devices', message({ ...asked, signer: device }))],
    ['that signs and is in TLS', (asked: Asked) => ask('devices', message({ ...asked, signer: device }), device)],
    ['in TLS', (asked: Asked) => ask('devices', message(asked), device)],
  ])('%s', async (_, by) => {
    expect(await by({})).toBe(DONE);
    expect(await by({ names: [dns('device-1.example')] })).toBe(DONE);
    expect(await by({ cn: 'device-2' })).toBe('403 failed badIdentity [1]');
  });

  test('with the rules of simpleenroll', async () => {
    const both = async (): Promise<unknown[]> => {
      const csr = buildCsr(makeKey(), {
        subject: commonName('device-1'),
        attributes: [extensionRequest(san(dns('device-1.example')))],
      });
      const est = await server.enroll(onTheWire(csr), { path: 'certificates/simpleenroll', client: device });
      const cmc = await send('certificates', requestBy(device, { reqSequence: [tcr(1, csr)] }));
      return [est.status, cmc.status, est.status === 200 ? text(cmc) : text(cmc) === est.text];
    };
    expect(await both()).toEqual([200, 200, undefined]);
    await change('certificates', { devices: 'required' });
    expect(await both()).toEqual([403, 403, true]);
    const match = { issuer: 'CN=Maker', common_name: 'device-1' };
    expect((await server.admin('POST', '/admin/devices', { id: 'made-1', match })).status).toBe(201);
    expect(await both()).toEqual([200, 200, undefined]);
    await server.admin('PATCH', '/admin/devices/made-1', { enabled: false });
    expect(await both()).toEqual([403, 403, true]);
    await change('certificates', { devices: 'off', profile: { mtls_subject: 'same' } });
    expect(await both()).toEqual([403, 403, true]);
  });

  test('one that does not count is as none: the shared secret authenticates, or 403', async () => {
    const lab = await madeAtLab();
    for (const [der, client] of [
      [message({ signer: lab }), undefined],
      [message({ signer: lab }), lab],
      [message(), lab],
    ] as const) {
      const reply = await send('devices', der, client);
      expect([summary(reply), text(reply)]).toEqual(['403 failed badIdentity [0]', NOT_ACCEPTED]);
    }
    for (const signer of [lab, undefined])
      for (const client of [lab, undefined]) {
        const asked = signer === undefined ? { secret: OWN } : { secret: OWN, signer };
        expect(await ask('devices', message(asked), client)).toBe(DONE);
      }
  });
});

describe('the holder of a shared secret enrolls again with the same key, while its first certificate is valid', () => {
  test('signed with that key, for any name', async () => {
    const key = makeKey();
    only(await send('devices', message({ secret: OWN, key })));
    const second = only(await send('devices', message({ secret: OWN, key, cn: 'another' })));
    expect([second.spki.equals(key.spki), formatName(second.subject)]).toEqual([true, 'CN=another']);
    expect(await requesterOf(second)).toBe(`identification:${IDENTIFICATION}`);
  });

  test('without a secret, the first certificate is renewed: it keeps its names', async () => {
    const key = makeKey();
    only(await send('devices', message({ secret: OWN, key })));
    expect(await ask('devices', message({ key }))).toBe(DONE);
    expect(await ask('devices', message({ key, cn: 'another' }))).toBe('403 failed badIdentity [1]');
    const { ra } = setting.participants;
    expect(await ask('devices', message({ key }), ra)).toBe(DONE);
    expect(await ask('devices', message({ key, cn: 'another' }), ra)).toBe('403 failed badIdentity [1]');
  });
});

test('fullcmc_require_mtls: a certificate is required of the connection, also where it is not a method', async () => {
  server.reconfigure((config) => {
    section(config, 'est')['fullcmc_require_mtls'] = true;
  });
  server.server.signal('SIGTERM');
  await server.server.exited;
  await server.restart();
  const without = await postCmc(server, await message({ secret: OWN }), undefined, 'secrets/fullcmc');
  expect([without.status, without.text]).toEqual([401, 'client certificate required']);
  expect(await ask('secrets', message({ secret: OWN }), device)).toBe(DONE);
  expect(await ask('secrets', message(), device)).toBe(NOBODY);
  const lab = await madeAtLab();
  const other = await postCmc(server, await message({ secret: OWN }), lab, 'secrets/fullcmc');
  expect([other.status, other.text]).toEqual([403, NOT_ACCEPTED]);
});
