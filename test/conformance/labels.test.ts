/** From outside: several labels on one CA key, each with its own profile and rules (docs/guides/names.md). */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseCertificateList, revokedEntries } from '../../src/pki/x509/crl.ts';
import { parseCrlDistributionPoints } from '../../src/pki/x509/extensions.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { exchange, inShort, requestBy, tcr } from '../support/cmc.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, certificatesOf, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';

const NOT_ACCEPTED = 'client certificate not accepted by this CA';
const DAY = 86_400_000;
const key = makeKey();
const wire = onTheWire(simpleCsr(key, 'device-1'));

let estuary: Estuary;
/** All are CN=device-1 of one key, issued by one CA at different labels. */
let clients: Readonly<Record<'devices' | 'guests' | 'staff', ClientIdentity>>;

const parsed = ({ cert }: ClientIdentity): Certificate => parseCertificate(new X509Certificate(cert).raw);

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure: (config) => {
      const publication = {
        enabled: true,
        host: '127.0.0.1',
        port: 0,
        base_url: 'http://pki.example.test',
        crl_interval: 10,
      };
      Object.assign(section(config, 'publication'), publication);
      config['label'] = [
        {
          name: 'guests',
          ca: 'devices',
          profile: { validity_days: 7, extended_key_usage: ['clientAuth', 'emailProtection'] },
        },
        { name: 'staff', ca: 'devices', profile: { renewal_labels: ['guests'] }, csrattrs: { key_type: 'ec:P-256' } },
        { name: 'watched', ca: 'devices', approval: 'manual', auth: { methods: ['otp'] } },
      ];
    },
  });
  clients = {
    devices: await estuary.enrolled(key),
    guests: await estuary.enrolled(key, 'device-1', [], 'guests/simpleenroll'),
    staff: await estuary.enrolled(key, 'device-1', [], 'staff/simpleenroll'),
  };
});
afterAll(() => estuary.stop());

describe('one key, and a profile for each label', () => {
  test("the profile is the label's; issuer, serial numbers and places of revocation data are the CA's", () => {
    const [devices, guests] = [parsed(clients.devices), parsed(clients.guests)];
    const days = ({ notBefore, notAfter }: Certificate) => Math.round((notAfter.getTime() - notBefore.getTime()) / DAY);
    expect([days(devices), days(guests)]).toEqual([90, 7]);
    expect([devices.extKeyUsage, guests.extKeyUsage]).toEqual([
      [OID.clientAuth],
      [OID.clientAuth, OID.emailProtection],
    ]);
    for (const one of [devices, guests]) {
      expect(one.issuer.der).toEqual(devices.issuer.der);
      const place = one.extensions.find(({ oid }) => oid === OID.cRLDistributionPoints);
      expect(parseCrlDistributionPoints(place?.value ?? Buffer.alloc(0))).toEqual([
        'http://pki.example.test/crl/devices.crl',
      ]);
    }
  });

  test("cacerts is the CA's, csrattrs the label's", async () => {
    const [own, further] = [await estuary.est('cacerts'), await estuary.est('guests/cacerts')];
    expect(certificatesOf(further)).toEqual(certificatesOf(own));
    expect((await estuary.est('staff/csrattrs')).status).toBe(200);
    expect((await estuary.est('guests/csrattrs')).status).toBe(204);
    expect((await estuary.est('nobody/cacerts')).status).toBe(404);
  });

  test('GET /admin/cas has them with their CA, which alone is asked for its health', async () => {
    const items = itemsOf((await estuary.admin('GET', '/admin/cas')).json);
    expect(items.map(({ label, ca, default: isDefault }) => [label, ca, isDefault])).toEqual([
      ['devices', undefined, true],
      ['guests', 'devices', false],
      ['staff', 'devices', false],
      ['watched', 'devices', false],
      ['lab', undefined, false],
    ]);
    const one = (await estuary.admin('GET', '/admin/cas/guests')).json;
    expect(one).toMatchObject({ label: 'guests', ca: 'devices', driver: 'file', health: 'ok' });
    expect(JSON.stringify((await estuary.admin('GET', '/readyz')).json)).not.toContain('guests');
  });

  test('a record names the CA, and the label where that is another', async () => {
    const { serialNumber } = parsed(clients.guests);
    const record = (await estuary.admin('GET', `/admin/certificates/${serialNumber}?ca=devices`)).json;
    expect(record).toMatchObject({ ca: 'devices', label: 'guests', serial: serialNumber });
    const own = (await estuary.admin('GET', `/admin/certificates/${parsed(clients.devices).serialNumber}`)).json;
    expect(own).not.toHaveProperty('label');
    const listed = itemsOf((await estuary.admin('GET', '/admin/certificates?label=guests')).json);
    expect(listed.map(({ serial }) => serial)).toContain(serialNumber);
    const issued = itemsOf((await estuary.admin('GET', '/admin/audit?type=certificate.issued&limit=1000')).json);
    expect(issued.find(({ serial }) => serial === serialNumber)).toMatchObject({ ca: 'devices', label: 'guests' });
    const { request_id } = record;
    const received = itemsOf((await estuary.admin('GET', '/admin/audit?type=request.received&limit=1000')).json);
    expect(received.find((event) => event['request_id'] === request_id)).toMatchObject({ ca: 'guests' });
  });
});

