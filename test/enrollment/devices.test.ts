/** `devices = "required"`, on a separate store, without a server. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CmcIdentity, Identity, MtlsIdentity } from '../../src/auth/identity.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import { Authenticated } from '../../src/enrollment/authenticated.ts';
import type { NameRight } from '../../src/enrollment/names.ts';
import type { EnrollmentOutcome, EstEnrollment } from '../../src/enrollment/request.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { spkiHash } from '../../src/pki/x509/public-key.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import type { DeviceRow } from '../../src/store/device-store.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { deviceRow, otpRow, T0 } from '../store/rows.ts';
import { deviceOf } from '../support/devices.ts';
import { openedIn } from '../store/support.ts';
import { ecdsaTwin, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, mtlsIdentity, otpIdentity, received } from './support.ts';
import type { DeviceMatch } from '../../src/store/device-match.ts';

const folder = temporaryFolder();
let store: Store;
let open: Ca;
let required: Ca;
let manual: Ca;
/** Of a manufacturer: CN=unit, serialNumber=4711. */
let foreign: Certificate;
/** Of this server, recorded without a device. */
let own: Certificate;

const key = makeKey();
const csr = simpleCsr(key, 'device-1', []);

beforeAll(async () => {
  store = await openedIn(folder);
  open = await fileCa(folder, 'devices', true);
  const changed = (more: Partial<Pick<CaConfig, 'approval'>>): Ca =>
    new Ca({ ...open.config, devices: 'required', ...more }, open.driver);
  required = changed({});
  manual = changed({ approval: 'manual' });
  foreign = parseCertificate((await makeClient('CN=unit,serialNumber=4711', makerCa)).der);
  own = issued(await sent({ identity: (await token()).identity, ca: open }));
});
afterAll(async () => {
  await store.close();
  folder.remove();
});
beforeEach(async () => {
  const { items } = await store.listDevices({ limit: 100 });
  for (const { key: one } of items) await store.deleteDevice(one, []);
});

async function enter(more: Partial<DeviceRow> = {}): Promise<DeviceRow> {
  const row = deviceRow(more);
  expect(await store.putDevices([{ row, events: [] }], 'create')).toMatchObject([{ result: 'created' }]);
  return row;
}

