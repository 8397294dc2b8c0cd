/** RFC 6960 §2.6: a CA delegates its OCSP responses to a separate key; another CA signs its own. */
import { X509Certificate } from 'node:crypto';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { BRIEF } from '../support/bouncycastle.ts';
import { run, runAny } from '../support/command.ts';
import { makeKey } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { accepts, freePorts } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { certify, newKey, OCSP_SIGNER } from '../support/rollover.ts';
import { killed } from '../support/spawned.ts';
import { until } from '../support/until.ts';

let estuary: Estuary;
const [port = 0, caddyPort = 0] = await freePorts(2);
const key = makeKey();
const RESPONDER = /CN ?= ?Responder/;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config, dir) {
      const base = { host: '127.0.0.1', port, base_url: `http://127.0.0.1:${port}` };
      Object.assign(section(config, 'publication'), { enabled: true, ...base });
      newKey(dir, 'ca/ocsp');
      certify(dir, 'ca/ocsp', { subject: '/CN=Responder', key: 'ca/ocsp', by: 'ca/issuing', extensions: OCSP_SIGNER });
      caSection(config)['ocsp'] = { certificate: 'ca/ocsp.pem', private_key: 'ca/ocsp.key' };
    },
  });
});
afterAll(() => estuary.stop());

const file = (name: string): string => join(estuary.dir, name);

/** What openssl says that the CA with this label says about a certificate. */
async function status(label: string, issuer: string, cert: string): Promise<string> {
  writeFileSync(file('client.pem'), cert);
  const url = `http://127.0.0.1:${estuary.server.port('publication')}/ocsp/${label}`;
  const trust = ['-issuer', file(issuer), '-CAfile', file('ca/root.pem'), '-verify_other', file(issuer)];
  return (await runAny('openssl', ['ocsp', ...trust, '-cert', file('client.pem'), '-url', url, '-resp_text'])).output;
}

test('openssl takes the responder for the CA, by the certificate in the response', async () => {
  const { cert } = await estuary.enrolled(key);
  const answer = await status('devices', 'ca/issuing.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toContain('client.pem: good');
  expect(answer).toMatch(RESPONDER);
  expect(answer).toContain('OCSP No Check');
});

test('a revocation shows at once', async () => {
  const { cert } = await estuary.enrolled(key);
  expect(await status('devices', 'ca/issuing.pem', cert)).toContain('client.pem: good');
  const serial = new X509Certificate(cert).serialNumber.toLowerCase();
  await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
  const answer = await status('devices', 'ca/issuing.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toMatch(/client\.pem: revoked/);
});

test('a CA without a responder answers itself', async () => {
  const { cert } = await estuary.enrolled(key, 'device-1', [], 'lab/simpleenroll');
  const answer = await status('lab', 'ca/lab.pem', cert);
  expect(answer).toContain('Response verify OK');
  expect(answer).toContain('client.pem: good');
  expect(answer).not.toMatch(RESPONDER);
});

test('the CRL is still signed by the CA itself', async () => {
  const url = `http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`;
  writeFileSync(file('latest.crl'), Buffer.from(await (await fetch(url)).arrayBuffer()));
  const args = ['crl', '-inform', 'DER', '-in', file('latest.crl'), '-noout', '-CAfile', file('ca/issuing.pem')];
  expect((await runAny('openssl', args)).output).toContain('verify OK');
});

/** Validates `leaf.pem` below `issuing.pem` and `root.pem` with OCSP alone. */
const JAVA = `
import java.io.FileInputStream;
import java.security.cert.*;
import java.util.*;
public class Validate {
  static X509Certificate read(String file) throws Exception {
    return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(file));
  }
  public static void main(String[] files) throws Exception {
    CertPathValidator validator = CertPathValidator.getInstance("PKIX");
    PKIXRevocationChecker checker = (PKIXRevocationChecker) validator.getRevocationChecker();
    checker.setOptions(EnumSet.of(PKIXRevocationChecker.Option.ONLY_END_ENTITY, PKIXRevocationChecker.Option.NO_FALLBACK));
    PKIXParameters parameters = new PKIXParameters(Set.of(new TrustAnchor(read(files[2]), null)));
    parameters.addCertPathChecker(checker);
    List<X509Certificate> path = List.of(read(files[0]), read(files[1]));
    validator.validate(CertificateFactory.getInstance("X.509").generateCertPath(path), parameters);
    System.out.println("valid");
  }
}
`;

describe.each([
  ['the responder', 'devices', 'ca/issuing.pem'],
  ['the CA itself', 'lab', 'ca/lab.pem'],
])('relying parties take %s, by the URL in the certificate', (_, label, issuer) => {
  const enrolled = async (): Promise<string[]> => {
    const { cert } = await estuary.enrolled(key, 'device-1', [], `${label}/simpleenroll`);
    writeFileSync(file('leaf.pem'), cert);
    writeFileSync(file('chain.pem'), cert + readFileSync(file(issuer), 'latin1'));
    writeFileSync(file('leaf.key'), key.pem);
    return ['leaf.pem', issuer, 'ca/root.pem'].map(file);
  };
  const revoke = async (): Promise<unknown> => {
    const serial = new X509Certificate(readFileSync(file('leaf.pem'))).serialNumber.toLowerCase();
    return estuary.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'keyCompromise' });
  };

  test.skipIf(!requires('certutil'))('NSS', async () => {
    const database = `sql:${mkdtempSync(file('nss-'))}`;
    await run('certutil', ['-N', '-d', database, '--empty-password']);
    for (const [n, path] of (await enrolled()).entries())
      await run('certutil', ['-A', '-d', database, '-n', String(n), '-t', n === 2 ? 'CT,C,' : ',,', '-i', path]);
    const verify = async () => (await runAny('ocspclnt', ['-V', '0', '-u', 'c', '-d', database])).output;
    expect(await verify()).toContain('succeeded');
    await revoke();
    expect(await verify()).toContain('revoked');
  });

  test.skipIf(!requires('bouncycastle'))('Java', async () => {
    writeFileSync(file('Validate.java'), JAVA);
    const files = await enrolled();
    const validate = async () => (await runAny('java', [...BRIEF, file('Validate.java'), ...files])).output;
    expect(await validate()).toContain('valid');
    await revoke();
    expect(await validate()).toContain('Certificate has been revoked');
  });

  test.skipIf(!requires('caddy'))('Go, in Caddy, which staples it', async () => {
    await enrolled();
    const options = '{\n  admin off\n  auto_https off\n  skip_install_trust\n}\n';
    const site = `https://device-1:${caddyPort} {\n  tls ${file('chain.pem')} ${file('leaf.key')}\n}\n`;
    writeFileSync(file('Caddyfile'), options + site);
    const env = { ...process.env, HOME: estuary.dir, XDG_DATA_HOME: mkdtempSync(file('caddy-')) };
    const caddy = spawn('caddy', ['run', '--config', file('Caddyfile')], { stdio: 'ignore', env });
    onTestFinished(() => killed(caddy));
    await until('Caddy listens', () => accepts(caddyPort));
    const args = ['s_client', '-connect', `127.0.0.1:${caddyPort}`, '-servername', 'device-1', '-status'];
    expect((await runAny('openssl', args)).output).toContain('Cert Status: good');
  });
});
