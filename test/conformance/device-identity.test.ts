/** How the built server recognizes certificates of registered devices, in any encoding. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePem, encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { spkiHash } from '../../src/pki/x509/public-key.ts';
import { ecdsaTwin, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { exchange, inShort, postCmc, requestBy, tcr } from '../support/cmc.ts';
import { buildCsr, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, type ClientIdentity } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';

const UNIT = 'CN=unit-1,serialNumber=4711';
const maker = await makeCa('CN=Maker Root');
const makerIssuing = await makeCa('CN=Maker Issuing', { issuer: maker });
const rival = await makeCa('CN=Rival Root');
const rivalIssuing = await makeCa('CN=Maker Issuing', { issuer: rival, slot: "the rival's" });
const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
const keyOf = ({ der }: Issuer): string => spkiHash(parseCertificate(der));

const csr = (cn = 'unit-1') => simpleCsr(makeKey(), cn, []);
const key = makeKey();
let estuary: Estuary;

/** The certificate of a unit with its chain, as manufacturers install it. */
async function unitUnder(issuer: Issuer): Promise<ClientIdentity & { readonly der: Buffer }> {
  const leaf = await makeClient(UNIT, issuer);
  return { cert: pem(leaf) + pem(issuer), key: pkcs8Pem(leaf.keys), der: leaf.der };
}

/** The same with the other form of the ECDSA signature. */
function reEncoded({ cert, key: own }: ClientIdentity): ClientIdentity {
  const [leaf, ...chain] = parsePem(cert).map(({ der }) => der);
  if (leaf === undefined) throw new Error('no certificate');
  return { cert: [ecdsaTwin(leaf), ...chain].map((der) => encodePem('CERTIFICATE', der)).join(''), key: own };
}

const register = (body: object, query = '') => estuary.admin('POST', `/admin/devices${query}`, body);

async function enroll(client: ClientIdentity, path = 'simpleenroll', cn = 'unit-1'): Promise<[number, string]> {
  const { status, text } = await estuary.enroll(onTheWire(csr(cn)), { client, path });
  return [status, status === 200 ? '' : text];
}

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem(maker) + pem(rival));
      for (const n of [0, 1]) caSection(config, n)['devices'] = 'required';
      Object.assign(caSection(config, 1), { approval: 'manual', client_issuers: ['any'] });
    },
  });
});
afterAll(() => estuary.stop());

const OK = [200, ''];
const NOT_REGISTERED = [403, 'device not registered'];

describe('match compares the key of the issuer in the validated path', () => {
  test('an intermediate of another manufacturer with the same name does not match', async () => {
    const [unit, stranger] = [await unitUnder(makerIssuing), await unitUnder(rivalIssuing)];
    const match = { issuer_spki_sha256: keyOf(makerIssuing), serial_number: '4711' };
    expect((await register({ id: 'unit-1', match })).status).toBe(201);
    expect(await enroll(unit)).toEqual(OK);
    expect(await enroll(stranger)).toEqual(NOT_REGISTERED);
    const own = buildCsr(key, { subject: parseDistinguishedName(UNIT).der });
    for (const client of [unit, stranger].flatMap((sender) => [sender, reEncoded(sender)])) {
      const { status, statuses } = await exchange(
        estuary,
        await requestBy(client, { reqSequence: [tcr(1, own)] }),
        client,
      );
      const isUnit = client.cert.endsWith(pem(makerIssuing));
      expect([status, statuses[0]?.statusString]).toEqual(isUnit ? [200, undefined] : NOT_REGISTERED);
    }
    expect((await estuary.admin('DELETE', '/admin/devices/unit-1')).status).toBe(204);
  });
});

describe('a certificate of this server belongs to the device that it was recorded with', () => {
  let own: ClientIdentity;
  const enabled = async (value: boolean) =>
    expect((await estuary.admin('PATCH', '/admin/devices/device-1', { enabled: value })).status).toBe(200);

  beforeAll(async () => {
    expect((await register({ id: 'device-1' })).status).toBe(201);
    own = await estuary.enrolled(key);
  });

  test('a disabled device renews with no encoding of its certificate, on EST, CMC and in the queue', async () => {
    const queued = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1', [])), {
      client: reEncoded(own),
      path: 'lab/simpleenroll',
    });
    expect(queued.status).toBe(202);
    const [request] = (await estuary.admin('GET', '/admin/requests?status=pending')).json['items'] as { id: string }[];
    const approve = () => estuary.admin('POST', `/admin/requests/${request?.id}/approve`, {});
    await enabled(false);
    expect((await approve()).status).toBe(409);
    await enabled(true);
    expect((await approve()).status).toBe(200);
    await enabled(false);
    for (const client of [own, reEncoded(own)]) {
      for (const path of ['simplereenroll', 'simpleenroll', 'serverkeygen', 'lab/simpleenroll'])
        expect(await enroll(client, path, 'device-1')).toEqual(NOT_REGISTERED);
      const poll = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1', [])), {
        client,
        path: 'lab/simpleenroll',
      });
      expect([poll.status, poll.text]).toEqual(NOT_REGISTERED);
      const reply = await exchange(
        estuary,
        await requestBy(client, { reqSequence: [tcr(1, csr('device-1'))] }),
        client,
      );
      expect([reply.status, ...inShort(reply), reply.statuses[0]?.statusString]).toEqual([
        403,
        'failed badIdentity [1]',
        'device not registered',
      ]);
    }
  });

  test('a re-encoded certificate that is revoked does not authenticate', async () => {
    await enabled(true);
    const [{ der } = { der: Buffer.alloc(0) }] = parsePem(own.cert);
    const { serialNumber } = parseCertificate(der);
    const revoked = await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke?ca=devices`, {});
    expect(revoked.status).toBe(200);
    for (const client of [own, reEncoded(own)]) {
      expect(await enroll(client, 'simplereenroll', 'device-1')).toEqual([401, 'client certificate revoked']);
      const message = await requestBy(client, { reqSequence: [tcr(1, csr('device-1'))] });
      const answer = await postCmc(estuary, message, client);
      expect([answer.status, answer.text]).toEqual([401, 'client certificate revoked']);
    }
  });
});
