import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Kdc, REALM } from '../../support/kdc.ts';
import { FLAG, initialToken, initialTokens, negotiation } from '../../support/negotiate.ts';
import { requires } from '../../support/requires.ts';
import { pidOf } from '../../support/spawned.ts';
import { Acceptor, padToken } from '../../support/spnego.ts';
import { pause, until } from '../../support/until.ts';

const REFUSED = { status: 401, text: 'GSSAPI authentication failed' };
const ALICE = { status: 200, text: `CN=alice@${REALM}` };

describe.skipIf(!requires('kdc'))('Kerberos tickets, with a real KDC and a keytab', () => {
  let kdc: Kdc;
  let cache: string;
  let acceptor: Acceptor;
  const extra: Acceptor[] = [];

  const token = async (options: { cache?: string; service?: string; flags?: number } = {}): Promise<string> =>
    await initialToken({ env: kdc.env, cache, ...options });

  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    cache = await kdc.login('alice');
    acceptor = await Acceptor.start({ keytab: kdc.keytab, environment: kdc.env });
  });
  afterEach(async () => {
    await Promise.all(extra.splice(0).map(async (part) => await part.stop()));
  });
  afterAll(async () => {
    await acceptor.stop();
    await kdc.stop();
  });

  /** A further acceptor, with additional lines in [libdefaults] of krb5.conf. */
  async function acceptorWith(lines: string, keytab = kdc.keytab): Promise<Acceptor> {
    const config = join(kdc.dir, `krb5-${String(Math.random()).slice(2)}.conf`);
    await writeFile(config, kdc.krb5Config(lines));
    const one = await Acceptor.start({ keytab, environment: { ...kdc.env, KRB5_CONFIG: config } });
    extra.push(one);
    return one;
  }

  it('a valid ticket authenticates its principal', async () => {
    expect(await acceptor.verdict(await token())).toMatchObject(ALICE);
  });

  it('RFC 4559: the reply token proves the server to the client', async () => {
    const client = await negotiation({ env: kdc.env, cache });
    const { status, replyToken } = await acceptor.verdict(client.token);
    expect(status).toBe(200);
    expect(await client.finish(replyToken)).toBe('complete');
  });

  it('a client that asks for no mutual authentication gets in, too', async () => {
    expect(await acceptor.verdict(await token({ flags: 0 }))).toMatchObject(ALICE);
  });

  it('a token of almost 64 KiB is accepted', async () => {
    const large = padToken(await token(), 65_536);
    expect(Buffer.from(large, 'base64').length).toBeGreaterThan(65_400);
    expect(await acceptor.verdict(large)).toMatchObject(ALICE);
  });

  it('a replayed token is refused, by another process too', async () => {
    const used = await token();
    expect(await acceptor.verdict(used)).toMatchObject(ALICE);
    const again = await acceptor.verdict(used);
    expect(again).toMatchObject(REFUSED);
    expect(again.detail).toContain('Request is a replay');
    const other = await acceptorWith('');
    expect(await other.verdict(used)).toMatchObject(REFUSED);
  });

  it('KRB5RCACHETYPE and KRB5RCACHENAME cannot turn the replay cache off', async () => {
    const environment = { ...kdc.env, KRB5RCACHETYPE: 'none', KRB5RCACHENAME: 'none:' };
    const one = await Acceptor.start({ keytab: kdc.keytab, environment });
    extra.push(one);
    const used = await token();
    expect(await one.verdict(used)).toMatchObject(ALICE);
    expect(await one.verdict(used)).toMatchObject(REFUSED);
  });

  it('a client whose clock is eleven minutes ahead is refused; four minutes are tolerated', async () => {
    const ahead = await acceptor.verdict(await token({ cache: await kdc.withClockOffset(cache, 660) }));
    expect(ahead).toMatchObject(REFUSED);
    expect(ahead.detail).toContain('Clock skew too great');
    expect(ahead.detail).toContain(`ticket for HTTP/localhost@${REALM}`);
    expect(await acceptor.verdict(await token({ cache: await kdc.withClockOffset(cache, 240) }))).toMatchObject(ALICE);
  });

  it('an expired ticket is refused', async () => {
    const strict = await acceptorWith(' clockskew = 1');
    let short = '';
    await until('the ticket is accepted before it expires', async () => {
      short = await kdc.login('alice', { lifetime: '3s' });
      const valid = await token({ cache: short }).catch(() => undefined);
      return valid !== undefined && (await strict.verdict(valid)).status === ALICE.status;
    });
    await pause(6000);
    // The client's clock is behind, so it still sends the ticket.
    const verdict = await strict.verdict(await token({ cache: await kdc.withClockOffset(short, -60) }));
    expect(verdict).toMatchObject(REFUSED);
    expect(verdict.detail).toMatch(/Ticket expired/);
  });

  it('a ticket for another service is refused, whether or not the keytab could decrypt it', async () => {
    await kdc.addService('HTTP/elsewhere');
    await kdc.addService('ldap/localhost');
    const both = join(kdc.dir, 'both.keytab');
    await kdc.exportKeys('HTTP/localhost', both);
    await kdc.addKeys('ldap/localhost', both);
    const one = await acceptorWith('', both);
    expect(await one.verdict(await token())).toMatchObject(ALICE);
    for (const service of ['HTTP@elsewhere', 'ldap@localhost']) {
      const verdict = await one.verdict(await token({ service }));
      expect(verdict).toMatchObject(REFUSED);
      expect(verdict.detail).toContain(`(ticket for ${service.replace('@', '/')}@${REALM})`);
    }
  });

  it('a ticket for another service of the same account is rejected, although one key opens both', async () => {
    const shared = join(kdc.dir, 'shared.keytab');
    for (const name of ['HTTP/shared', 'cifs/shared']) await kdc.addService(name);
    await kdc.shareKey('HTTP/shared', 'cifs/shared');
    await kdc.exportKeys('HTTP/shared', shared);
    const service_principal = `HTTP/shared@${REALM}`;
    const one = await Acceptor.start({ keytab: shared, environment: kdc.env, service_principal });
    extra.push(one);
    expect(await one.verdict(await token({ service: 'HTTP@shared' }))).toMatchObject(ALICE);
    const verdict = await one.verdict(await token({ service: 'cifs@shared' }));
    expect(verdict).toMatchObject(REFUSED);
    expect(verdict.detail).toBe(`the ticket is for another service (ticket for cifs/shared@${REALM})`);
  });

  it('the service class is compared without case', async () => {
    const ticket = { realm: REALM, components: ['http', 'localhost'] };
    const { principal } = await acceptor.verifier.verify(await token(), ticket);
    expect(principal.text).toBe(`alice@${REALM}`);
  });

  it('a service_principal is used as it is written: its host name is not looked up', async () => {
    // hosts(5) has localhost as the canonical name of this alias.
    const alias = 'ip6-loopback';
    const named = join(kdc.dir, 'alias.keytab');
    await kdc.addService(`HTTP/${alias}`);
    await kdc.exportKeys(`HTTP/${alias}`, named);
    const service_principal = `HTTP/${alias}@${REALM}`;
    const one = await Acceptor.start({ keytab: named, environment: kdc.env, service_principal });
    extra.push(one);
    expect(await one.verifier.missingCredentials()).toBeUndefined();
  });

  it('a replay cache that cannot be written is 503 and names the file; a ticket is good when it can', async () => {
    const KRB5RCACHEDIR = join(kdc.dir, 'replays');
    const one = await Acceptor.start({ keytab: kdc.keytab, environment: { ...kdc.env, KRB5RCACHEDIR } });
    extra.push(one);
    const verdict = await one.verdict(await token());
    expect(verdict).toMatchObject({ status: 503, text: 'Kerberos authentication is temporarily unavailable' });
    expect(verdict.detail).toMatch(/^replay cache .*\/replays\/krb5_\d+\.rcache2 cannot be written: ENOENT/);
    expect(await one.verifier.replayCacheProblem()).toBe(verdict.detail);
    await mkdir(KRB5RCACHEDIR);
    expect(await one.verdict(await token())).toMatchObject(ALICE);
    expect(await one.verifier.replayCacheProblem()).toBeUndefined();
  });

  it('a ticket whose cleartext realm is not that of service_principal is refused', async () => {
    const one = await Acceptor.start({
      keytab: kdc.keytab,
      environment: kdc.env,
      service_principal: 'HTTP/localhost@OTHER.TEST',
    });
    extra.push(one);
    const verdict = await one.verdict(await token());
    expect(verdict).toMatchObject(REFUSED);
    expect(verdict.detail).toMatch(/another realm/);
  });

  it('a damaged ticket or authenticator is refused', async () => {
    const whole = Buffer.from(await token(), 'base64');
    for (const at of [300, whole.length - 10]) {
      const damaged = Buffer.from(whole);
      damaged.writeUInt8(whole.readUInt8(at) ^ 1, at);
      expect(await acceptor.verdict(damaged.toString('base64'))).toMatchObject(REFUSED);
    }
  });

  it('a DCE-style negotiation, which needs a third leg, is refused before and by the library', async () => {
    const verdict = await acceptor.verdict(await token({ flags: FLAG.DCE_STYLE | FLAG.MUTUAL }));
    expect(verdict).toMatchObject(REFUSED);
    expect(verdict.detail).toMatch(/^multi-leg/);
    const dce = await token({ flags: FLAG.DCE_STYLE | FLAG.MUTUAL });
    const ticket = { realm: REALM, components: ['HTTP', 'localhost'] };
    await expect(acceptor.verifier.verify(dce, ticket)).rejects.toMatchObject(REFUSED_ERROR);
  });

  it('an NTLM token never reaches the library', async () => {
    const ntlm = Buffer.from('4e544c4d535350000100000007820880000000000000000000000000', 'hex');
    const verdict = await acceptor.verdict(ntlm.toString('base64'));
    expect(verdict).toMatchObject(REFUSED);
    expect(verdict.detail).toMatch(/^NTLM/);
  });

  it('with the KDC down, tickets already issued are good', async () => {
    const ticketed = await token();
    await kdc.down();
    try {
      expect(await acceptor.verdict(ticketed)).toMatchObject(ALICE);
      expect(await acceptor.verdict(await token())).toMatchObject(ALICE);
    } finally {
      await kdc.up();
    }
  });

  it('keys rotated in the KDC: refused until the keytab is replaced, then accepted without a restart', async () => {
    const rotated = join(kdc.dir, 'rotated.keytab');
    await kdc.addService('HTTP/rotating');
    await kdc.exportKeys('HTTP/rotating', rotated);
    const one = await Acceptor.start({
      keytab: rotated,
      environment: kdc.env,
      service_principal: `HTTP/rotating@${REALM}`,
    });
    extra.push(one);
    const service = 'HTTP@rotating';
    const before = await initialTokens({ env: kdc.env, cache, service }, 2);
    expect(await one.verdict(before[0] ?? '')).toMatchObject(ALICE);

    await kdc.rotateKeys('HTTP/rotating');
    const fresh = await kdc.login('alice');
    const early = await one.verdict(await token({ cache: fresh, service }));
    expect(early).toMatchObject(REFUSED);
    expect(early.detail).toMatch(/kvno|key version/i);

    await kdc.exportKeys('HTTP/rotating', rotated);
    const { pid } = one.verifier;
    expect(await one.verdict(await token({ cache: fresh, service }))).toMatchObject(ALICE);
    expect(await one.verdict(before[1] ?? '')).toMatchObject(REFUSED);
    expect(one.verifier.pid).toBe(pid);
  });

  it('keytab missing or unreadable while running: 503, and good again when it is back', async () => {
    const moving = join(kdc.dir, 'moving.keytab');
    await copyFile(kdc.keytab, moving);
    const one = await acceptorWith('', moving);
    expect(await one.verifier.missingCredentials()).toBeUndefined();
    await rename(moving, `${moving}.away`);
    const gone = await one.verdict(await token());
    expect(gone).toMatchObject({ status: 503, text: 'Kerberos authentication is temporarily unavailable' });
    expect(gone.detail).toContain('not found');
    await writeFile(moving, 'no keytab');
    expect(await one.verdict(await token())).toMatchObject({ status: 503 });
    expect(await one.verifier.missingCredentials()).toMatch(/key table format/);
    await rename(`${moving}.away`, moving);
    expect(await one.verdict(await token())).toMatchObject(ALICE);
  });

  it('the child process crashes: the next one takes over', async () => {
    const one = await acceptorWith('');
    const pid = pidOf(one.verifier);
    process.kill(pid, 'SIGKILL');
    const during = await one.verdict(await token());
    expect([200, 503]).toContain(during.status);
    await expect.poll(async () => await one.verdict(await token())).toMatchObject(ALICE);
    expect(one.verifier.pid).not.toBe(pid);
  });

  it('the child process is frozen: 503 within the deadline, then another one', async () => {
    const one = await Acceptor.start({ keytab: kdc.keytab, environment: kdc.env, deadlineMs: 3000 });
    extra.push(one);
    process.kill(pidOf(one.verifier), 'SIGSTOP');
    expect(await one.verdict(await token())).toMatchObject({ status: 503 });
    await expect.poll(async () => await one.verdict(await token())).toMatchObject(ALICE);
  });

  it('many at once are all answered', async () => {
    const tokens = await initialTokens({ env: kdc.env, cache }, 60);
    const verdicts = await Promise.all(tokens.map(async (token) => await acceptor.verdict(token)));
    expect(new Set(verdicts.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('to have too much work is no lack of credentials', async () => {
    const answers = Array.from({ length: 140 }, () => acceptor.verifier.missingCredentials());
    expect(new Set(await Promise.all(answers))).toEqual(new Set([undefined]));
  });
});

const REFUSED_ERROR = { status: 401, message: 'GSSAPI authentication failed' };
