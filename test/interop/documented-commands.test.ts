/**
 * Each block of commands in the documents is run as it is printed, here or in another test, or is listed with the reason why no test runs
 * it. Where a page shows what a command prints, JSON must have the same members.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../support/command.ts';
import { documentedBlocks, type DocumentedBlock, type DocumentedCommand } from '../support/documented-blocks.ts';
import { openssl, temporaryFolder } from '../support/openssl.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { ESTCLIENT, requires, type Requirement } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import type { ListenerName } from '../support/server-process.ts';

const BLOCKS = documentedBlocks();

/** The commands of the blocks under a heading. */
const documented = (page: string, heading: string): string[] =>
  BLOCKS.filter((block) => block.page === page && block.heading === heading).map(({ commands }) =>
    commands.map(({ text }) => text).join(''),
  );

/** libest's client first, as its name is not its own. */
const PATH = [dirname(ESTCLIENT), process.env['PATH'] ?? ''].join(delimiter);

const shell = (cwd: string, lines: string, env: Readonly<Record<string, string>>): Promise<Buffer> =>
  run('bash', ['-euo', 'pipefail', '-c', lines], { cwd, env: { PATH, no_proxy: '*', ...env }, timeout: 280_000 });

interface Client {
  readonly heading: string;
  readonly needs: readonly Requirement[];
  /** The certificates that each block leaves. */
  readonly results: readonly (readonly string[])[];
}

const CLIENTS: readonly Client[] = [
  { heading: 'curl and openssl', needs: [], results: [['device', 'renewed']] },
  { heading: 'strongSwan `pki`', needs: ['pki'], results: [['device', 'next']] },
  { heading: 'libest `estclient`', needs: ['estclient'], results: [['device', 'renewed'], ['device']] },
  { heading: 'Bouncy Castle', needs: ['bouncycastle', 'bouncycastleTls'], results: [['device', 'next']] },
];

describe.skipIf(!requires('curl', 'openssl'))('docs/guides/clients.md', () => {
  let server: Quickstart;
  beforeAll(async () => {
    // As docs/guides/clients.md says of libest.
    server = await startQuickstart({ sections: '[serverkeygen]\nencryption = "optional"' });
  });
  afterAll(() => server.stop());

  describe.each(CLIENTS)('$heading', ({ heading, needs, results }) => {
    const blocks = documented('docs/guides/clients.md', heading);
    test('has as many blocks as are run here', () => {
      expect(blocks).toHaveLength(results.length);
    });
    test.skipIf(!requires(...needs)).each(results.map((names, index) => [index + 1, names] as const))(
      'block %i leaves %s',
      async (number, names) => {
        const folder = server.file(`client/${heading.replace(/\W+/g, '-')}-${number}`);
        mkdirSync(folder, { recursive: true });
        copyFileSync(server.file('ca/root.pem'), join(folder, 'ROOT.pem'));
        const [HOST = '', PORT = ''] = server.host.split(':');
        const PASSWORD = await server.createOtp('device-1');
        await shell(folder, blocks[number - 1] ?? '', { HOST, PORT, PASSWORD, ESTUARY: ROOT });
        for (const name of names) {
          const own = join(folder, `${name}.key`);
          const key = existsSync(own) ? own : join(folder, 'device.key');
          await server.check(join(folder, `${name}.pem`), { subject: 'CN=device-1', key });
        }
      },
    );
  });
});

