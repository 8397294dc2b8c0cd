/** HTTPS with a client key in SoftHSM2: the key authenticates, a token that hangs stops only the child process, and a wrong PIN is tried once. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { TokenHttpClient } from '../../../src/ca/est/token-client.ts';
import { forgetRejectedPins } from '../../../src/ca/pkcs11/logins.ts';
import { Pkcs11Signer } from '../../../src/ca/pkcs11/pkcs11-signer.ts';
import type { TokenAccess } from '../../../src/ca/pkcs11/wire.ts';
import { readCertificates } from '../../../src/config/material/reader.ts';
import type { Certificates } from '../../../src/config/material/material.ts';
import { PKCS11_ENGINES } from '../../../src/pki/pkcs11-engine.ts';
import { certifyNewKey, temporaryFolder } from '../../support/openssl.ts';
import { buildShim } from '../../support/pkcs11-shim.ts';
import { requires } from '../../support/requires.ts';
import { PIN, softHsm, type SoftHsm } from '../../support/softhsm.ts';
import { until } from '../../support/until.ts';
import { pidOf } from '../../support/spawned.ts';

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe.skipIf(!requires('softhsm', 'tokenTls', 'pkcs11Shim'))('a client key in a token', () => {
  const folder = temporaryFolder();
  const tries = folder.file('tries');
  const printed: string[] = [];
  const opened: { close(): unknown }[] = [];
  let hsm: SoftHsm;
  let module: string;
  let certificates: Certificates;
  let server: Server;
  let url: string;

  beforeAll(async () => {
    hsm = softHsm(folder.path);
    module = buildShim(hsm);
    const [key, certificate] = [folder.file('ra.key'), folder.file('ra.pem')];
    certifyNewKey(key, certificate, [
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'],
    ]);
    hsm.addToken('ra token');
    hsm.importKey('ra token', key, 'ra', '01');
    certificates = await readCertificates(certificate);
    const cert = readFileSync(certificate);
    const tls = { cert, key: readFileSync(key), ca: cert, requestCert: true };
    server = createServer(tls, (_, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    url = `https://localhost:${address.port}`;
  });
  afterEach(() => {
    for (const client of opened.splice(0)) client.close();
    forgetRejectedPins();
    printed.length = 0;
    writeFileSync(tries, '0');
    writeFileSync(hsm.file('shim.log'), '');
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
    folder.remove();
  });

  const environment = (quirks: string, more = {}): NodeJS.ProcessEnv => ({
    ...process.env,
    ...{ ...hsm.env, SHIM: quirks, SHIM_TRIES: tries, SHIM_LOG: hsm.file('shim.log'), SHIM_PIN: PIN },
    ...more,
  });

  function clientOf(access: Partial<TokenAccess> = {}, quirks = 'tries', more = {}): TokenHttpClient {
    const client = new TokenHttpClient({
      ...{ url, maxVersion: 'TLSv1.3', certificates, trustAnchors: certificates, maxCalls: 4, retryAfter: 1 },
      token: { module, token_label: 'ra token', key_label: 'ra', pin: PIN, ...access },
      engine: PKCS11_ENGINES.find((path) => existsSync(path)) ?? '',
      env: environment(quirks, more),
      log: QUIET,
      onOutput: (line) => void printed.push(line),
    });
    opened.push(client);
    return client;
  }

  const call = (client: TokenHttpClient, seconds = 60) =>
    client.call({ method: 'GET', path: '/', deadline: Date.now() + seconds * 1000, freshConnection: true });

  const logins = (): number => (readFileSync(hsm.file('shim.log'), 'utf8').match(/C_Login/g) ?? []).length;

  test('authenticates; a token that hangs costs its call only; each process logs in once', async () => {
    const client = clientOf();
    await client.start();
    for (let n = 0; n < 3; n++) expect((await call(client)).body.toString()).toBe('ok');
    expect(logins()).toBe(1);
    process.kill(pidOf(client), 'SIGSTOP');
    await expect(call(client, 1)).rejects.toMatchObject({ mayHaveArrived: true });
    await until('the process is back', async () => (await call(client).catch(() => undefined))?.status === 200);
    expect(logins()).toBe(2);
  });

  test.each([
    ['a single session', { SHIM_MAX: '1' }, 'maxsess'],
    ['the PIN at its own keypad', {}, 'protauth'],
    ['no login', {}, 'nologin'],
  ])('authenticates with a token of %s', async (_, more, quirks) => {
    const client = clientOf({}, quirks, more);
    await client.start();
    expect((await call(client)).body.toString()).toBe('ok');
  });

  test('a module that cannot lock: the message says why TLS cannot use it', async () => {
    const reason = "Cannot lock (libp11's engine always sets CKF_OS_LOCKING_OK, which the module refuses)";
    await expect(clientOf({}, 'cantlock').start()).rejects.toThrow(reason);
  });

  test('a wrong PIN is tried once before a reload, together with the keys of CAs in the token', async () => {
    const pin = '0000';
    const refused = { code: 'TOKEN_PIN', permanent: true };
    const first = clientOf({ pin });
    await expect(first.start()).rejects.toMatchObject(refused);
    expect(first.hasGivenUp).toBe(true);
    await expect(clientOf({ pin }).start()).rejects.toMatchObject(refused);
    const signer = new Pkcs11Signer({
      ...{ module, token_label: 'ra token', key_label: 'ra', pin, max_sessions: 1, timeout: 60, retryAfter: 1 },
      ...{ env: environment('tries'), log: QUIET },
    });
    opened.push(signer);
    await expect(signer.start()).rejects.toMatchObject(refused);
    expect(readFileSync(tries, 'utf8')).toBe('1');
    forgetRejectedPins();
    await expect(clientOf({ pin }).start()).rejects.toMatchObject(refused);
    expect(readFileSync(tries, 'utf8')).toBe('2');
  });

  test('the final try of the PIN is not taken, nor a locked PIN tried', async () => {
    for (const [wrong, flag] of ['FINAL_TRY', 'LOCKED'].map((name, n) => [String(n + 2), name] as const)) {
      writeFileSync(tries, wrong);
      forgetRejectedPins();
      await expect(clientOf().start()).rejects.toThrow(`CKF_USER_PIN_${flag}`);
    }
    expect(logins()).toBe(0);
  });

  test('a PIN that is changed while it is in use is tried once, and a reload opens it again', async () => {
    const client = clientOf();
    await client.start();
    await hsm.tool('ra token', '--change-pin', '--new-pin', 'another-pin');
    try {
      process.kill(pidOf(client), 'SIGKILL');
      await until('it gives up', () => client.hasGivenUp);
      await expect(call(client)).rejects.toMatchObject({ mayHaveArrived: false });
      expect(readFileSync(tries, 'utf8')).toBe('1');
    } finally {
      await hsm.tool('ra token', '--pin', 'another-pin', '--change-pin', '--new-pin', PIN);
    }
  });

  test('a missing key is named, with those that are there, and the engine tries no login', async () => {
    const client = clientOf({ pin: '' });
    await expect(client.start()).rejects.toThrow('token "ra token" has no private key labeled "ra"');
    expect(logins()).toBe(0);
  });

  test("what the token's library prints is passed on, without the PIN", async () => {
    const client = clientOf({}, 'stderr', { SHIM_LINES: '2' });
    await client.start();
    await until('both lines', () => printed.length >= 2);
    expect(printed.slice(0, 2)).toEqual(['vendor module: line 2', 'vendor module: line 1']);
  });
});