async function token(client_id = 'device-1') {
  const row = otpRow({ client_id, max_uses: 5 });
  await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}`, client_id, display: client_id });
  return { identity, uses: async () => (await store.getOtp(row.id))?.uses };
}

interface Sending {
  readonly identity: Identity;
  readonly ca?: Ca;
  readonly operation?: EstEnrollment;
  readonly body?: Buffer;
}

async function sent({ identity, ca = required, operation = 'simpleenroll', body = csr }: Sending) {
  const request = received(ca, body, { requestId: randomUUID(), operation });
  return (await pipeline({ store, identity }).enroll(request)).outcome;
}

/** A request of a CMC message. */
async function sentByCmc(identity: CmcIdentity, right: NameRight): Promise<unknown> {
  const base = received(required, csr, { requestId: randomUUID() });
  const authenticated = Authenticated.bySender(
    { ...base, operation: 'fullcmc', linking: { kind: 'carried' } },
    identity,
    right,
  );
  return pipeline({ store, identity }).admit(authenticated);
}

const dryRun = (identity: Identity, operation: EstEnrollment): Promise<unknown> =>
  pipeline({ store, identity }).admit(
    Authenticated.forDryRun({ ...received(required, csr, { requestId: randomUUID() }), operation }, identity),
  );

function issued(outcome: EnrollmentOutcome): Certificate {
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return parseCertificate(outcome.certificate);
}

const deviceOfCertificate = async (certificate: Certificate) =>
  (await store.getCertificates(certificate.serialNumber)).find(({ der }) => der.equals(certificate.der))?.device;

const NOT_REGISTERED = { status: 403, code: 'DEVICE_NOT_REGISTERED', message: 'device not registered' };
const AMBIGUOUS = { status: 403, code: 'DEVICE_AMBIGUOUS' };

const gssapi = (principal: string): Identity => ({
  method: 'gssapi',
  requester: `gssapi:${principal}`,
  display: principal,
  principal,
  subject: parseDistinguishedName('CN=device-1'),
  replyToken: undefined,
});

const makerCa = await makeCa('CN=Maker,O=Example');
const maker = { issuer_spki_sha256: spkiHash(parseCertificate(makerCa.der)) };
/** A match by the CA of this server. */
const ours = (): DeviceMatch => ({ issuer_spki_sha256: spkiHash(open.certificate), common_name: 'device-1' });

/** The holder of the manufacturer's certificate. */
const ofMaker = (certificate = foreign) => mtlsIdentity(certificate, parseCertificate(makerCa.der));
/** The holder of a certificate of this server. */
const ofUs = (certificate: Certificate) => mtlsIdentity(certificate, open.certificate);
/** Of a certificate as it is, and with the other form of its ECDSA signature. */
const encodings = (certificate: Certificate) => [certificate, parseCertificate(ecdsaTwin(certificate.der))];

describe('devices = "required"', () => {
  test('a token is of the device that has its client_id as id, and the certificate is recorded with it', async () => {
    const { identity, uses } = await token();
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ id: 'device-2' });
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    expect(await uses()).toBe(0);
    const device = await enter();
    const certificate = issued(await sent({ identity }));
    expect(await deviceOfCertificate(certificate)).toBe('device-1');
    const history = await store.deviceHistory(device, 10);
    expect(history.certificates.map(({ serial }) => serial)).toEqual([certificate.serialNumber]);
    expect(history.events.map(({ type }) => type)).toContain('certificate.issued');
  });

  test('a principal is of the device that has it as id', async () => {
    const identity = gssapi('host/a.example.com@EXAMPLE.COM');
    await enter({ id: 'host/a.example.com' });
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ id: 'host/a.example.com@EXAMPLE.COM' });
    expect(await deviceOfCertificate(issued(await sent({ identity })))).toBe('host/a.example.com@EXAMPLE.COM');
  });

  test.each<[string, () => DeviceMatch]>([
    ['issuer and serialNumber', () => ({ ...maker, serial_number: '4711' })],
    ['issuer and CN', () => ({ ...maker, common_name: 'unit' })],
    ['issuer', () => maker],
    ['fingerprint', () => ({ fingerprint_sha256: foreign.fingerprint })],
  ])('a foreign certificate is of the device whose match fits: %s', async (_, match) => {
    const identity = ofMaker();
    await enter({ match: { ...maker, serial_number: '4712' } });
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ id: 'unit-4711', match: match() });
    expect(await deviceOfCertificate(issued(await sent({ identity })))).toBe('unit-4711');
  });

  test.each<[string, Partial<DeviceRow>]>([
    ['disabled', { enabled: false }],
    ['expired', { not_after: T0 + 1000 }],
    ["limited to another CA's label", { ca: 'lab' }],
  ])('a device that is %s gets nothing', async (_, more) => {
    await enter({ ...more, match: maker });
    await expect(sent({ identity: (await token()).identity })).rejects.toMatchObject(NOT_REGISTERED);
    await expect(sent({ identity: ofMaker() })).rejects.toMatchObject(NOT_REGISTERED);
  });

  test('what reserves nothing refuses such a device too: the admission, and the answer to a repeated request', async () => {
    const { identity } = await token();
    const admitted = () => dryRun(identity, 'simpleenroll');
    const repeated = () =>
      pipeline({ store, identity, retryWindow: 10_000 }).enroll(received(required, csr, { requestId: randomUUID() }));
    await enter({ not_after: T0 + 1001 });
    await admitted();
    const first = issued((await repeated()).outcome);
    expect(issued((await repeated()).outcome)).toEqual(first);
    for (const change of [{ enabled: false }, { enabled: true, not_after: T0 + 1000 }]) {
      await store.changeDevice(await deviceOf(store, 'device-1'), change, T0, []);
      await expect(admitted()).rejects.toMatchObject(NOT_REGISTERED);
      await expect(repeated()).rejects.toMatchObject(NOT_REGISTERED);
    }
    await store.changeDevice(await deviceOf(store, 'device-1'), { not_after: null }, T0, []);
    await admitted();
  });

  test('a label uses its own device with an ID before the one without a label, also if it is disabled', async () => {
    const { identity } = await token();
    await enter({ attributes: { a: 'general' } });
    await enter({ ca: 'elsewhere', enabled: false });
    expect((await sent({ identity })).status).toBe('issued');
    await enter({ ca: required.label, enabled: false });
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
  });

  test('two matches are ambiguous, even if one of them is disabled', async () => {
    await enter({ id: 'a', match: { ...maker, common_name: 'unit' } });
    await enter({ id: 'b', match: { ...maker, serial_number: '4711' }, enabled: false });
    await expect(sent({ identity: ofMaker() })).rejects.toMatchObject(AMBIGUOUS);
    await store.changeDevice(await deviceOf(store, 'b'), { ca: 'lab' }, T0, []);
    expect(await deviceOfCertificate(issued(await sent({ identity: ofMaker() })))).toBe('a');
  });

  test('a certificate of ours is of the device it was recorded with, else it is matched like a foreign one', async () => {
    const renewal = { identity: ofUs(own), operation: 'simplereenroll' } as const;
    await expect(sent(renewal)).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ id: 'adopted', match: ours() });
    const renewed = issued(await sent(renewal));
    expect(await deviceOfCertificate(renewed)).toBe('adopted');
    await store.changeDevice(await deviceOf(store, 'adopted'), { match: null }, T0, []);
    const again = issued(await sent({ ...renewal, identity: ofUs(renewed) }));
    expect(await deviceOfCertificate(again)).toBe('adopted');
  });

  test('disabling a device stops its renewals at once, and its history says so', async () => {
    const device = await enter();
    const certificate = issued(await sent({ identity: (await token()).identity }));
    const renewal = { identity: ofUs(certificate), operation: 'simplereenroll' } as const;
    issued(await sent(renewal));
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: false }, T0, []);
    await expect(sent(renewal)).rejects.toMatchObject(NOT_REGISTERED);
    const [latest] = (await store.deviceHistory(device, 1)).events;
    expect(latest).toMatchObject({
      type: 'certificate.denied',
      detail: expect.stringMatching(/^simplereenroll: DEVICE_NOT_REGISTERED: /) as string,
    });
  });

  test('a disabled device renews with no encoding of its certificate, on EST, CMC and in the queue', async () => {
    await enter();
    const certificate = issued(await sent({ identity: (await token()).identity }));
    const [, twin = certificate] = encodings(certificate);
    const renewal = { identity: ofUs(twin), operation: 'simplereenroll' } as const;
    expect(await deviceOfCertificate(issued(await sent(renewal)))).toBe('device-1');
    // An entry that fits the certificate does not make up for the device that it was recorded with.
    await enter({ id: 'other', match: ours() });
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: false }, T0, []);
    for (const one of [certificate, twin]) {
      const identity = ofUs(one);
      for (const ca of [required, manual])
        for (const operation of ['simplereenroll', 'simpleenroll', 'serverkeygen'] as const)
          await expect(sent({ identity, ca, operation })).rejects.toMatchObject(NOT_REGISTERED);
      const { requester, display, issuer } = identity;
      const signer: CmcIdentity = { method: 'cmc', requester, display, issuer, certificate: one };
      for (const right of [{ kind: 'renewal', certificate: one }, { kind: 'any' }] as const)
        await expect(sentByCmc(signer, right)).rejects.toMatchObject(NOT_REGISTERED);
    }
  });

  test('a certificate of another CA with our name and serial number is not of the device', async () => {
    const device = await enter();
    const certificate = issued(await sent({ identity: (await token()).identity }));
    const namesake = await makeCa(formatName(open.certificate.subject), { slot: 'another key' });
    const { der } = await makeClient('CN=device-1', namesake, { serial: certificate.serialNumber });
    const identity = mtlsIdentity(parseCertificate(der), parseCertificate(namesake.der));
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    expect((await store.deviceHistory(device, 1)).events[0]?.type).toBe('certificate.issued');
  });

  test('a fingerprint matches the certificate and its ECDSA twin', async () => {
    const [first, twin] = encodings(foreign);
    for (const registered of [first, twin]) {
      const device = await enter({ id: 'unit', match: { fingerprint_sha256: registered?.fingerprint ?? '' } });
      for (const one of [first, twin])
        expect(await deviceOfCertificate(issued(await sent({ identity: ofMaker(one) })))).toBe('unit');
      await store.deleteDevice(device.key, []);
    }
  });

  test('a fingerprint with the issuer of another manufacturer does not match', async () => {
    const match = { fingerprint_sha256: foreign.fingerprint, issuer_spki_sha256: '00'.repeat(32) };
    await enter({ id: 'unit', match });
    await expect(sent({ identity: ofMaker() })).rejects.toMatchObject(NOT_REGISTERED);
  });

  test("an issuer with the manufacturer's name and another key does not match", async () => {
    await enter({ id: 'unit', match: { ...maker, serial_number: '4711' } });
    const namesake = await makeCa('CN=Maker,O=Example', { slot: 'another key' });
    const { der } = await makeClient('CN=unit,serialNumber=4711', namesake);
    const identity = mtlsIdentity(parseCertificate(der), parseCertificate(namesake.der));
    await expect(sent({ identity })).rejects.toMatchObject(NOT_REGISTERED);
    expect(await deviceOfCertificate(issued(await sent({ identity: ofMaker() })))).toBe('unit');
  });

  test("a deleted id's certificates do not pass to a new device of that id", async () => {
    const device = await enter();
    const certificate = issued(await sent({ identity: (await token()).identity }));
    await store.deleteDevice(device.key, []);
    await enter({ match: ours() });
    const renewal = { identity: ofUs(certificate), operation: 'simplereenroll' } as const;
    await expect(sent(renewal)).rejects.toMatchObject(NOT_REGISTERED);
  });

  test('serverkeygen asks for a device before it makes a key', async () => {
    const { identity } = await token();
    await expect(sent({ identity, operation: 'serverkeygen' })).rejects.toMatchObject(NOT_REGISTERED);
    await enter();
    expect(await sent({ identity, operation: 'serverkeygen' })).toMatchObject({ status: 'issued' });
  });

  test('the device is asked for before the body is read', async () => {
    const { identity } = await token();
    await expect(sent({ identity, body: Buffer.from('nonsense') })).rejects.toMatchObject(NOT_REGISTERED);
  });

  test('fullcmc: a signer by its certificate, a shared secret by its identification', async () => {
    const signer: CmcIdentity = {
      method: 'cmc',
      requester: 'cmc:x',
      display: 'x',
      certificate: foreign,
      issuer: parseCertificate(makerCa.der),
    };
    const secret: CmcIdentity = { ...signer, certificate: undefined };
    const bySecret = { kind: 'secret', identification: 'device-1' } as const;
    await expect(sentByCmc(signer, { kind: 'renewal', certificate: foreign })).rejects.toMatchObject(NOT_REGISTERED);
    await expect(sentByCmc(signer, { kind: 'any' })).rejects.toMatchObject(NOT_REGISTERED);
    await expect(sentByCmc(secret, bySecret)).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ match: maker });
    for (const right of [{ kind: 'renewal', certificate: foreign }, { kind: 'any' }] as const)
      expect(await sentByCmc(signer, right)).toMatchObject({ request: { device: { id: 'device-1' } } });
    expect(await sentByCmc(secret, bySecret)).toMatchObject({ request: { device: { id: 'device-1' } } });
  });

  test('a queued request carries its device; disabled before the approval or after it, there is no certificate', async () => {
    const { identity } = await token();
    const device = await enter();
    const poll = () => sent({ identity, ca: manual });
    const outcome = await poll();
    if (outcome.status !== 'pending') throw new Error(outcome.status);
    const { requestId } = outcome;
    expect(await store.getRequest(requestId)).toMatchObject({ device: 'device-1', device_key: device.key });
    const approval = { id: requestId, status: 'approved', reason: null, decided_at: T0 } as const;
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: false }, T0, []);
    expect(await store.decideRequest(approval, [])).toBe('device-refused');
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: true }, T0, []);
    expect(await store.decideRequest(approval, [])).toBe('decided');
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: false }, T0, []);
    await expect(poll()).rejects.toMatchObject(NOT_REGISTERED);
    await store.changeDevice(await deviceOf(store, 'device-1'), { enabled: true }, T0, []);
    expect(await deviceOfCertificate(issued(await poll()))).toBe('device-1');
  });
});

describe('devices = "off"', () => {
  const seen = async (device: DeviceRow) => {
    const { certificates, events } = await store.deviceHistory(device, 10);
    return { serials: certificates.map(({ serial }) => serial), types: events.map(({ type }) => type) };
  };

  test('every requester gets a certificate, and the device that it is shows it in its history, even if disabled', async () => {
    const device = await enter({ enabled: false, not_after: T0 });
    const first = issued(await sent({ identity: (await token()).identity, ca: open }));
    const renewed = issued(await sent({ identity: ofUs(first), operation: 'simplereenroll', ca: open }));
    expect((await seen(device)).serials).toEqual([renewed.serialNumber, first.serialNumber]);
    const unit = await enter({ id: 'unit-4711', match: { ...maker, serial_number: '4711' }, enabled: false });
    const matched = issued(await sent({ identity: ofMaker(), ca: open }));
    expect((await seen(unit)).serials).toEqual([matched.serialNumber]);
    for (const ca of ['lab', null]) {
      await store.changeDevice(await deviceOf(store, 'unit-4711'), { ca }, T0, []);
      if (ca === null) await enter({ id: 'same-unit', match: maker });
      expect(await deviceOfCertificate(issued(await sent({ identity: ofMaker(), ca: open })))).toBeNull();
    }
  });

  test('a queued request is in the history of its device, and no rule for devices applies to it', async () => {
    const device = await enter({ enabled: false });
    const ca = new Ca({ ...open.config, approval: 'manual' }, open.driver);
    const { identity } = await token();
    const poll = () => sent({ identity, ca });
    const outcome = await poll();
    if (outcome.status !== 'pending') throw new Error(outcome.status);
    const { requestId: id } = outcome;
    expect((await store.deviceHistory(device, 10)).requests).toMatchObject([{ id, device: 'device-1' }]);
    expect(await store.decideRequest({ id, status: 'approved', reason: null, decided_at: T0 }, [])).toBe('decided');
    expect((await seen(device)).serials).toEqual([]);
    const { serialNumber } = issued(await poll());
    expect((await seen(device)).serials).toEqual([serialNumber]);
  });

  test('a certificate from such a label does not make its holder a device where one is required', async () => {
    await enter();
    const certificate = issued(await sent({ identity: (await token()).identity, ca: open }));
    expect(await deviceOfCertificate(certificate)).toBe('device-1');
    await expect(sent({ identity: ofUs(certificate) })).rejects.toMatchObject(NOT_REGISTERED);
    await enter({ id: 'matched', match: ours() });
    expect(await deviceOfCertificate(issued(await sent({ identity: ofUs(certificate) })))).toBe('matched');
  });

  test('a refusal is in the history of the device', async () => {
    const device = await enter();
    const { identity } = await token();
    const strict = new Ca(
      { ...open.config, profile: { ...open.config.profile, key_types: ['rsa:2048'] } },
      open.driver,
    );
    await expect(sent({ identity, ca: strict })).rejects.toMatchObject({ status: 400 });
    expect((await seen(device)).types).toEqual(['certificate.denied', 'auth.otp']);
  });
});

describe('every certificate, in every encoding, on every way in, is of the device that the rules give', () => {
  const FAMILY = 'CN=unit,serialNumber=4711';
  let devices: Readonly<Record<string, DeviceRow>>;

  /** A certificate of this server that the store has recorded. */
  async function recorded(more: Partial<CertificateRow>, key_ = makeKey()): Promise<Certificate> {
    const outcome = await sent({ identity: (await token()).identity, ca: open, body: simpleCsr(key_, 'device-1', []) });
    const [row] = await store.getCertificates(issued(outcome).serialNumber);
    if (row === undefined) throw new Error('not recorded');
    // Recorded as the case wants it: in the same store under another label, which a look-up by serial number finds too.
    await store.importCertificate({ ...row, ca: 'recorded', request_id: randomUUID(), ...more }, []);
    return parseCertificate(row.der);
  }

  const CASES: readonly [string, string | undefined, () => Promise<MtlsIdentity>][] = [
    ['own, recorded with an enabled device', 'enabled', async () => ofUs(await recorded(ownerOf('enabled')))],
    ['own, recorded with a disabled device', undefined, async () => ofUs(await recorded(ownerOf('disabled')))],
    [
      'own, recorded with a deleted device of an id that is used again',
      undefined,
      async () => ofUs(await recorded(ownerOf('deleted'))),
    ],
    [
      'own, recorded at a label that requires no device',
      'by-our-key',
      async () => ofUs(await recorded({ ...ownerOf('enabled'), required_device: null })),
    ],
    ['own, recorded with no device', 'by-our-key', async () => ofUs(await recorded({}))],
    ['own, restored without its encoding', 'by-our-key', async () => ofUs(await recorded({ der: Buffer.alloc(0) }))],
    ['foreign, by its issuer key', 'by-maker-key', () => foreignOf(makerCa, FAMILY)],
    [
      'foreign, of an issuer with the same name',
      undefined,
      async () => foreignOf(await makeCa('CN=Maker,O=Example', { slot: 'rival' }), FAMILY),
    ],
    [
      'foreign, with our name and a recorded serial number',
      undefined,
      async () => {
        const { serialNumber } = await recorded(ownerOf('enabled'));
        return foreignOf(await makeCa(formatName(open.certificate.subject), { slot: 'rival' }), FAMILY, serialNumber);
      },
    ],
  ];
  const ownerOf = (name: string) => {
    const device_key = devices[name]?.key ?? '';
    return { device: name, device_key, required_device: device_key };
  };

  async function foreignOf(ca: Issuer, subject: string, serial?: string): Promise<MtlsIdentity> {
    const { der } = await makeClient(subject, ca, serial === undefined ? {} : { serial });
    return mtlsIdentity(parseCertificate(der), parseCertificate(ca.der));
  }

  beforeEach(async () => {
    const deleted = await enter({ id: 'deleted' });
    await store.deleteDevice(deleted.key, []);
    await enter({ id: 'deleted' });
    devices = {
      enabled: await enter({ id: 'enabled' }),
      disabled: await enter({ id: 'disabled', enabled: false }),
      deleted,
      ours: await enter({ id: 'by-our-key', match: ours() }),
      maker: await enter({ id: 'by-maker-key', match: { ...maker, serial_number: '4711' } }),
    };
  });

  test.each(CASES)('%s: %s', async (_, device, make) => {
    const identity = await make();
    for (const certificate of encodings(identity.certificate)) {
      const { requester, display, issuer } = identity;
      const own = { ...identity, certificate };
      const signer: CmcIdentity = { method: 'cmc', requester, display, issuer, certificate };
      const admitted = await Promise.allSettled([
        ...(['simpleenroll', 'serverkeygen'] as const).map((operation) => dryRun(own, operation)),
        dryRun(own, 'simplereenroll'),
        sentByCmc(signer, { kind: 'renewal', certificate }),
        sentByCmc(signer, { kind: 'any' }),
      ]);
      for (const one of admitted)
        if (device === undefined) expect(one).toMatchObject({ status: 'rejected', reason: NOT_REGISTERED });
        else expect(one).toMatchObject({ status: 'fulfilled', value: { request: { device: { id: device } } } });
    }
  });
});
