import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Gssproxy } from '../../support/gssproxy.ts';
import { Kdc, REALM } from '../../support/kdc.ts';
import { initialToken, initialTokens } from '../../support/negotiate.ts';
import { requires } from '../../support/requires.ts';
import { Acceptor } from '../../support/spnego.ts';

const ALICE = { status: 200, text: `CN=alice@${REALM}` };
const UNAVAILABLE = {
  status: 503,
  text: expect.stringMatching(
    /^Kerberos authentication is (temporarily unavailable|processing too many requests)$/,
  ) as string,
};

describe.skipIf(!requires('kdc', 'gssproxy', 'root'))('Kerberos tickets through a real gssproxy', () => {
  let kdc: Kdc;
  let cache: string;
  let proxy: Gssproxy;
  let acceptor: Acceptor;

  const token = async (): Promise<string> => await initialToken({ env: kdc.env, cache });
  const recovers = async (): Promise<void> => {
    await expect.poll(async () => await acceptor.verdict(await token())).toMatchObject(ALICE);
  };

  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    cache = await kdc.login('alice');
    proxy = await Gssproxy.start(kdc);
    acceptor = await Acceptor.start({
      gssproxy: true,
      environment: { ...kdc.env, GSSPROXY_SOCKET: proxy.socket },
      deadlineMs: 10_000,
    });
  });
  afterEach(() => proxy.signal('SIGCONT'));
  afterAll(async () => {
    await acceptor.stop();
    await proxy.stop();
    await kdc.stop();
  });

  it('a valid ticket authenticates its principal; the child process has no keytab', async () => {
    expect(await acceptor.verdict(await token())).toMatchObject(ALICE);
    const environment = await readFile(`/proc/${String(acceptor.verifier.pid)}/environ`, 'latin1');
    expect(environment).not.toContain(kdc.keytab);
  });

  it('a replayed token is refused', async () => {
    const used = await token();
    expect(await acceptor.verdict(used)).toMatchObject(ALICE);
    const again = await acceptor.verdict(used);
    expect(again).toMatchObject({ status: 401, text: 'GSSAPI authentication failed' });
    expect(again.detail).toContain('replay');
  });

  it('gssproxy stopped with SIGSTOP: 503, the main process keeps its latency, automatic recovery', async () => {
    const tokens = await initialTokens({ env: kdc.env, cache }, 12);
    proxy.signal('SIGSTOP');
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 5);
    const verdicts = await Promise.all(tokens.map(async (token) => await acceptor.verdict(token)));
    // libuv's pool is what a stalled library would take; a file read goes through it.
    await readFile(kdc.keytab);
    clearInterval(ticking);
    for (const verdict of verdicts) expect(verdict).toMatchObject(UNAVAILABLE);
    expect(turns).toBeGreaterThan(20);
    proxy.signal('SIGCONT');
    await recovers();
  });

  it('gssproxy killed: 503, never a fall-back to another keytab, automatic recovery', async () => {
    await proxy.kill();
    expect(await acceptor.verdict(await token())).toMatchObject(UNAVAILABLE);
    expect(await acceptor.verifier.missingCredentials()).toMatch(/./);
    await proxy.up();
    await recovers();
  });
});