describe.skipIf(!requires('openssl'))('docs/guides/rollover.md', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  test("the new root's certificate of the issuing CA has its key, and is good under the new root", async () => {
    const file = (name: string): string => folder.file(name);
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const root = ['req', '-x509', ...ec, '-subj', '/O=Example/CN=Example Root CA', '-days', '30'];
    openssl([...root, '-keyout', file('root.key'), '-out', file('root.pem')]);
    const own = ['-CA', file('root.pem'), '-CAkey', file('root.key')];
    const issuing = ['req', '-x509', ...ec, '-subj', '/O=Example/CN=Issuing', '-days', '20', ...own];
    openssl([...issuing, '-keyout', file('issuing.key'), '-out', file('issuing.pem')]);
    const [lines = '', ...more] = documented('docs/guides/rollover.md', 'A new root');
    expect(more).toEqual([]);
    await shell(folder.path, lines, {});
    await run('openssl', ['verify', '-x509_strict', '-CAfile', file('new-root.pem'), file('new-issuing.pem')]);
    const fields = (name: string): string =>
      openssl(['x509', '-in', file(name), '-noout', '-subject', '-pubkey']).toString();
    expect(fields('new-issuing.pem')).toBe(fields('issuing.pem'));
  });
});

/** Blocks that this file does not run: the start of the first command, and why. */
const ELSEWHERE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'CONTRIBUTING.md': { 'npm ci': 'scripts/test does this before the tests' },
  'README.md': {
    './scripts/quickstart': 'test/quickstart.slow.test.ts, and the whole run of the tests',
  },
  'docs/get-started/install.md': {
    'apt install': 'installs into the machine: scripts/operators-walk',
    'buildah bud': 'needs a container engine: scripts/check-image',
    'estuary admin cert list --all':
      'needs a server of version 0.1; test/main/commands/admin has the commands of today',
    'systemctl stop': 'as docs/guides/backup.md',
  },
  'docs/guides/audit.md': {
    'estuary audit verify --config est.toml --checkpoint': 'test/main/commands/audit.test.ts',
    'estuary audit export': 'sends to another host; test/main/commands/audit.test.ts',
  },
  'docs/guides/client.md': {
    estuary: 'test/interop/estuary-client.test.ts',
    cp: 'installs a unit of systemd; scripts/check-deb',
  },
  'docs/guides/device-cas.md': { 'openssl verify': 'test/conformance/device-cas.test.ts' },
  'docs/guides/client-hooks.md': { '#!/bin/sh': 'test/client/hook-recipes.slow.test.ts' },
  'docs/guides/clients.md': {
    'HOST=': 'sets variables for the blocks below, with a password that only the test knows',
    'openssl ecparam': "GlobalSign's client is in no package of Debian",
  },
  'docs/guides/dogtag.md': { 'pki -U': 'test/dogtag/kra.test.ts' },
  'docs/guides/gssapi.md': {
    kadmin: 'changes the realm and files of the machine; test/support/kdc.ts does the same in a folder',
    kinit: 'test/interop/curl-negotiate.test.ts',
    setspn: 'needs a Windows domain controller',
    'samba-tool': 'test/auth/ldap/samba.slow.test.ts',
  },
  'docs/guides/hsm.md': {
    softhsm2: 'scripts/operators-walk; test/main/commands/ca-init.slow.test.ts, with a token in a folder',
    'node dist/server.js ca init': 'test/main/commands/ca-init.slow.test.ts',
    printf: 'test/conformance/hsm.slow.test.ts',
  },
  'docs/guides/investigate.md': { journalctl: 'needs a server under systemd' },
  'docs/guides/nodes-on-one-host.md': {
    for: 'needs PostgreSQL and the package: scripts/operators-walk',
    sysctl: 'changes the kernel of the machine',
  },
  'docs/guides/post-quantum.md': {
    'openssl s_client': 'test/interop/ml-dsa.test.ts',
    'scripts/quickstart': 'test/interop/ml-dsa.test.ts',
  },
  'docs/guides/serverkeygen.md': {
    openssl: 'test/conformance/serverkeygen-opening.test.ts',
    node: 'test/conformance/serverkeygen-opening.test.ts',
  },
  'docs/internals/performance.md': {
    scripts: 'measures for minutes; test/scripts.slow.test.ts checks the options',
  },
  'docs/internals/testing.md': { scripts: 'takes hours; test/scripts.slow.test.ts checks the options' },
  'docs/reference/command-line.md': {
    'estuary admin request list': 'the loop is only hinted at; test/main/commands/admin',
    'estuary admin cert revoke-all': 'asks on a terminal; test/main/commands/admin',
    source: 'test/main/commands/completion.test.ts',
  },
  'examples/factory/README.md': { curl: 'test/examples/factory.slow.test.ts' },
  'examples/inventory/README.md': { '(umask': 'test/examples/inventory.slow.test.ts' },
  'examples/kerberos/README.md': { '# openssl': 'test/examples/kerberos.slow.test.ts' },
  'examples/mail-merge/README.md': { umask: 'test/examples/mail-merge.slow.test.ts' },
};