describe('a label is a boundary, also where the key is the same', () => {
  test('fullcmc: neither enrolls nor revokes across labels', async () => {
    const request = { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] };
    const { staff, devices } = clients;
    const refused = await estuary.est('guests/fullcmc', {
      client: staff,
      body: (await requestBy(staff, request)).toString('base64'),
      headers: { 'Content-Type': 'application/pkcs7-mime' },
    });
    expect([refused.status, refused.text]).toEqual([403, NOT_ACCEPTED]);
    const { issuer, serialNumber } = parsed(clients.guests);
    // of the same names, issuer and key: the holder's own, were it not another label's
    const revoke = buildControl(7, 'revokeRequest', { issuer, serialNumber, reason: 'superseded' });
    const reply = await exchange(estuary, requestBy(devices, { controlSequence: [revoke] }), devices);
    expect([reply.status, inShort(reply)]).toEqual([400, ['failed badCertId [7]']]);
  });

  test('a label has its own queue and methods', async () => {
    const { token } = await estuary.otp();
    const ask = () => estuary.enroll(wire, { path: 'watched/simpleenroll', password: token });
    expect((await ask()).status).toBe(202);
    const [waiting] = itemsOf((await estuary.admin('GET', '/admin/requests?status=pending')).json);
    expect(waiting).toMatchObject({ ca: 'watched' });
    expect((await estuary.admin('POST', `/admin/requests/${String(waiting?.['id'])}/approve`, {})).status).toBe(200);
    const [first, again] = [await ask(), await ask()];
    expect([first.status, certificatePem(again)]).toEqual([200, certificatePem(first)]);
    const byCertificate = await estuary.enroll(wire, { path: 'watched/simpleenroll', client: clients.devices });
    expect(byCertificate.status).toBe(401);
  });
});

test('one CRL and one responder have what was revoked at every label, and it authenticates nowhere', async () => {
  const lost = await estuary.enrolled(key, 'device-1', [], 'guests/simpleenroll');
  const { serialNumber } = parsed(lost);
  const order = { reason: 'keyCompromise' };
  expect(
    (await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke?ca=guests`, order)).json,
  ).toMatchObject({
    ca: 'devices',
    label: 'guests',
    status: 'revoked',
  });
  for (const path of ['guests/simplereenroll', 'staff/simplereenroll', 'simplereenroll', 'guests/simpleenroll'])
    expect((await estuary.enroll(wire, { path, client: lost })).status).toBe(401);
  const base = `http://127.0.0.1:${estuary.server.port('publication')}`;
  await expect
    .poll(
      async () => {
        const response = await fetch(`${base}/crl/devices.crl`);
        const list = parseCertificateList(Buffer.from(await response.arrayBuffer()));
        return [...revokedEntries(list)].map((entry) => entry.serialNumber);
      },
      { interval: 250 },
    )
    .toContain(serialNumber);
  const [own, further] = await Promise.all(
    ['ca/devices.cer', 'ca/guests.cer'].map(async (path) => (await fetch(`${base}/${path}`)).arrayBuffer()),
  );
  expect(further).toEqual(own);
});
