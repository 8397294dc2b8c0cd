/** CAs that others run, behind the built server: Caddy's `acme_server`, and cfssl by `driver = "command"`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { type Estuary, section } from '../support/estuary.ts';
import { removeFolder } from '../support/folders.ts';
import { certifyNewKey } from '../support/openssl.ts';
import { accepts, freePorts } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { enrollAt, startFront, x509 } from '../support/upstream.ts';

const key = makeKey();
const name = 'a.example.com';
/** Of the test alone, at the port that `resolv.conf` cannot choose. */
const RESOLVER = '127.53.53.53';
let home: string;
let front: Estuary | undefined;
const programs: ChildProcess[] = [];
const file = (name: string, content?: string, mode = 0o755): string => {
  if (content !== undefined) writeFileSync(join(home, name), content);
  if (content !== undefined) chmodSync(join(home, name), mode);
  return join(home, name);
};
const run = (...[program = '', ...args]: readonly string[]): void =>
  void programs.push(
    spawn(program, args, { stdio: 'ignore', env: { ...process.env, HOME: home, XDG_DATA_HOME: home } }),
  );

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'estuary-upstreams-'));
});
afterAll(() => removeFolder(home));
const stop = async (): Promise<void> => {
  await front?.stop();
  for (const program of programs.splice(0)) program.kill();
};

/** A certificate, and its renewal. */
async function enrolledAndRenewed(issuer: RegExp, names: readonly string[] = [name]): Promise<void> {
  if (front === undefined) throw new Error('not started');
  const at = front;
  const { token: password } = await at.otp({ client_id: name });
  const until = async (send: () => ReturnType<typeof enrollAt>) => {
    let answer = await send();
    const again = async () => {
      if (answer.status !== 200) answer = await send();
      return [answer.status, answer.status === 200 ? '' : answer.text];
    };
    await expect.poll(again, { timeout: 60_000, interval: 300 }).toEqual([200, '']);
    return x509(answer);
  };
  const first = await until(() => enrollAt(at, key, name, { names, password }));
  expect([first.issuer, first.subjectAltName]).toEqual([expect.stringMatching(issuer), `DNS:${name}`]);
  const client = { cert: first.toString(), key: key.pem };
  await until(() => enrollAt(at, key, name, { names, client, path: 'edge/simplereenroll' }));
}

describe.skipIf(!requires('caddy', 'pebble', 'root'))('Caddy', () => {
  afterAll(stop);
  beforeAll(async () => {
    const [acme = 0, management = 0] = await freePorts(2);
    run(
      'pebble-challtestsrv',
      ...['-dns01', `${RESOLVER}:53`, '-management', `127.0.0.1:${management}`],
      ...['-http01', '', '-https01', '', '-tlsalpn01', ''],
    );
    file(
      'Caddyfile',
      `{
  admin off
  auto_https disable_redirects
  skip_install_trust
}
https://localhost:${acme} {
  tls internal
  acme_server
}
`,
    );
    // Debian's Caddy has no setting for the resolver.
    const resolvers = file('resolv.conf', `nameserver ${RESOLVER}\n`);
    run(
      ...['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec caddy run --config "$1"'],
      ...[resolvers, file('Caddyfile')],
    );
    const root = file('caddy/pki/authorities/local/root.crt');
    await vi.waitFor(
      async () =>
        expect([existsSync(root), await accepts(acme), await accepts(management)]).toEqual([true, true, true]),
      { timeout: 60_000, interval: 50 },
    );
    const hook = file(
      'dns-01',
      `#!/bin/sh
case $1 in
  present) exec curl -sSf -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" http://127.0.0.1:${management}/set-txt ;;
  cleanup) exec curl -sSf -d "{\\"host\\":\\"$2.\\"}" http://127.0.0.1:${management}/clear-txt ;;
esac
`,
    );
    front = await startFront({
      anchors: root,
      ca: () => ({
        driver: 'acme',
        profile: { extended_key_usage: ['serverAuth', 'clientAuth'], san: { dns: ['[a-z0-9-]+\\.example\\.com'] } },
        acme: {
          directory: `https://localhost:${acme}/acme/local/directory`,
          tls_trust_anchors: root,
          account_key_file: file('account.key'),
          dns_hook: [hook],
        },
      }),
      configure: (config) => void (section(config, 'est')['retry_after'] = 1),
    });
  });

  test('certifies after dns-01, and renews', () =>
    // As vCenter does, a CSR may repeat a name.
    enrolledAndRenewed(/Caddy Local Authority/, [name, name.toUpperCase(), name]));
});

describe.skipIf(!requires('cfssl'))('cfssl', () => {
  afterAll(stop);
  beforeAll(async () => {
    certifyNewKey(file('ca.key'), file('ca.pem'), [
      ...['-days', '365', '-subj', '/CN=CFSSL CA'],
      ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
    ]);
    const signing = { default: { expiry: '24h', usages: ['digital signature', 'client auth', 'server auth'] } };
    const config = file('cfssl.json', JSON.stringify({ signing }));
    const issue = file(
      'issue',
      `#!/bin/sh
cfssl sign -loglevel 5 -ca ${file('ca.pem')} -ca-key ${file('ca.key')} -config ${config} - | jq -r .cert
`,
    );
    front = await startFront({
      anchors: file('ca.pem'),
      ca: () => ({
        driver: 'command',
        command: { issue: [issue] },
        profile: { extended_key_usage: ['serverAuth', 'clientAuth'] },
      }),
    });
  });

  test('certifies, and renews', () => enrolledAndRenewed(/CFSSL CA/));
});
