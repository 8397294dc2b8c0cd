/** CA certificates for devices that run a CA: issued over EST, and checked below with OpenSSL and GnuTLS. */
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, type ClientIdentity, Estuary } from '../support/estuary.ts';
import { openssl, opensslText } from '../support/openssl.ts';
import { approve, requestsOf } from '../support/queued-requests.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';

const withGnutls = requires('gnutls');
let estuary: Estuary;
/** The certificate and key of the CA that a device runs. */
let device: ClientIdentity;

const file = (name: string): string => join(estuary.dir, name);

beforeAll(async () => {
  estuary = await Estuary.start({
    configure(config, dir) {
      const [root, issuing] = [join(dir, 'two/root'), join(dir, 'two/issuing')];
      const made = spawnSync(NODE, [SERVER, 'ca', 'init', '--root', root, '--issuing', issuing, '--path-length', '1']);
      if (made.status !== 0) throw new Error(made.stderr.toString());
      appendFileSync(join(dir, 'tls/client-anchors.pem'), readFileSync(join(root, 'root.pem')));
      const authority = { permitted_dns: ['edge.example.com'], permitted_ip: ['10.7.0.0/16'] };
      const edge = {
        ...{ label: 'edge', driver: 'file', approval: 'manual', client_issuers: ['own', 'anchors'] },
        ...{ certificate: 'two/issuing/issuing.pem', chain: 'two/issuing/chain.pem' },
        ...{ file: { private_key: 'two/issuing/issuing.key' }, profile: { certificate_authority: authority } },
      };
      config['ca'] = [...(config['ca'] as []), edge];
      config['label'] = [
        { name: 'below', ca: 'edge', client_issuers: ['any'], profile: { mtls_subject: 'any' } },
        { name: 'plain', ca: 'edge' },
      ];
    },
  });
  device = await deviceCa('edge-1');
});
afterAll(() => estuary.stop());

/** A request of an Azure IoT Edge device: basicConstraints and keyUsage of a CA. */
function csrOfCa(subject: string, keyFile: string, extra: readonly string[] = []): string {
  const names = subject
    .split(',')
    .map((label) => `/${label}`)
    .join('');
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile];
  const extensions = [
    'basicConstraints=critical,CA:TRUE,pathlen:0',
    'keyUsage=critical,digitalSignature,keyCertSign',
    ...extra,
  ];
  const der = openssl([
    'req',
    '-new',
    ...key,
    '-subj',
    names,
    '-outform',
    'DER',
    ...extensions.flatMap((extension) => ['-addext', extension]),
  ]);
  return der.toString('base64');
}

async function deviceCa(cn: string): Promise<ClientIdentity> {
  const key = file('device-ca.key');
  const csr = csrOfCa(`CN=${cn}`, key);
  const { token } = await estuary.otp({ ca: 'edge' });
  const send = () => estuary.enroll(csr, { path: 'edge/simpleenroll', password: token });
  const queued = await send();
  expect(queued.status, queued.text).toBe(202);
  await approve(estuary, cn);
  const answer = await send();
  expect(answer.status, answer.text).toBe(200);
  return { cert: certificatePem(answer), key: readFileSync(key, 'utf8') };
}

/** A leaf that the device's CA signs without any rule. */
function leaf(san: string): ClientIdentity {
  writeFileSync(file('device-ca.pem'), device.cert);
  writeFileSync(file('device-ca.key'), device.key);
  writeFileSync(
    file('leaf.ext'),
    `subjectAltName=${san}\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth,serverAuth\nauthorityKeyIdentifier=keyid\n`,
  );
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file('leaf.key')];
  const csr = openssl(['req', '-new', ...key, '-subj', '/O=Leaf']);
  const by = [
    '-CA',
    file('device-ca.pem'),
    '-CAkey',
    file('device-ca.key'),
    '-days',
    '5',
    '-extfile',
    file('leaf.ext'),
  ];
  const cert = opensslText(['x509', '-req', ...by], csr);
  return { cert: cert + device.cert, key: readFileSync(file('leaf.key'), 'utf8') };
}

/** Whether each program verifies the path from the leaf to the root. */
function verdicts({ cert }: ClientIdentity): Record<string, boolean> {
  const issuing = readFileSync(file('two/issuing/issuing.pem'), 'utf8');
  writeFileSync(file('chain.pem'), cert + issuing);
  writeFileSync(file('above.pem'), device.cert + issuing);
  const root = file('two/root/root.pem');
  const run = (program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { timeout: 60_000 }).status === 0;
  const openssl = run(
    'openssl',
    'verify',
    '-x509_strict',
    '-CAfile',
    root,
    '-untrusted',
    file('above.pem'),
    file('chain.pem'),
  );
  const gnutls = run('certtool', '--verify', '--load-ca-certificate', root, '--infile', file('chain.pem'));
  return withGnutls ? { openssl, gnutls } : { openssl };
}