const reasonOf = ({ page, commands: [first] }: DocumentedBlock): string | undefined =>
  Object.entries(ELSEWHERE[page] ?? {}).find(([start]) => first?.text.trimStart().startsWith(start))?.[1];

const RUN_ABOVE = new Set([
  ...CLIENTS.map(({ heading }) => `docs/guides/clients.md ${heading}`),
  'docs/guides/rollover.md A new root',
]);
const HERE = BLOCKS.filter(
  (block) => reasonOf(block) === undefined && !RUN_ABOVE.has(`${block.page} ${block.heading}`),
);

test('each reason is about a block, and names files that exist', () => {
  const reasons = Object.entries(ELSEWHERE).flatMap(([page, starts]) =>
    Object.entries(starts).map(([start, reason]) => [page, start, reason] as const),
  );
  const used = (page: string, start: string): boolean =>
    BLOCKS.some((block) => block.page === page && block.commands[0]?.text.trimStart().startsWith(start) === true);
  expect(reasons.filter(([page, start]) => !used(page, start))).toEqual([]);
  const files = reasons.flatMap(([, , reason]) => reason.match(/\b(?:test|scripts)\/[\w./-]+[\w]/g) ?? []);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

/** The page whose last command stops the server comes last. */
const LAST = 'docs/guides/backup.md';
const PAGES = [...new Set(HERE.map(({ page }) => page))].sort((a, b) => Number(a === LAST) - Number(b === LAST));

/** What JSON has, without its values. */
function membersOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(membersOf);
  if (typeof value !== 'object' || value === null) return null;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, membersOf(member)]));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Identifiers that the page shows, with those of this run. */
function* identifiers(shown: unknown, actual: unknown): Generator<[string, string]> {
  if (typeof shown === 'string' && typeof actual === 'string' && shown.length > 15) yield [shown, actual];
  if (typeof shown !== 'object' || shown === null || typeof actual !== 'object' || actual === null) return;
  for (const [name, member] of Object.entries(shown)) yield* identifiers(member, Reflect.get(actual, name));
}

/** Lines of text without what differs in each run. */
const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) =>
      line
        .replaceAll(/\b[0-9a-fA-F]{8,}\b|\d[\d.:TZ-]*/g, '#')
        .replaceAll(/\s*=\s*/g, '=')
        .trim(),
    )
    .filter((line) => line !== '' && !line.includes('…'));

