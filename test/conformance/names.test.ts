/** Names that a requester gets and does not get, with the quickstart's configuration and with bound names. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem, parsePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { ecdsaTwin, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { issuedOutside } from '../support/cmc.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatesOf, Estuary, section, type ClientIdentity, type EstCall } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';

const key = makeKey();
const maker = await makeCa('CN=Maker');
const pem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
const derOf = ({ cert }: ClientIdentity): Buffer => parsePem(cert)[0]?.der ?? Buffer.alloc(0);

let estuary: Estuary;
let own: ClientIdentity;
let factory: ClientIdentity;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem(maker));
      section(config, 'otp')['bind_client_id'] = 'cn';
      const profile = section(caSection(config, 1), 'profile');
      profile['subject'] = { template: 'CN={id},O=Lab' };
      profile['san'] = { dns: ['{id}\\.lab\\.example'], add: ['dns:{id}.devices.example'] };
      config['label'] = [{ name: 'open', ca: 'lab', client_issuers: ['any'] }];
    },
  });
  own = await estuary.enrolled(key);
  const leaf = await makeClient('serialNumber=SN7,CN=idevid', maker);
  factory = { cert: pem(leaf), key: pkcs8Pem(leaf.keys) };
});
afterAll(() => estuary.stop());

/** The names that are issued, or the refusal. */
async function names(
  options: EstCall & { readonly path?: string },
  cn: string,
  ...dnsNames: string[]
): Promise<string> {
  const answer = await estuary.enroll(onTheWire(simpleCsr(key, cn, dnsNames)), options);
  if (answer.status !== 200) return `${answer.status} ${answer.text}`;
  const [der] = certificatesOf(answer);
  if (der === undefined) throw new Error('no certificate');
  const { subject, subjectAltNames } = parseCertificate(der);
  return [formatName(subject), ...subjectAltNames.map(formatGeneralName)].join(' ');
}

const notOwn = (name: string): string => `403 The request asks for a name that is not the requester's: "${name}".`;
const NOT_SUBJECT = '403 The CSR must request the subject of the certificate that authenticates it.';

describe('mtls_subject = "auto", the default', () => {
  test('no certificate that this server issued obtains another’s name', async () => {
    expect(await names({ client: own }, 'device-1')).toBe('CN=device-1');
    expect(await names({ client: own }, 'device-2')).toBe(NOT_SUBJECT);
    expect(await names({ client: own }, 'device-1', 'admin.example.com')).toBe(notOwn('DNS:admin.example.com'));
    expect(await names({ client: own, path: 'serverkeygen' }, 'device-2')).toBe(NOT_SUBJECT);
  });

  test('nor does one that the store does not know, at its own label or another', async () => {
    const unknown = issuedOutside(estuary, 'issuing', makeKey(), '/CN=device-9', ['extendedKeyUsage=clientAuth']);
    for (const client of [unknown, { ...unknown, cert: encodePem('CERTIFICATE', ecdsaTwin(derOf(unknown))) }]) {
      expect(await names({ client }, 'device-9')).toBe('CN=device-9');
      for (const path of ['simpleenroll', 'serverkeygen', 'open/simpleenroll'])
        expect(await names({ client, path }, 'device-2')).toBe(NOT_SUBJECT);
      expect(await names({ client }, 'device-9', 'admin.example.com')).toBe(notOwn('DNS:admin.example.com'));
    }
    const csr = encodePem('CERTIFICATE REQUEST', simpleCsr(key, 'device-2', []));
    const { json } = await estuary.admin('POST', '/admin/check', {
      ca: 'devices',
      csr,
      as: { certificate: unknown.cert },
    });
    expect(json).toMatchObject({ verdict: 'refuse', code: 'SUBJECT_NOT_OWN' });
  });

  test('nor does it after a restart', async () => {
    await estuary.server.stop();
    await estuary.restart();
    expect(await names({ client: own }, 'device-2')).toBe(NOT_SUBJECT);
  });

  test('a manufacturer’s certificate asks for the names that the profile allows', async () => {
    expect(await names({ client: factory }, 'plant-7', 'plant-7.example')).toBe('CN=plant-7 DNS:plant-7.example');
  });
});

describe('a token that is bound to its client_id', () => {
  const path = 'lab/simpleenroll';
  const password = async (client_id = 'device-1'): Promise<string> => (await estuary.otp({ client_id })).token;

  test('gets no other name', async () => {
    expect(await names({ password: await password() }, 'device-1')).toBe('CN=device-1');
    expect(await names({ password: await password() }, 'device-1', 'admin.example.com')).toBe(
      notOwn('DNS:admin.example.com'),
    );
  });

  test('except those that patterns and templates derive from its own', async () => {
    const lab = 'CN=device-1,O=Lab DNS:device-1.lab.example DNS:device-1.devices.example';
    expect(await names({ path, password: await password() }, 'whatever', 'device-1.lab.example')).toBe(lab);
    expect(await names({ path, password: await password() }, 'whatever', 'device-2.lab.example')).toBe(
      notOwn('DNS:device-2.lab.example'),
    );
    expect(await names({ path, password: await password('a.b') }, 'a.b')).toBe(
      "403 The certificate's names cannot be made for this requester.",
    );
  });

  test('a refusal costs no use of the token', async () => {
    const token = await password();
    expect(await names({ password: token }, 'device-2')).toBe(
      '403 The CSR does not name the client that authenticates.',
    );
    expect(await names({ password: token }, 'device-1')).toBe('CN=device-1');
  });
});
