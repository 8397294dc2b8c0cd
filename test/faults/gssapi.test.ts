import { copyFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Gssproxy } from '../support/gssproxy.ts';
import { call } from '../support/https.ts';
import { Kdc, REALM } from '../support/kdc.ts';
import { initialToken, initialTokens } from '../support/negotiate.ts';
import { NegotiateServer } from '../support/negotiate-server.ts';
import { requires } from '../support/requires.ts';
import { until } from '../support/until.ts';

const GOOD = { status: 200, subject: `CN=alice@${REALM}` };
const REFUSALS = [401, 503];

describe.skipIf(!requires('openssl', 'kdc', 'gssproxy', 'root'))('Negotiate when something is down', () => {
  let kdc: Kdc;
  let cache: string;
  let keytab: string;
  let proxy: Gssproxy;
  let withKeytab: NegotiateServer;
  let withProxy: NegotiateServer;

  const token = async (): Promise<string> => await initialToken({ env: kdc.env, cache });
  const recovers = async (server: NegotiateServer): Promise<void> => {
    const attempt = async (): Promise<unknown> => await server.post({ token: await token() });
    await expect.poll(attempt).toMatchObject(GOOD);
  };

  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    cache = await kdc.login('alice');
    keytab = join(kdc.dir, 'server.keytab');
    await copyFile(kdc.keytab, keytab);
    proxy = await Gssproxy.start(kdc);
    const template = 'default_template = "CN={principal}"';
    withKeytab = await NegotiateServer.start({ kdc, gssapi: `keytab = "${keytab}"\n${template}` });
    withProxy = await NegotiateServer.start({
      kdc,
      gssapi: `gssproxy = true\n${template}`,
      env: { GSSPROXY_SOCKET: proxy.socket },
    });
  });
  afterEach(() => proxy.signal('SIGCONT'));
  afterAll(async () => {
    await withKeytab.stop();
    await withProxy.stop();
    await proxy.stop();
    await kdc.stop();
  });

  it('the KDC is down: tickets already issued enroll', async () => {
    const issued = await token();
    await kdc.down();
    try {
      expect(await withKeytab.post({ token: issued })).toMatchObject(GOOD);
    } finally {
      await kdc.up();
    }
  });

  it('the keytab is missing, then broken: 503; back again: good without a restart', async () => {
    await rename(keytab, `${keytab}.away`);
    const missing = await withKeytab.post({ token: await token() });
    expect(missing).toMatchObject({ status: 503, text: 'Kerberos authentication is temporarily unavailable' });
    await writeFile(keytab, 'not a keytab');
    expect(await withKeytab.post({ token: await token() })).toMatchObject({ status: 503 });
    await rename(`${keytab}.away`, keytab);
    expect(await withKeytab.post({ token: await token() })).toMatchObject(GOOD);
  });

  it('the keytab is replaced with rotated keys while running: picked up', async () => {
    await kdc.rotateKeys('HTTP/localhost');
    const fresh = await kdc.login('alice');
    const early = await withKeytab.post({ token: await initialToken({ env: kdc.env, cache: fresh }) });
    expect(early).toMatchObject({ status: 401, text: 'GSSAPI authentication failed' });
    await kdc.exportKeys('HTTP/localhost', keytab);
    await kdc.exportKeys('HTTP/localhost', kdc.keytab);
    expect(await withKeytab.post({ token: await initialToken({ env: kdc.env, cache: fresh }) })).toMatchObject(GOOD);
    cache = fresh;
  });

  it('the child process is killed: it restarts automatically', async () => {
    const before = await withKeytab.children();
    expect(before).toHaveLength(1);
    for (const pid of before) process.kill(pid, 'SIGKILL');
    await recovers(withKeytab);
    expect(await withKeytab.children()).not.toEqual(before);
  });

  it('gssproxy is stopped with SIGSTOP: Negotiate is refused, other requests are served meanwhile, then it recovers', async () => {
    await recovers(withProxy);
    proxy.signal('SIGSTOP');
    // The server waits five seconds. On a busy machine, cacerts can take longer: then they are made again.
    const stuck = await until('cacerts is answered while every token waits', async () => {
      const tokens = await initialTokens({ env: kdc.env, cache }, 8);
      let waiting = tokens.length;
      const all = Promise.all(
        tokens.map(async (token) => {
          const { status } = await withProxy.post({ token });
          waiting -= 1;
          return status;
        }),
      );
      all.catch(() => undefined);
      expect(await cacerts(withProxy)).toBe(200);
      if (waiting === tokens.length) return { all };
      await all;
      return undefined;
    });
    const otp = await withProxy.quickstart.createOtp('device-1');
    const authorization = `Basic ${Buffer.from(`device-1:${otp}`).toString('base64')}`;
    // argon2, signatures and files need libuv's threads, which a stalled library in this process would hold.
    expect(await withProxy.post({ authorization })).toMatchObject({ status: 200 });
    for (let request = 0; request < 10; request++) expect(await cacerts(withProxy)).toBe(200);
    for (const status of await stuck.all) expect(REFUSALS).toContain(status);
    proxy.signal('SIGCONT');
    await recovers(withProxy);
  });

  it('gssproxy is killed: Negotiate is refused, other requests are served, then it recovers', async () => {
    await proxy.kill();
    expect(REFUSALS).toContain((await withProxy.post({ token: await token() })).status);
    expect(await cacerts(withProxy)).toBe(200);
    await proxy.up();
    await recovers(withProxy);
  });
});

async function cacerts(server: NegotiateServer): Promise<number> {
  const port = server.quickstart.server.port('est');
  return (await call({ path: '/.well-known/est/cacerts', port, tls: server.tls })).status;
}
