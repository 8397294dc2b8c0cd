import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runText } from '../support/command.ts';
import { makeKey, onTheWire } from '../support/csr.ts';
import { call } from '../support/https.ts';
import { Kdc, REALM } from '../support/kdc.ts';
import { FLAG, initialToken, negotiation } from '../support/negotiate.ts';
import { NegotiateServer, clientTls } from '../support/negotiate-server.ts';
import { requires } from '../support/requires.ts';
import { expectMatch, PRE_SHARED, readPkcs8, readServerKey } from '../support/server-key.ts';
import { padToken } from '../support/spnego.ts';

const FAILED = { status: 401, text: 'GSSAPI authentication failed' };
const BOTH = ['Basic realm="est"', 'Negotiate'];

/** A client certificate that no trust anchor leads to. */
async function selfSigned(): Promise<{ key: string; cert: string }> {
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '-', '-days', '1'];
  const both = await runText('openssl', ['req', '-x509', ...options, '-subj', '/CN=stranger']);
  return { key: both, cert: both };
}

describe.skipIf(!requires('curl', 'openssl', 'kdc'))('Negotiate against the built server, KDC and curl', () => {
  let kdc: Kdc;
  let server: NegotiateServer;
  const caches: Record<string, string> = {};

  const token = async (user = 'alice', options: { cache?: string; service?: string; flags?: number } = {}) =>
    await initialToken({ env: kdc.env, cache: caches[user] ?? '', ...options });

  beforeAll(async () => {
    kdc = await Kdc.start();
    for (const user of ['alice', 'bob', 'carol/admin']) {
      await kdc.addUser(user);
      caches[user] = await kdc.login(user);
    }
    server = await NegotiateServer.start({
      kdc,
      gssapi: `keytab = "${kdc.keytab}"
default_template = "UID={primary},O={realm}"
[gssapi.principal_mapping]
"alice@${REALM}" = "CN=Alice Adams,OU=People,O=Example"
[serverkeygen]
password_env = "KEYGEN_PASSWORD"`,
      env: { KEYGEN_PASSWORD: PRE_SHARED },
    });
  });
  afterAll(async () => {
    await server.stop();
    await kdc.stop();
  });

  it.each([
    ['by the table', 'alice', 'CN=Alice Adams,OU=People,O=Example'],
    ['by the template', 'bob', `UID=bob,O=${REALM}`],
  ])('curl --negotiate -u : enrolls; the subject is mapped %s, whatever the CSR says', async (_, user, subject) => {
    expect(await server.curl(caches[user] ?? '')).toMatchObject({ status: 200, subject });
  });

  it('a principal that neither maps is refused with `principal not mapped`', async () => {
    expect(await server.curl(caches['carol/admin'] ?? '')).toMatchObject({
      status: 401,
      output: 'principal not mapped',
    });
    const [record] = (await server.audit('auth.gssapi')).filter(({ outcome }) => outcome === 'failure').slice(-1);
    expect(record?.['detail']).toContain(`carol/admin@${REALM}`);
  });

  it('RFC 4559: the answer proves the server to the client', async () => {
    const client = await negotiation({ env: kdc.env, cache: caches['alice'] ?? '' });
    const { status, challenges } = await server.post({ token: client.token });
    expect(status).toBe(200);
    expect(challenges).toEqual([expect.stringMatching(/^Negotiate [A-Za-z0-9+/]+=*$/)]);
    expect(await client.finish(challenges[0]?.slice('Negotiate '.length) ?? '')).toBe('complete');
  });

  it('401 offers Basic first and Negotiate after it', async () => {
    expect(await server.post()).toMatchObject({ status: 401, text: '', challenges: BOTH });
    expect(await server.post({ token: 'AAAA' })).toMatchObject({ ...FAILED, challenges: BOTH });
  });

  it("a SAN that is not the mapped principal's is refused with 403", async () => {
    for (const name of ['host.example.test', '*.example.test']) {
      const csr = server.csr(makeKey(), [name]);
      expect(await server.post({ token: await token(), csr })).toMatchObject({
        status: 403,
        text: expect.stringContaining(name) as string,
      });
    }
  });

  it('the certificate is recorded with the principal as its requester', async () => {
    const { certificate } = await server.post({ token: await token('bob') });
    const record = await server.quickstart.admin(`/admin/certificates/${certificate?.serialNumber ?? ''}`);
    expect(record).toMatchObject({ method: 'gssapi', requester: `bob@${REALM}`, subject: `UID=bob,O=${REALM}` });
  });

  it('precedence 1: with a valid client certificate the token is not even looked at', async () => {
    const key = makeKey();
    const first = await server.post({ token: await token('bob'), csr: server.csr(key) });
    if (first.certificate === undefined) throw new Error('no client certificate');
    const unused = await token('alice');
    const tls = clientTls(key, first.certificate);
    // The certificate's holder may not have the CSR's name; Alice could.
    const overMtls = { status: 403, text: expect.stringContaining('subject of the certificate') as string };
    expect(await server.post({ token: unused, tls })).toMatchObject({ ...overMtls, challenges: [] });
    // Not consumed: a token that had been verified would now be a replay.
    expect(await server.post({ token: unused })).toMatchObject({
      status: 200,
      subject: expect.stringContaining('Alice') as string,
    });
    expect(await server.post({ token: 'AAAA', tls })).toMatchObject(overMtls);
  });

  it('precedence 2: Negotiate is tried where the client certificate is not valid', async () => {
    const tls = await selfSigned();
    expect(await server.post({ token: await token(), tls })).toMatchObject({
      status: 200,
      subject: 'CN=Alice Adams,OU=People,O=Example',
    });
    expect(await server.post({ token: 'AAAA', tls })).toMatchObject(FAILED);
  });

  it('precedence 3: failures of Negotiate do not count against one-time passwords, which stay on offer', async () => {
    for (let failure = 0; failure < 7; failure++) expect(await server.post({ token: 'AAAA' })).toMatchObject(FAILED);
    const otp = await server.quickstart.createOtp('device-1');
    const authorization = `Basic ${Buffer.from(`device-1:${otp}`).toString('base64')}`;
    expect(await server.post({ authorization })).toMatchObject({ status: 200, subject: 'CN=whatever' });
  });

  it('serverkeygen: the generated key is certified for the mapped subject, and the server proves itself', async () => {
    const answer = await call({
      method: 'POST',
      path: '/.well-known/est/serverkeygen',
      port: server.quickstart.server.port('est'),
      headers: { 'Content-Type': 'application/pkcs10', Authorization: `Negotiate ${await token()}` },
      body: onTheWire(server.csr()),
      tls: server.tls,
    });
    const issued = readServerKey(answer);
    expect(answer.headers['www-authenticate']).toMatch(/^Negotiate [A-Za-z0-9+/]+=*$/);
    expect(issued.certificate.subject.split('\n').sort()).toEqual(['CN=Alice Adams', 'O=Example', 'OU=People']);
    expectMatch(issued, readPkcs8(issued.key, PRE_SHARED));
  });

  it('re-enrollment takes a client certificate only, and leaves the token unused', async () => {
    const unused = await token();
    const answer = await server.post({ token: unused, operation: 'simplereenroll' });
    expect(answer).toMatchObject({ status: 401, text: 'client certificate required' });
    expect(await server.post({ token: unused })).toMatchObject({ status: 200 });
  });

  it('the reason of a refusal is in the audit and never in the answer', async () => {
    const used = await token();
    expect(await server.post({ token: used })).toMatchObject({ status: 200 });
    expect(await server.post({ token: used })).toMatchObject({ ...FAILED, challenges: BOTH });
    const skewed = await token('alice', { cache: await kdc.withClockOffset(caches['alice'] ?? '', 900) });
    expect(await server.post({ token: skewed })).toMatchObject(FAILED);
    const ntlm = Buffer.from('4e544c4d535350000100000007820880000000000000000000000000', 'hex').toString('base64');
    expect(await server.post({ token: ntlm })).toMatchObject(FAILED);
    const dce = await token('alice', { flags: FLAG.DCE_STYLE | FLAG.MUTUAL });
    expect(await server.post({ token: dce })).toMatchObject(FAILED);
    await kdc.addService('HTTP/elsewhere');
    const elsewhere = await token('alice', { service: 'HTTP@elsewhere' });
    expect(await server.post({ token: elsewhere })).toMatchObject(FAILED);
    const failures = (await server.audit('auth.gssapi')).filter(({ outcome }) => outcome === 'failure');
    // Without the count of those that have no record, which comes after ten seconds.
    const details = failures
      .map(({ detail }) => String(detail))
      .filter((detail) => !/^\d+ more failures /.test(detail))
      .slice(-5);
    for (const [i, reason] of ['replay', 'Clock skew too great', 'NTLM', 'multi-leg', 'HTTP/elsewhere'].entries()) {
      expect(details[i]).toContain(reason);
      await expect.poll(() => server.quickstart.server.output()).toContain(reason);
    }
  });

  it('a token of 64 KiB passes; a larger one is refused with 401, a header beyond the bound with 431', async () => {
    expect(await server.post({ token: padToken(await token(), 65_536) })).toMatchObject({ status: 200 });
    expect(await server.post({ token: 'A'.repeat(65_536) })).toMatchObject(FAILED);
    expect(await server.post({ token: padToken(await token(), 67_000) })).toMatchObject(FAILED);
    expect((await server.post({ token: 'A'.repeat(98_500) })).status).toBe(431);
  });

  it('a malformed CSR after a good token is a 400', async () => {
    expect(await server.post({ token: await token(), csr: Buffer.from('no CSR') })).toMatchObject({ status: 400 });
  });
});
