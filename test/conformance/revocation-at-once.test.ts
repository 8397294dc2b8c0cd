/** A revocation, a hold and its end reach relying parties within seconds: checked with OpenSSL and GnuTLS. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { certify, newKey, OCSP_SIGNER } from '../support/rollover.ts';
import { until } from '../support/until.ts';

const key = makeKey();
const withGnutls = requires('gnutls');

describe.each([
  ["the CA's own key", false],
  ['a delegated key', true],
])('OCSP signed by %s', (_, isDelegated) => {
  let estuary: Estuary;
  let url: string;

  beforeAll(async () => {
    estuary = await Estuary.start({
      listeners: ['est', 'admin', 'publication'],
      configure(config, dir) {
        const listener = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
        Object.assign(section(config, 'publication'), listener, { crl_after_revocation: 1 });
        if (!isDelegated) return;
        newKey(dir, 'ca/ocsp');
        const extensions = OCSP_SIGNER;
        certify(dir, 'ca/ocsp', { subject: '/CN=Responder', key: 'ca/ocsp', by: 'ca/issuing', extensions });
        caSection(config)['ocsp'] = { certificate: 'ca/ocsp.pem', private_key: 'ca/ocsp.key' };
      },
    });
    url = `http://127.0.0.1:${estuary.server.port('publication')}`;
  });
  afterAll(() => estuary.stop());

  const file = (name: string): string => join(estuary.dir, name);
  const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();
  const call = (action: string, who: ClientIdentity, body?: object) =>
    estuary.admin('POST', `/admin/certificates/${serialOf(who)}/${action}?ca=devices`, body);

  async function run(program: string, ...args: readonly string[]): Promise<string> {
    return (await runAny(program, args)).output;
  }

  /** What OCSP says now; every program must agree. */
  async function ocsp({ cert }: ClientIdentity): Promise<string> {
    writeFileSync(file('leaf.pem'), cert);
    const responder = `${url}/ocsp/devices`;
    const issuer = file('ca/issuing.pem');
    const trust = ['-issuer', issuer, '-CAfile', file('ca/root.pem'), '-verify_other', issuer];
    const openssl = await run('openssl', 'ocsp', ...trust, '-cert', file('leaf.pem'), '-url', responder);
    expect(openssl).toContain('Response verify OK');
    const said = /leaf\.pem: (\w+)(?:[^]*Reason: (\w+))?/.exec(openssl);
    const status = [said?.[1], said?.[2]].filter((word) => word !== undefined).join(' ');
    if (withGnutls) {
      const args = ['--load-cert', file('leaf.pem'), '--load-issuer', issuer, `--ask=${responder}`];
      const gnutls = await run('ocsptool', ...args);
      expect(gnutls).toContain('Certificate Status: ' + (said?.[1] ?? '?'));
      expect(gnutls).toContain('Verifying OCSP Response: Success');
      // Without the issuer it has to find the signer.
      const asked = [
        ...trust.slice(0, 4),
        '-cert',
        file('leaf.pem'),
        '-url',
        responder,
        '-respout',
        file('response.der'),
      ];
      await run('openssl', 'ocsp', ...asked);
      const found = ['-e', `--load-trust=${issuer}`, `--load-response=${file('response.der')}`];
      expect(await run('ocsptool', ...found)).toContain('Verifying OCSP Response: Success');
    }
    return status;
  }

  /** The reason in the CRL; undefined: no entry. Every program must accept the CRL. */
  async function listed(who: ClientIdentity): Promise<string | undefined> {
    const answer = await fetch(`${url}/crl/devices.crl`);
    expect(answer.headers.get('cache-control')).toMatch(/max-age=[01],/);
    writeFileSync(file('latest.crl'), Buffer.from(await answer.arrayBuffer()));
    const read = ['-inform', 'DER', '-in', file('latest.crl'), '-CAfile', file('ca/issuing.pem')];
    const text = await run('openssl', 'crl', ...read, '-text', '-noout');
    expect(text).toContain('verify OK');
    if (withGnutls) {
      await run('openssl', 'crl', ...read, '-out', file('latest.pem'));
      const gnutls = ['--infile', file('latest.pem'), '--load-ca-certificate', file('ca/issuing.pem')];
      expect(await run('certtool', '--verify-crl', ...gnutls)).toContain('Verification output: Verified.');
    }
    const [, entry] = text.split(`Serial Number: ${serialOf(who).toUpperCase()}`);
    const [first] = entry?.split('Serial Number: ') ?? [];
    return first === undefined ? undefined : (/Reason Code:\s+([\w ]+)\n/.exec(first)?.[1] ?? 'none');
  }

  const listedAs = (who: ClientIdentity, reason: string | undefined): Promise<true> =>
    until(`${reason ?? 'no entry'} in the CRL`, async () => (await listed(who)) === reason);

  test('a revocation is in OCSP at once and in the CRL soon', async () => {
    const who = await estuary.enrolled(key);
    expect([await ocsp(who), await listed(who)]).toEqual(['good', undefined]);
    expect((await call('revoke', who, { reason: 'keyCompromise' })).status).toBe(200);
    expect(await ocsp(who)).toBe('revoked keyCompromise');
    await listedAs(who, 'Key Compromise');
  });

  test('a held certificate is revoked until its release, and valid again for EST, OCSP and the next CRL', async () => {
    const who = await estuary.enrolled(key);
    const renew = () => estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { path: 'simplereenroll', client: who });
    expect((await call('revoke', who, { reason: 'certificateHold' })).json).toMatchObject({ status: 'revoked' });
    expect(await ocsp(who)).toBe('revoked certificateHold');
    expect((await renew()).status).toBe(401);
    await listedAs(who, 'Certificate Hold');
    expect((await call('release', who)).json).toMatchObject({ status: 'valid', revoked_at: null, reason: null });
    expect(await ocsp(who)).toBe('good');
    expect((await renew()).status).toBe(200);
    await listedAs(who, undefined);
    expect((await call('release', who)).status).toBe(409);
  });

  test('a hold becomes final with another reason, and cannot end then', async () => {
    const who = await estuary.enrolled(key);
    await call('revoke', who, { reason: 'certificateHold' });
    expect((await call('revoke', who, { reason: 'superseded' })).status).toBe(200);
    expect(await ocsp(who)).toBe('revoked superseded');
    expect((await call('release', who)).status).toBe(409);
    expect((await estuary.admin('POST', '/admin/cas/devices/crl')).status).toBe(200);
    expect(await listed(who)).toBe('Superseded');
  });
});