test('the certificate is that of a CA with the path length and the constraints of the profile', () => {
  const { isCa, pathLength, keyUsage, extKeyUsage } = parseCertificate(new X509Certificate(device.cert).raw);
  expect({ isCa, pathLength, extKeyUsage }).toEqual({ isCa: true, pathLength: 0, extKeyUsage: undefined });
  expect(keyUsage).toEqual(['digitalSignature', 'keyCertSign', 'cRLSign']);
  const text = opensslText(['x509', '-noout', '-ext', 'nameConstraints,basicConstraints'], device.cert);
  expect(text).toMatch(/Name Constraints: critical[^]*Permitted:\s+DNS:edge.example.com\s+IP:10.7.0.0\/255.255.0.0/);
});

test.each(['DNS:a.edge.example.com', 'DNS:edge.example.com', 'IP:10.7.8.9'])(
  'a leaf for %s verifies below the device CA',
  (san) => {
    expect(Object.values(verdicts(leaf(san)))).not.toContain(false);
  },
);

test.each([
  'DNS:edge.example.org',
  'IP:10.8.0.1',
  'IP:fd00::1',
  'email:a@edge.example.com',
  'URI:https://edge.example.com/',
  'DNS:a.edge.example.com,IP:10.8.0.1',
])('RFC 5280 §4.2.1.10: a leaf for %s does not', (san) => {
  expect(Object.values(verdicts(leaf(san)))).not.toContain(true);
});

describe('a certificate below the device CA', () => {
  const enroll = (path: string, client: ClientIdentity) =>
    estuary.enroll(onTheWire(simpleCsr(makeKey(), 'x')), { path, client });

  test('is never own: it neither enrolls nor renews at the label', async () => {
    const client = leaf('DNS:a.edge.example.com');
    const first = await enroll('edge/simpleenroll', client);
    expect([first.status, first.text]).toEqual([403, 'client certificate not accepted by this CA']);
    expect((await enroll('edge/simplereenroll', client)).status).toBe(403);
    expect((await enroll('devices/simpleenroll', client)).status).toBe(403);
  });

  test('authenticates with client_issuers "any" within its constraints, until the device CA is revoked', async () => {
    expect((await enroll('below/simpleenroll', leaf('DNS:edge.example.org'))).status).toBe(401);
    const client = leaf('DNS:a.edge.example.com');
    const accepted = await enroll('below/simpleenroll', client);
    expect(accepted.status, accepted.text).toBe(200);
    const serial = new X509Certificate(device.cert).serialNumber.toLowerCase();
    const revoke = (action: string, body?: object) =>
      estuary.admin('POST', `/admin/certificates/${serial}/${action}?ca=edge`, body);
    expect((await revoke('revoke', { reason: 'certificateHold' })).status).toBe(200);
    const refused = await enroll('below/simpleenroll', client);
    expect([refused.status, refused.text]).toEqual([401, 'client certificate issuer revoked']);
    expect((await revoke('release')).status).toBe(200);
    expect((await enroll('below/simpleenroll', client)).status).toBe(200);
  });
});

test('the device CA renews its certificate, after approval', async () => {
  const key = file('renewed.key');
  const other = csrOfCa('CN=edge-2', key);
  const again = csrOfCa('CN=edge-1', key);
  expect((await estuary.enroll(other, { path: 'edge/simplereenroll', client: device })).status).toBe(403);
  const send = () => estuary.enroll(again, { path: 'edge/simplereenroll', client: device });
  expect((await send()).status).toBe(202);
  const [request] = (await requestsOf(estuary, 'edge-1')).filter(({ status }) => status === 'pending');
  expect((await estuary.admin('POST', `/admin/requests/${String(request?.['id'])}/approve`)).status).toBe(200);
  const answer = await send();
  expect(new X509Certificate(certificatePem(answer)).ca).toBe(true);
});

test.each([
  ['without a subject', 'edge', '', 400],
  ['with the subject of a CA of this server', 'edge', 'CN=Issuing CA', 400],
  ['at a label without certificate_authority', 'plain', 'CN=edge-2', 400],
])('a request %s is refused', async (_, label, subject, status) => {
  const { token } = await estuary.otp({ ca: label });
  const csr = csrOfCa(subject, file('refused.key'), ['subjectAltName=DNS:a.example']);
  expect((await estuary.enroll(csr, { path: `${label}/simpleenroll`, password: token })).status).toBe(status);
});