describe.skipIf(!requires('curl', 'openssl', 'certutil'))('the commands in', () => {
  const replaced = new Map<string, string>();
  let server: Quickstart;
  let preamble = '';

  const replace = (text: string): string =>
    [...replaced].reduce((changed, [shown, actual]) => changed.replaceAll(shown, actual), text);
  const bash = async (lines: string): Promise<string> =>
    (await shell(server.file('.'), preamble + replace(lines), {})).toString();
  const admin = async (args: string): Promise<Readonly<Record<string, string>>> =>
    JSON.parse(await bash(`admin ${args}`)) as Readonly<Record<string, string>>;
  /** Enrolls with a new one-time password; leaves `NAME.key`, `NAME.csr` and `NAME.pem`. */
  async function enroll(name: string, label = 'devices'): Promise<void> {
    const password = await server.createOtp(name);
    await bash(`
      openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ${name}.key -out ${name}.csr -subj /CN=${name} -addext subjectAltName=DNS:${name}.example
      curl -sSf --cacert root.pem -u ${name}:${password} -H 'Content-Type: application/pkcs10' --data-binary @${name}.csr \
        ${server.est}/${label}/simpleenroll | base64 -d > ${name}.p7 && [ ! -s ${name}.p7 ] || openssl pkcs7 -inform DER -in ${name}.p7 -print_certs -out ${name}.pem`);
  }

  async function queueRequest(name: string): Promise<void> {
    await enroll(name, 'lab');
    const { items } = (await admin("'https://localhost:9444/admin/requests?status=pending&order=desc'")) as unknown as {
      items: readonly { readonly id: string }[];
    };
    const [{ id } = { id: '' }] = items;
    for (const variable of ['$ID', '$id']) replaced.set(variable, id);
  }

  /** What a page takes for granted. */
  const PREPARE: Readonly<Record<string, () => void | Promise<void>>> = {
    'docs/get-started/two-tier-pki.md': async () => {
      // The CA gets its key from the first command.
      await bash('mkdir new && sed "s|ca/issuing|new/issuing|" est.toml > new.toml');
      replaced.set('--config est.toml --ca devices', '--config new.toml --ca devices');
    },
    'docs/guides/approval.md': () => queueRequest('device-5'),
    'docs/guides/client-operations.md': async () => {
      await bash(
        `rm -f device.pem renewed.pem; cp root.pem ca.pem
         openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout device.key -out device.csr -subj /CN=device-7`,
      );
      writeFileSync(server.file('otp'), await server.createOtp('device-7'));
      const settings = `[server]\nurl = "https://est.example.com:9443"\ntrust_anchors = "ca.pem"`;
      writeFileSync(
        server.file('client.toml'),
        replace(`${settings}\n[[certificate]]\nfolder = "web"\nsubject = "CN=web"\n`),
      );
      replaced.set('/etc/estuary-client/client.toml', server.file('client.toml'));
    },
    'docs/guides/device-cas.md': async () => {
      await bash('rm -rf pki');
    },
    'docs/guides/devices.md': async () => {
      const spki = await bash(
        'openssl x509 -in maker.pem -noout -pubkey | openssl pkey -pubin -outform DER | openssl sha256 -r',
      );
      replaced.set('3f8b…e1', spki.slice(0, 64));
      const [block] = BLOCKS.filter(({ page, commands }) => page === 'docs/guides/devices.md' && commands.length > 1);
      writeFileSync(server.file('fleet.csv'), replace(`${block?.commands[0]?.output ?? ''}\n`));
    },
    'docs/guides/dogtag.md': async () => {
      await bash(
        'cp admin/client.pem agent.pem; cp admin/client.key agent.key; cp root.pem ca.pem; echo password > password',
      );
    },
    'docs/guides/renewal.md': async () => {
      await enroll('device-6');
      const id = await bash(`estuary client status --help >/dev/null; node -e '
        const { X509Certificate } = require("node:crypto"); const { execFileSync } = require("node:child_process");
        const text = execFileSync("openssl", ["x509", "-in", "device-6.pem", "-noout", "-ext", "authorityKeyIdentifier"]).toString();
        const key = Buffer.from(text.split("\\n")[1].replace(/[^0-9A-F]/g, ""), "hex");
        const serial = Buffer.from(new X509Certificate(require("node:fs").readFileSync("device-6.pem")).serialNumber, "hex");
        const integer = serial[0] > 127 ? Buffer.concat([Buffer.from([0]), serial]) : serial;
        process.stdout.write(key.toString("base64url") + "." + integer.toString("base64url"))'`);
      replaced.set('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE', id);
      const { id: campaign = '' } = await admin(
        `https://localhost:9444/admin/renewals -H 'Content-Type: application/json' -d '{"filter": {"ca": "devices"}, "by": "${new Date(Date.now() + 86_400_000).toISOString()}"}'`,
      );
      replaced.set('0b54c8a2-…', campaign);
    },
    'docs/guides/revocation.md': async () => {
      await enroll('device');
      await bash('cat issuer.pem root.pem > chain.pem; cp ca/issuing.key issuing.key; cp issuer.pem issuing.pem');
    },
    'docs/reference/admin-api.md': async () => {
      await enroll('device-3');
      await queueRequest('device-4');
      await bash('cp device-4.csr device-1.csr');
      replaced.set('"count": 312', '"count": 0');
      await bash(
        `for i in 1 2 3 4 5 6 7; do curl -sS -o /dev/null --cacert root.pem -u x:wrong -H 'Content-Type: application/pkcs10' --data-binary @device-3.csr ${server.est}/simpleenroll; done`,
      );
    },
    'docs/reference/command-line.md': () => {
      writeFileSync(server.file('fleet.csv'), 'client_id,max_uses,expires_at,ca\na,,,\nb,,,lab\n');
    },
  };

  beforeAll(async () => {
    server = await startQuickstart({
      configure: (toml, dir) => {
        const anchors = join(dir, 'tls/client-anchors.pem');
        openssl([
          ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null'],
          ...['-subj', '/O=Maker/CN=Maker Root', '-out', join(dir, 'maker.pem')],
        ]);
        writeFileSync(anchors, `${readFileSync(anchors, 'utf8')}${readFileSync(join(dir, 'maker.pem'), 'utf8')}`);
        const publication = ['enabled = true', 'host = "127.0.0.1"', 'port = 0', 'base_url = "http://pki.example.com"'];
        return `${toml.replace('label = "lab"', 'label = "lab"\napproval = "manual"')}\n[publication]\n${publication.join('\n')}\n`;
      },
    });
    const links = { quickstart: '.', 'root.pem': 'ca/root.pem', 'issuer.pem': 'ca/issuing.pem' };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, server.file(name));
    for (const name of ['dist', 'scripts']) symlinkSync(join(ROOT, name), server.file(name));
    const { pid } = server.server;
    const port = (listener: ListenerName): string => `localhost:${server.server.port(listener)}`;
    preamble = `
      export PATH=${dirname(process.execPath)}:$PATH ESTUARY_ADMIN_URL=https://${port('admin')} ESTUARY_ADMIN_CA=ca/root.pem ESTUARY_ADMIN_TOKEN_FILE=admin/token
      estuary() { node dist/server.js "$@"; }
      admin() { curl -sS --cacert ca/root.pem --cert admin/client.pem --key admin/client.key "$@"; }
      systemctl() { [ "$1" = start ] || { kill ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 0.1; done; }; }
      `;
    for (const [shown, actual] of [
      ['localhost:9444', port('admin')],
      ['localhost:9443', port('est')],
      ['est.example.com:9443', port('est')],
      ['http://pki.example.com', `http://${port('publication')}`],
      ['/backup/', server.file('backup-')],
    ] as const)
      replaced.set(shown, actual);
  });
  afterAll(() => server.stop());

  async function runs({ text, output }: DocumentedCommand): Promise<void> {
    const shown = jsonOf(output);
    const actual = await bash(shown === undefined ? `{ ${text}\n} 2>&1` : text);
    if (shown === undefined) {
      expect(linesOf(actual)).toEqual(expect.arrayContaining(linesOf(output)));
      return;
    }
    const json = jsonOf(actual);
    expect(membersOf(json), actual).toEqual(membersOf(shown));
    for (const [from, to] of identifiers(shown, json)) replaced.set(from, to);
  }

  test.each(PAGES)('%s run as printed', async (page) => {
    await PREPARE[page]?.();
    for (const { commands } of HERE.filter((block) => block.page === page))
      for (const command of commands) await runs(command);
  });
});
