/** `driver = "acme"`: the built server in front of Pebble, which rejects a part of all nonces, with external account binding and dns-01, or with names that are authorized already. */
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { openssl } from '../support/openssl.ts';
import { accepts, freePorts } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { enrollAt, startFront, x509 } from '../support/upstream.ts';
import { removeFolder } from '../support/folders.ts';

const HMAC = 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W';

let home: string;
let front: Estuary;
const programs: ChildProcess[] = [];
const key = makeKey();

describe.skipIf(!requires('pebble'))('Pebble', () => {
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'estuary-acme-'));
    const file = (name: string): string => join(home, name);
    const [acme = 0, management = 0, dnsPort = 0, dnsManagement = 0] = await freePorts(4);
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];
    openssl([
      'req',
      '-x509',
      ...ec,
      '-keyout',
      file('tls.key'),
      '-out',
      file('tls.pem'),
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost,IP:127.0.0.1',
    ]);
    const pebble = {
      listenAddress: `127.0.0.1:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: file('tls.pem'),
      privateKey: file('tls.key'),
      httpPort: 1,
      tlsPort: 1,
      externalAccountBindingRequired: true,
      externalAccountMACKeys: { 'kid-1': HMAC },
      domainBlocklist: ['blocked.example.com'],
    };
    writeFileSync(file('pebble.json'), JSON.stringify({ pebble }));
    const run = (program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void => {
      programs.push(spawn(program, args, { stdio: 'ignore', env: { ...process.env, ...env } }));
    };
    run('pebble-challtestsrv', [
      '-dns01',
      `127.0.0.1:${dnsPort}`,
      '-management',
      `127.0.0.1:${dnsManagement}`,
      '-http01',
      '',
      '-https01',
      '',
      '-tlsalpn01',
      '',
    ]);
    run('pebble', ['-config', file('pebble.json'), '-dnsserver', `127.0.0.1:${dnsPort}`], {
      PEBBLE_WFE_NONCEREJECT: '15',
      // Each validation takes a random time below this number of seconds.
      PEBBLE_VA_SLEEPTIME: '8',
      // A valid authorization serves further orders of the account.
      PEBBLE_AUTHZREUSE: '100',
    });
    for (const port of [acme, management, dnsManagement])
      await vi.waitFor(async () => expect(await accepts(port)).toBe(true), { timeout: 60_000, interval: 50 });
    const tls = readFileSync(file('tls.pem'), 'latin1');
    const root = await call({ port: management, path: '/roots/0', method: 'GET', tls: { ca: tls } });
    writeFileSync(file('roots.pem'), root.text);
    writeFileSync(file('hmac'), HMAC, { mode: 0o600 });
    writeFileSync(
      file('dns-01'),
      `#!/bin/sh
echo "$*" >> ${home}/hook.log
case $1 in
  present) exec curl -sSf -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" http://127.0.0.1:${dnsManagement}/set-txt ;;
  cleanup) exec curl -sSf -d "{\\"host\\":\\"$2.\\"}" http://127.0.0.1:${dnsManagement}/clear-txt ;;
