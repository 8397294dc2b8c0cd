/** HTTPS with a client key in SoftHSM2: the key authenticates, and a token that hangs stops only the child process. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { expect, test } from 'vitest';
import { TokenHttpClient } from '../../../src/ca/est/token-client.ts';
import { readCertificates } from '../../../src/config/material/reader.ts';
import { PKCS11_ENGINES } from '../../../src/pki/pkcs11-engine.ts';
import { certifyNewKey, temporaryFolder } from '../../support/openssl.ts';
import { requires } from '../../support/requires.ts';
import { PIN, softHsm, SOFTHSM_MODULE } from '../../support/softhsm.ts';
import { until } from '../../support/until.ts';
import { pidOf } from '../../support/spawned.ts';

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

test.runIf(requires('softhsm', 'tokenTls'))(
  'a client key in a token authenticates; a token that hangs costs its call only',
  async () => {
    const folder = temporaryFolder();
    const hsm = softHsm(folder.path);
    const [key, certificate] = [folder.file('ra.key'), folder.file('ra.pem')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2'];
    certifyNewKey(key, certificate, subject);
    hsm.addToken('ra token');
    hsm.importKey('ra token', key, 'ra', '01');
    const [cert, privateKey] = [readFileSync(certificate), readFileSync(key)];
    writeFileSync(key, '');
    const server = createServer({ cert, key: privateKey, ca: cert, requestCert: true }, (_, response) =>
      response.end('ok'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const certificates = await readCertificates(certificate);
    const common = {
      certificates,
      trustAnchors: certificates,
      maxCalls: 4,
      retryAfter: 1,
      env: { ...process.env, ...hsm.env },
      log: QUIET,
    };
    const url = `https://localhost:${address.port}`;
    const engine = PKCS11_ENGINES.find((path) => existsSync(path)) ?? '';
    const token = { module: SOFTHSM_MODULE, engine, token_label: 'ra token', key_label: 'ra', pin: PIN };
    const client = new TokenHttpClient({
      maxVersion: 'TLSv1.3',
      ...common,
      url,
      token,
    });
    const call = (seconds: number) =>
      client.call({ method: 'GET', path: '/', deadline: Date.now() + seconds * 1000, freshConnection: true });
    try {
      await client.start();
      expect((await call(60)).body.toString()).toBe('ok');
      process.kill(pidOf(client), 'SIGSTOP');
      await expect(call(1)).rejects.toMatchObject({ mayHaveArrived: true });
      await until('the process is back', async () => (await call(60).catch(() => undefined))?.status === 200);
      const wrong = new TokenHttpClient({
        maxVersion: 'TLSv1.3',
        ...common,
        url,
        token: { ...token, pin: '0000' },
      });
      await expect(wrong.start()).rejects.toMatchObject({ permanent: true });
    } finally {
      client.close();
      server.close();
      server.closeAllConnections();
      folder.remove();
    }
  },
);
