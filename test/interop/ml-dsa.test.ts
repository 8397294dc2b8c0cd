/** A whole PKI of ML-DSA, with OpenSSL 3.5 and Bouncy Castle as the devices and relying parties. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';
import { ML_DSA } from '../../src/pki/x509/key-pair.ts';
import { JavaPrograms } from '../support/bouncycastle.ts';
import { certificateOf, crm, issuedBy, postCmc, requestBy } from '../support/cmc.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { run, runAny, runText } from '../support/command.ts';
import { buildCsr, commonName, dns, extensionRequest, makeKey, onTheWire, san, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { BOUNCY_CASTLE_PQC_JARS, OPENSSL_35, requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { readServerKey } from '../support/server-key.ts';
import { parseSignedData } from '../../src/pki/cms/cms.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parsePkiResponse } from '../../src/pki/cmc/pki-data.ts';
import { bitString, children, contextPrimitive, oid, parseDer, sequence, Tag } from '../../src/pki/der/der.ts';

/** The form of generated keys that each server is configured with. */
const FORMS = { '44': 'seed', '65': 'expanded', '87': 'both' } as const;
const folder = temporaryFolder();
/** MlDsa.java. */
let programs: Promise<JavaPrograms> | undefined;
afterAll(async () => {
  await (await programs)?.stop();
  folder.remove();
});

async function java(...args: readonly string[]): Promise<string> {
  programs ??= JavaPrograms.start(['MlDsa'], BOUNCY_CASTLE_PQC_JARS, folder.path);
  return (await programs).run('MlDsa', ...args);
}