esac
`,
    );
    chmodSync(file('dns-01'), 0o755);
    const ca = (acmeKeys: TomlTable): TomlTable => ({
      driver: 'acme',
      profile: { extended_key_usage: ['serverAuth', 'clientAuth'], san: { dns: ['[a-z0-9-]+\\.example\\.com'] } },
      acme: {
        directory: `https://localhost:${acme}/dir`,
        tls_trust_anchors: file('tls.pem'),
        account_key_file: file('account.key'),
        eab_kid: 'kid-1',
        eab_hmac_key_file: file('hmac'),
        ...acmeKeys,
      },
    });
    front = await startFront({
      anchors: file('roots.pem'),
      ca: () => ca({ dns_hook: [file('dns-01')] }),
      configure: (config) => {
        section(config, 'est')['retry_after'] = 1;
        const none = { label: 'none', upstream_trust_anchors: 'upstream-roots.pem', ...ca({ challenge: 'none' }) };
        config['ca'] = [...(Array.isArray(config['ca']) ? config['ca'] : []), none];
      },
    });
  });
  afterAll(async () => {
    await front.stop();
    for (const program of programs) program.kill();
    removeFolder(home);
  });

  /** Until the order is done; the common name is one of the DNS names. */
  async function certified(name: string, path = 'edge/simpleenroll'): Promise<ReturnType<typeof x509>> {
    const { token } = await front.otp({ client_id: name });
    const answers: Awaited<ReturnType<typeof enrollAt>>[] = [];
    await expect
      .poll(
        async () => {
          const answer = await enrollAt(front, key, name, { names: [name], password: token, path });
          answers.push(answer);
          return [answer.status, answer.status === 200 ? '' : answer.text];
        },
        { timeout: 60_000, interval: 300 },
      )
      .toEqual([200, '']);
    const last = answers.at(-1);
    if (last === undefined) throw new Error('no answer');
    return x509(last);
  }

  test('certifies the CSR after dns-01, and cleans the record up', async () => {
    const certificate = await certified('a.example.com');
    expect(certificate.subjectAltName).toBe('DNS:a.example.com');
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(key.spki);
    const log = readFileSync(join(home, 'hook.log'), 'utf8');
    expect(log).toMatch(/^present _acme-challenge\.a\.example\.com \S{43}$/m);
    expect(log).toMatch(/^cleanup _acme-challenge\.a\.example\.com \S{43}$/m);
    expect(statSync(join(home, 'account.key')).mode & 0o777).toBe(0o600);
  });

  test('the certificate renews at the label, and cacerts has the chain', async () => {
    const certificate = await certified('b.example.com');
    const client = { cert: certificate.toString(), key: key.pem };
    const renew = async () =>
      (await enrollAt(front, key, 'b.example.com', { names: ['b.example.com'], client, path: 'edge/simplereenroll' }))
        .status;
    await expect.poll(renew, { timeout: 60_000, interval: 300 }).toBe(200);
    expect((await front.est('edge/cacerts')).status).toBe(200);
    await front.server.stop();
    // The account exists, so its binding is not sent again.
    writeFileSync(join(home, 'hmac'), 'AAAA', { mode: 0o600 });
    await front.restart();
    await expect.poll(renew, { timeout: 60_000, interval: 300 }).toBe(200);
  });

  test('a slow validation goes on without the device', async () => {
    const answer = await enrollAt(front, key, 'g.example.com', { names: ['g.example.com'] });
    expect([200, 202]).toContain(answer.status);
    const waiting = async () => {
      const { json } = await front.admin('GET', '/admin/requests?status=pending&ca=edge');
      return itemsOf(json).length;
    };
    await expect.poll(waiting, { timeout: 60_000, interval: 300 }).toBe(0);
    const { json } = await front.admin('GET', '/admin/certificates?ca=edge&subject=g.example.com');
    expect(itemsOf(json)).toHaveLength(1);
  });

  test('a revocation is made there, too', async () => {
    const certificate = await certified('c.example.com');
    const serial = certificate.serialNumber.toLowerCase();
    const revoke = () => front.admin('POST', `/admin/certificates/${serial}/revoke`, { reason: 'superseded' });
    expect((await revoke()).status).toBe(200);
    expect((await revoke()).status).toBe(409);
  });

  test('with challenge = "none", names that the account is authorized for are certified without the hook', async () => {
    await certified('e.example.com');
    const before = readFileSync(join(home, 'hook.log'), 'utf8');
    expect((await certified('e.example.com', 'none/simpleenroll')).subjectAltName).toBe('DNS:e.example.com');
    expect(readFileSync(join(home, 'hook.log'), 'utf8')).toBe(before);
  });

  test('with challenge = "none", a CA that wants a challenge is 500, and the log has the name', async () => {
    const answer = await enrollAt(front, key, 'f.example.com', { names: ['f.example.com'], path: 'none/simpleenroll' });
    expect(answer.status).toBe(500);
    await expect
      .poll(() => front.server.output())
      .toContain('the account has no authorization for \\"f.example.com\\"');
    expect(readFileSync(join(home, 'hook.log'), 'utf8')).not.toContain('f.example.com');
  });

  test.each([
    ['a common name that is not among the DNS names', 'other', ['d.example.com'], 400],
    ['no DNS name', 'd.example.com', [], 400],
    ['a name that the profile does not allow', 'd.example.org', ['d.example.org'], 400],
  ])('%s is rejected before anything is sent', async (_what, cn, names, status) => {
    const before = readFileSync(join(home, 'hook.log'), 'utf8');
    expect((await enrollAt(front, key, cn, { names })).status).toBe(status);
    expect(readFileSync(join(home, 'hook.log'), 'utf8')).toBe(before);
  });

  test('a name that the upstream CA rejects is 403 with its text', async () => {
    const answer = await enrollAt(front, key, 'blocked.example.com', { names: ['blocked.example.com'] });
    expect(answer.status).toBe(403);
    expect(answer.text).toMatch(/blocked/);
  });
});
