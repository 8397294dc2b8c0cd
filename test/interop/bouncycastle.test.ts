/** Bouncy Castle's EST client, in the small program next to this file, against the quickstart's configuration. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileEstClient, type EstClientArguments } from '../support/bouncycastle.ts';
import { run, runAny } from '../support/command.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';

describe.skipIf(!requires('bouncycastle', 'curl', 'openssl'))('Bouncy Castle', () => {
  let server: Quickstart;
  let estClient: EstClientArguments;

  beforeAll(async () => {
    // It cannot open an encrypted PKCS #8.
    server = await startQuickstart({ sections: '[serverkeygen]\nencryption = "optional"' });
    estClient = await compileEstClient(server.file('client'));
  });
  afterAll(() => server.stop());

  const java = (operation: string, options: Readonly<Record<string, string>>): readonly string[] =>
    estClient(operation, { server: server.host, ca: server.file('ca/root.pem'), ...options });
  const client = (operation: string, options: Readonly<Record<string, string>>): Promise<Buffer> =>
    run('java', java(operation, options));

  test('gets the CA certificates', async () => {
    const out = server.file('client/bc-ca.pem');
    await client('cacerts', { out });
    const pem = readFileSync(out, 'utf8').replace(/\s/g, '');
    for (const file of ['ca/issuing.pem', 'ca/root.pem']) {
      expect(pem).toContain(readFileSync(server.file(file), 'utf8').replace(/\s/g, ''));
    }
  });

  test.each(['TLSv1.2', 'TLSv1.3'])(
    'enrolls with an OTP, enrolls again over mTLS and re-enrolls: %s',
    async (tls) => {
      const name = `bc-${tls.replace('.', '').toLowerCase()}`;
      const certificate = (step: string): { newkey: string; out: string; subject: string; tls: string } => ({
        newkey: server.file(`client/${name}-${step}.key`),
        out: server.file(`client/${name}-${step}.pem`),
        subject: `CN=${name}`,
        tls,
      });
      const check = (paths: { newkey: string; out: string }): ReturnType<Quickstart['check']> =>
        server.check(paths.out, { subject: `CN=${name}`, key: paths.newkey });

      const first = certificate('first');
      await client('simpleenroll', { ...first, user: name, password: await server.createOtp(name) });
      const issued = await check(first);
      expect(issued.record['method']).toBe('otp');

      const presented = { cert: first.out, key: first.newkey };
      const second = certificate('second');
      await client('simpleenroll', { ...second, ...presented });
      const again = await check(second);
      expect(again.record['method']).toBe('mtls');

      const third = certificate('third');
      await client('simplereenroll', { ...third, ...presented });
      const renewed = await check(third);
      expect(new Set([issued.serial, again.serial, renewed.serial]).size).toBe(3);
    },
    120_000,
  );

  test('enrolls with another CA by its label', async () => {
    const paths = { newkey: server.file('client/bc-lab.key'), out: server.file('client/bc-lab.pem') };
    const otp = await server.createOtp('bc-lab');
    await client('simpleenroll', { ...paths, subject: 'CN=bc-lab', label: 'lab', user: 'x', password: otp });
    await server.check(paths.out, { subject: 'CN=bc-lab', key: paths.newkey, issuer: server.file('ca/lab.pem') });
  });

  test('gets a key that the server made', async () => {
    const paths = { newkey: server.file('client/bc-keygen.key'), out: server.file('client/bc-keygen.pem') };
    const otp = await server.createOtp('bc-keygen');
    await client('serverkeygen', { ...paths, subject: 'CN=bc-keygen', user: 'x', password: otp });
    await server.check(paths.out, { subject: 'CN=bc-keygen', key: paths.newkey });
  });

  test.skipIf(!requires('bouncycastleTls'))(
    'enrolls with the channel binding in its challengePassword (RFC 7030 §3.5)',
    async () => {
      const paths = { newkey: server.file('client/bc-pop.key'), out: server.file('client/bc-pop.pem') };
      const otp = await server.createOtp('bc-pop');
      const options = { ...paths, subject: 'CN=bc-pop', user: 'x', password: otp, tls: 'TLSv1.2' };
      await client('popenroll', options);
      await server.check(paths.out, { subject: 'CN=bc-pop', key: paths.newkey });
    },
  );

  test('is told that its password is wrong', async () => {
    const paths = { newkey: server.file('client/bc-no.key'), out: server.file('client/bc-no.pem') };
    const options = { ...paths, subject: 'CN=bc-no', user: 'x', password: 'not-the-password' };
    const { code, output } = await runAny('java', java('simpleenroll', options));
    expect(code).not.toBe(0);
    expect(output).toContain('Status Code: 401');
  });
});