describe.skipIf(!requires('openssl35')).each(ML_DSA)('a PKI of $name', ({ name, keyType, nodeType, oid: dotted }) => {
  const level = name.slice('ML-DSA-'.length);
  let estuary: Estuary;
  let device: ClientIdentity;
  const at = (file: string): string => join(estuary.dir, file);
  const openssl = (...args: readonly string[]): Promise<string> => runText(OPENSSL_35, args);
  const chain = (): readonly string[] => ['-CAfile', at('ca/root.pem'), '-untrusted', at('ca/issuing.pem')];

  beforeAll(async () => {
    estuary = await Estuary.start({
      algorithm: name.toLowerCase(),
      listeners: ['est', 'admin', 'publication'],
      configure: (config) => {
        Object.assign(section(config, 'publication'), {
          enabled: true,
          host: '127.0.0.1',
          port: 0,
          base_url: 'http://pki.example.test',
        });
        const form = FORMS[level === '44' ? '44' : level === '65' ? '65' : '87'];
        Object.assign(section(config, 'serverkeygen'), { encryption: 'optional', ml_dsa_key: form });
        const ca = caSection(config);
        ca['csrattrs'] = { key_type: keyType, signature: `id-ml-dsa-${level}`, template: true };
        section(ca, 'profile')['san'] = { max: 300 };
      },
    });
    device = await enroll('device-1');
  });
  afterAll(() => estuary.stop());

  /** OpenSSL makes the key and the request. */
  async function enroll(cn: string): Promise<ClientIdentity> {
    const [key, csr, certificate] = ['key', 'csr', 'pem'].map((kind) => at(`client/${cn}.${kind}`));
    if (key === undefined || csr === undefined || certificate === undefined) throw new Error('no names');
    await openssl('req', '-new', '-newkey', name, '-nodes', '-keyout', key, '-out', csr, '-subj', `/CN=${cn}`);
    const { token } = await estuary.otp();
    const answer = await estuary.enroll(readFileSync(csr), { password: token });
    expect(answer.status, answer.text).toBe(200);
    const cert = certificatePem(answer);
    writeFileSync(certificate, cert);
    return { cert, key: readFileSync(key, 'latin1') };
  }

  test('OpenSSL enrolls, and verifies the certificate up to the root', async () => {
    await openssl('verify', '-x509_strict', '-purpose', 'sslclient', ...chain(), at('client/device-1.pem'));
    const text = await openssl('x509', '-in', at('client/device-1.pem'), '-noout', '-text');
    expect(text.match(new RegExp(`(Signature|Public Key) Algorithm: ${name}`, 'g'))).toHaveLength(3);
  });

  test('OpenSSL renews over TLS 1.3 with its certificate, by a hybrid key exchange', async () => {
    const body = readFileSync(at('client/device-1.csr'), 'latin1');
    const request = [
      'POST /.well-known/est/simplereenroll HTTP/1.1',
      'Host: localhost',
      'Content-Type: application/pkcs10',
      `Content-Length: ${body.length}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n');
    const client = ['-cert', at('client/device-1.pem'), '-key', at('client/device-1.key')];
    const server = ['-connect', `localhost:${estuary.server.port('est')}`, '-verify_return_error'];
    const args = ['s_client', ...server, '-CAfile', at('ca/root.pem'), ...client, '-ign_eof'];
    const { output } = await runAny(OPENSSL_35, args, { input: request });
    expect(output).toContain('HTTP/1.1 200');
    expect(output).toContain('Negotiated TLS1.3 group: X25519MLKEM768');
    expect(output).toContain(`Peer signature type: mldsa${level}`);
  });

  test('RFC 9908: csrattrs asks for the key and its signature', async () => {
    const items = parseCsrAttrs(Buffer.from((await estuary.est('csrattrs')).text, 'base64'));
    expect(items.filter((item) => item.oid === dotted)).toEqual([{ oid: dotted, values: [] }, { oid: dotted }]);
  });

  test('a key of another kind is refused by what csrattrs asks for', async () => {
    const { token } = await estuary.otp();
    const answer = await estuary.enroll(onTheWire(simpleCsr(makeKey())), { password: token });
    expect([answer.status, answer.text]).toEqual([400, `The CSR's key is ec:P-256; this CA asks for ${keyType}.`]);
  });

  test('CRL and OCSP response verify, before and after a revocation', async () => {
    const revoked = await enroll('revoked');
    const url = `http://127.0.0.1:${estuary.server.port('publication')}`;
    const status = async (cn: string): Promise<string> => {
      const args = ['-issuer', at('ca/issuing.pem'), '-cert', at(`client/${cn}.pem`), '-url', `${url}/ocsp/devices`];
      const { output } = await runAny(OPENSSL_35, ['ocsp', ...args, '-CAfile', at('chain.pem')]);
      return output;
    };
    writeFileSync(at('chain.pem'), readFileSync(at('ca/issuing.pem'), 'latin1') + estuary.root);
    expect(await status('revoked')).toMatch(/Response verify OK[^]*: good/);
    const { serialNumber } = certificateOf(revoked);
    expect((await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke`)).status).toBe(200);
    expect(await status('revoked')).toMatch(/Response verify OK[^]*: revoked/);
    expect(await status('device-1')).toMatch(/: good/);
    const crl = await fetch(`${url}/crl/devices.crl`, { signal: AbortSignal.timeout(60_000) });
    writeFileSync(at('devices.crl'), Buffer.from(await crl.arrayBuffer()));
    const args = ['crl', '-inform', 'DER', '-in', at('devices.crl'), '-noout', '-verify', '-CAfile', at('chain.pem')];
    expect((await runAny(OPENSSL_35, args)).output).toContain('verify OK');
  });

  test('RFC 9882: a full CMC request is signed by the device, and OpenSSL verifies the response', async () => {
    const key = makeKey(nodeType);
    const reqSequence = [{ kind: 'tcr', bodyPartID: 1, der: simpleCsr(key) }] as const;
    const answer = await postCmc(estuary, await requestBy(device, { reqSequence }), device);
    expect(answer.status).toBe(200);
    const der = Buffer.from(answer.text, 'base64');
    const response = parseSignedData(der);
    expect(issuedBy({ certificates: response.certificates.map(parseCertificate) })).toHaveLength(1);
    writeFileSync(at('response.p7'), der);
    const args = ['cms', '-verify', '-inform', 'DER', '-in', at('response.p7'), '-binary'];
    const content = await run(OPENSSL_35, [...args, '-CAfile', at('ca/root.pem'), '-purpose', 'any']);
    expect(response.content?.equals(content)).toBe(true);
    expect(parsePkiResponse(content).controlSequence).toHaveLength(1);
  });

  test('RFC 5272 §3.2.1.2.2: a CRMF request is signed with the key that it is for', async () => {
    const key = makeKey(nodeType);
    const request = crm(7, buildCrmf(key, { certReqId: 7, subject: 'CN=device-1' }));
    const answer = await postCmc(estuary, await requestBy(device, { reqSequence: [request] }), device);
    expect(answer.status).toBe(200);
    const { certificates } = parseSignedData(Buffer.from(answer.text, 'base64'));
    expect(issuedBy({ certificates: certificates.map(parseCertificate) }).map(({ spki }) => spki)).toEqual([key.spki]);
  });

  test('RFC 9881 §6: OpenSSL reads the private key that the server made', async () => {
    const { token } = await estuary.otp();
    const csr = onTheWire(simpleCsr(makeKey(), 'made'));
    const { key, certificate } = readServerKey(await estuary.enroll(csr, { password: token, path: 'serverkeygen' }));
    writeFileSync(at('made.der'), key);
    const made = await openssl('pkey', '-inform', 'DER', '-in', at('made.der'), '-pubout');
    expect(made).toBe(certificate.publicKey.export({ format: 'pem', type: 'spki' }));
    const privateKey = children(parseDer(key).value).find(({ tag }) => tag === Tag.OCTET_STRING);
    const form = { '44': contextPrimitive(0), '65': Tag.OCTET_STRING, '87': Tag.SEQUENCE }[level];
    expect(privateKey?.value[0]).toBe(form);
  });

  test('a certificate of 20 kB is issued, kept, and authenticates its renewal', async () => {
    const names = Array.from({ length: 190 }, (_, n) => dns(`${'a'.repeat(56)}${1000 + n}.example.com`));
    const key = makeKey(nodeType);
    const csr = onTheWire(
      buildCsr(key, { subject: commonName('large'), attributes: [extensionRequest(san(...names))] }),
    );
    const { token } = await estuary.otp();
    const issued = await estuary.enroll(csr, { password: token });
    expect(issued.status, issued.text).toBe(200);
    const client = { cert: certificatePem(issued), key: key.pem };
    const { serialNumber, der } = certificateOf(client);
    expect(der.length).toBeGreaterThan(18_000);
    const { json } = await estuary.admin('GET', `/admin/certificates/${serialNumber}`);
    expect(json).toMatchObject({ status: 'valid', pem: client.cert });
    const renewed = await estuary.enroll(csr, { path: 'simplereenroll', client });
    expect(renewed.status, renewed.text).toBe(200);
  });

  test.skipIf(!requires('bouncycastlePqc'))(
    'Bouncy Castle enrolls, and verifies chain, CRL and CMC response',
    async () => {
      await java('request', name, 'bc-device', at('bc.csr'));
      const { token } = await estuary.otp();
      const answer = await estuary.enroll(onTheWire(readFileSync(at('bc.csr'))), { password: token });
      expect(answer.status, answer.text).toBe(200);
      writeFileSync(at('bc.pem'), certificatePem(answer));
      const files = [at('bc.pem'), at('ca/issuing.pem'), at('ca/root.pem'), at('devices.crl')];
      expect(await java('verify', ...files)).toBe('ok\n');
      expect(await java('cms', at('response.p7'), at('ca/issuing.pem'))).toBe('ok\n');
    },
  );
});

describe.skipIf(!requires('openssl35'))(
  'a fleet of ECDSA moves to ML-DSA under a new label (docs/guides/post-quantum.md)',
  () => {
    let estuary: Estuary;
    let device: ClientIdentity;
    const key = makeKey('ml-dsa-65');
    const at = (file: string): string => join(estuary.dir, file);

    beforeAll(async () => {
      estuary = await Estuary.start();
      device = await estuary.enrolled(makeKey(), 'device-1', ['device-1.example.com']);
      estuary.reconfigure((config) => {
        const cas = config['ca'];
        if (!Array.isArray(cas)) throw new TypeError('no CAs');
        cas.push({
          label: 'pq',
          driver: 'file',
          certificate: 'ca/pq.pem',
          file: { private_key: 'ca/pq.key' },
          profile: { key_types: ['ml-dsa:65'], renewal_issuers: 'ca/issuing.pem' },
          csrattrs: { key_type: 'ml-dsa:65', signature: 'id-ml-dsa-65' },
        });
      });
      const init = ['ca', 'init', '--config', at('est.toml'), '--ca', 'pq', '--key-type', 'ml-dsa:65'];
      await run(process.execPath, [join(ROOT, 'dist', 'server.js'), ...init]);
      appendFileSync(at('tls/client-anchors.pem'), readFileSync(at('ca/pq.pem')));
      await estuary.server.stop();
      await estuary.restart();
    });
    afterAll(() => estuary.stop());

    const csr = onTheWire(simpleCsr(key, 'device-1', ['device-1.example.com']));
    const renew = (path: string, client: ClientIdentity) => estuary.enroll(csr, { path, client });

    test('csrattrs of the new label asks for the new key; that of the old one for nothing', async () => {
      const items = parseCsrAttrs(Buffer.from((await estuary.est('pq/csrattrs')).text, 'base64'));
      expect(items.map((item) => item.oid)).toEqual([ML_DSA[1]?.oid, ML_DSA[1]?.oid]);
      expect((await estuary.est('csrattrs')).status).toBe(204);
    });

    test('a certificate of ECDSA is renewed at the new label to one of ML-DSA, which renews itself there', async () => {
      const moved = await renew('pq/simplereenroll', device);
      expect(moved.status, moved.text).toBe(200);
      const client = { cert: certificatePem(moved), key: key.pem };
      writeFileSync(at('moved.pem'), client.cert);
      await run(OPENSSL_35, ['verify', '-x509_strict', '-CAfile', at('ca/pq.pem'), at('moved.pem')]);
      const again = await renew('pq/simplereenroll', client);
      expect(again.status, again.text).toBe(200);
    });

    test('the old label goes on as it was, and takes no certificate of the new one', async () => {
      const old = onTheWire(simpleCsr(makeKey(), 'device-1', ['device-1.example.com']));
      expect((await estuary.enroll(old, { path: 'simplereenroll', client: device })).status).toBe(200);
      const client = { cert: certificatePem(await renew('pq/simplereenroll', device)), key: key.pem };
      expect((await estuary.enroll(old, { path: 'simplereenroll', client })).status).toBe(403);
    });
  },
);

describe.skipIf(!requires('openssl35'))('one server for keys of every kind', () => {
  let estuary: Estuary;
  beforeAll(async () => {
    estuary = await Estuary.start({
      configure: (config) => {
        section(caSection(config), 'profile')['key_types'] = [
          'ec:P-256',
          'ec:P-521',
          'ed448',
          'rsa-pss:2048',
          'ml-dsa:65',
        ];
      },
    });
  });
  afterAll(() => estuary.stop());

  test.each([
    ['X25519MLKEM768', []],
    ['SecP256r1MLKEM768', ['-groups', 'SecP256r1MLKEM768:X25519']],
    ['X25519', ['-groups', 'X25519:P-256']],
    ['P-256', ['-groups', 'P-256']],
  ])('20.2: %s is agreed on', async (group, groups) => {
    const args = ['-connect', `localhost:${estuary.server.port('est')}`, '-CAfile', join(estuary.dir, 'ca/root.pem')];
    const { output } = await runAny(OPENSSL_35, ['s_client', ...args, ...groups], { input: '' });
    // OpenSSL names the hybrids in one line and the curves in another.
    expect(output).toMatch(new RegExp(`(group: ${group}|Temp Key: (ECDH, )?(secp256r1|prime256v1|${group}))`));
    expect(output).toContain('Verify return code: 0 (ok)');
  });

  test.each(['P-521', 'ed448', 'rsa-pss', 'ml-dsa-65'] as const)(
    '20.4: a %s key is certified and renews',
    async (kind) => {
      const key = makeKey(kind);
      const client = await estuary.enrolled(key, kind);
      const file = join(estuary.dir, 'other.pem');
      writeFileSync(file, client.cert);
      await run(OPENSSL_35, [
        'verify',
        ...[
          '-x509_strict',
          '-CAfile',
          join(estuary.dir, 'ca/root.pem'),
          '-untrusted',
          join(estuary.dir, 'ca/issuing.pem'),
        ],
        file,
      ]);
      const renewed = await estuary.enroll(onTheWire(simpleCsr(key, kind)), { path: 'simplereenroll', client });
      expect(renewed.status, renewed.text).toBe(200);
    },
  );

  test.each([
    ['2.16.840.1.101.3.4.4.2', 1184, /is an ML-KEM-768 key, which cannot sign a request; use .*ML-DSA key\.$/],
    ['1.3.101.110', 32, /is an X25519 key, which cannot sign a request/],
    ['1.2.643.7.1.1.1.1', 66, /is a GOST R 34\.10-2012 key, which is not supported/],
  ])('20.3, 20.4: a key of %s is refused with what is possible', async (algorithm, octets, sentence) => {
    const spki = sequence(sequence(oid(algorithm)), bitString(Buffer.alloc(octets, 1)));
    const { token } = await estuary.otp();
    const answer = await estuary.enroll(onTheWire(buildCsr(makeKey(), { spki })), { password: token });
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(sentence);
  });
});
