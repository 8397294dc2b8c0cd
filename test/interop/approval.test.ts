/** Clients that poll take a request from 202 through approval to its certificate. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileEstClient } from '../support/bouncycastle.ts';
import { run, runAny } from '../support/command.ts';
import { caSection, Estuary, itemsOf, section } from '../support/estuary.ts';
import { ESTCLIENT, requires } from '../support/requires.ts';
import { until } from '../support/until.ts';

let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      caSection(config)['approval'] = 'manual';
      section(config, 'est')['retry_after'] = 2;
      // Bouncy Castle cannot open an encrypted PKCS #8.
      section(config, 'serverkeygen')['encryption'] = 'optional';
    },
  });
  mkdirSync(file('client'), { recursive: true });
});
afterAll(() => estuary.stop());

const file = (name: string): string => join(estuary.dir, name);

/** Approves the request of this name as soon as it is there. */
async function approveWhenQueued(cn: string): Promise<void> {
  const { id } = await until(`${cn} is queued`, async () => {
    const { json } = await estuary.admin('GET', '/admin/requests?status=pending');
    return itemsOf(json).find(({ subject }) => subject === `CN=${cn}`);
  });
  expect((await estuary.admin('POST', `/admin/requests/${String(id)}/approve`)).status).toBe(200);
}

/** The one request of this name, issued, with its one certificate. */
async function checkIssuedOnce(cn: string, otpId: string): Promise<void> {
  const { json } = await estuary.admin('GET', '/admin/requests?status=issued');
  expect(json['items']).toContainEqual(expect.objectContaining({ subject: `CN=${cn}`, method: 'otp' }));
  expect((await estuary.admin('GET', `/admin/certificates?subject=${cn}`)).json['items']).toHaveLength(1);
  expect((await estuary.admin('GET', `/admin/otp/${otpId}`)).json['uses']).toBe(1);
}

const verify = (pem: string): Promise<unknown> =>
  run('openssl', ['verify', '-CAfile', file('ca/root.pem'), '-untrusted', file('ca/issuing.pem'), pem]);

describe.skipIf(!requires('pki', 'openssl'))('strongSwan pki', () => {
  test('polls with a single-use token until its request is approved', async () => {
    const cn = 'polling-strongswan';
    const [key, csr, pem] = [file(`client/${cn}.key`), file(`client/${cn}.der`), file(`client/${cn}.pem`)];
    writeFileSync(key, await run('pki', ['--gen', '--type', 'ecdsa', '--size', '256', '--outform', 'pem']));
    writeFileSync(
      csr,
      await run('pki', ['--req', '--in', key, '--type', 'priv', '--dn', `CN=${cn}`, '--outform', 'der']),
    );
    const otp = await estuary.otp({ client_id: cn });
    const url = `https://localhost:${estuary.server.port('est')}`;
    const trust = ['--cacert', file('ca/root.pem'), '--cacert', file('ca/issuing.pem')];
    const polling = ['--interval', '1', '--maxpolltime', '270', '--userpass', `${cn}:${otp.token}`];
    const client = run('pki', ['--est', '--url', url, '--in', csr, ...trust, ...polling, '--outform', 'pem'], {
      timeout: 280_000,
    });
    const [issued] = await Promise.all([client, approveWhenQueued(cn)]);
    writeFileSync(pem, issued);
    await verify(pem);
    await checkIssuedOnce(cn, otp.id);
  });
});

describe.skipIf(!requires('estclient', 'openssl'))('libest estclient', () => {
  test('polls with a single-use token and a new CSR each time', async () => {
    const cn = 'polling-libest';
    const [key, out] = [file(`client/${cn}.key`), file(`client/${cn}`)];
    await run('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key]);
    mkdirSync(out);
    const otp = await estuary.otp({ client_id: cn });
    const server = ['-s', 'localhost', '-p', String(estuary.server.port('est'))];
    const login = ['-u', cn, '-h', otp.token];
    const args = [...server, '-o', out, '-v', '-w', '60', '-e', '-x', key, ...login, '--common-name', cn];
    const env = { EST_OPENSSL_CACERT: file('ca/root.pem') };
    const [{ output }] = await Promise.all([runAny(ESTCLIENT, args, { env }), approveWhenQueued(cn)]);
    expect(existsSync(join(out, 'cert-0-0.pkcs7')), output).toBe(true);
    const der = Buffer.from(readFileSync(join(out, 'cert-0-0.pkcs7'), 'latin1'), 'base64');
    const pem = file(`client/${cn}.pem`);
    writeFileSync(pem, await run('openssl', ['pkcs7', '-inform', 'DER', '-print_certs'], { input: der }));
    await verify(pem);
    await checkIssuedOnce(cn, otp.id);
  });
});

describe.skipIf(!requires('bouncycastle', 'openssl'))('Bouncy Castle', () => {
  test('polls for a key that the server makes after the approval', async () => {
    const cn = 'polling-bouncycastle';
    const estClient = await compileEstClient(file('client'));
    const [key, pem] = [file(`client/${cn}.key`), file(`client/${cn}.pem`)];
    const otp = await estuary.otp({ client_id: cn });
    const options = {
      server: `localhost:${estuary.server.port('est')}`,
      ca: file('ca/root.pem'),
      subject: `CN=${cn}`,
      newkey: key,
      out: pem,
      user: cn,
      password: otp.token,
    };
    await Promise.all([run('java', estClient('serverkeygen', options)), approveWhenQueued(cn)]);
    await verify(pem);
    expect(await run('openssl', ['x509', '-in', pem, '-noout', '-pubkey'])).toEqual(
      await run('openssl', ['pkey', '-in', key, '-pubout']),
    );
    await checkIssuedOnce(cn, otp.id);
  });
});
