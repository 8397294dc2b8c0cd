/** The Debian package, the unit, the list of parts and their licenses, and npm's package. The long forms (an image that is built, a package that is installed) are nightly. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { componentsOf, isAllowed, refused } from '../scripts/lib/licenses.ts';
import { loadConfigOnly } from '../src/config/load.ts';
import { runAny } from './support/command.ts';
import { Estuary } from './support/estuary.ts';
import { temporaryFolder } from './support/openssl.ts';
import { requires } from './support/requires.ts';
import { ROOT } from './support/root.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const run = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
  execFileSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe.skipIf(!requires('dpkg'))('the Debian package', { timeout: 600_000 }, () => {
  const unpacked = folder.file('unpacked');
  const inside = (path: string): string => join(unpacked, path);
  let file: string;
  beforeAll(() => {
    file = run('scripts/build-deb', ['--fast', '--out', folder.file('first')]).trim();
    run('dpkg-deb', ['--extract', file, unpacked]);
  }, 600_000);

  test('brings the program with its Node.js, unit, user, log rotation, manual and list of parts, and nothing of development', () => {
    for (const path of [
      'lib/systemd/system/estuary.service',
      'usr/lib/sysusers.d/estuary.conf',
      'etc/logrotate.d/estuary',
      'usr/share/man/man1/estuary.1.gz',
      'usr/share/man/man1/estuary-admin.1.gz',
      'usr/share/bash-completion/completions/estuary',
      'usr/share/doc/estuary/manual/reference/configuration.md',
      'usr/share/doc/estuary/sbom.cdx.json',
      'usr/lib/estuary/dist/server.js',
      'usr/lib/estuary/dist/console/index.html',
      'usr/lib/estuary/node_modules/fastify/package.json',
    ])
      expect(existsSync(inside(path)), path).toBe(true);
    const packages = readdirSync(inside('usr/lib/estuary/node_modules'));
    expect(packages).not.toContain('vitest');
    expect(packages).not.toContain('typescript');
    expect(lstatSync(inside('usr/bin/estuary')).isSymbolicLink()).toBe(true);
    const page = gunzipSync(readFileSync(inside('usr/share/man/man1/estuary.1.gz'))).toString();
    for (const command of ['serve', 'audit verify', 'backup', 'doctor'])
      expect(page).toContain(`.SS "estuary ${command}`);
  });

  test('what it brings runs', async () => {
    const node = inside('usr/lib/estuary/node_modules/.bin/node');
    const server = inside('usr/lib/estuary/dist/server.js');
    expect(run(node, [server, '--version'])).toMatch(/^estuary \d/);
    const estuary = await Estuary.start();
    onTestFinished(() => estuary.stop());
    expect(await runAny(node, [server, 'check', '--config', join(estuary.dir, 'est.toml')], {})).toMatchObject({
      code: 0,
    });
  });

  // The nightly run builds it again, which takes half a minute.
  const buildAgain = (): void => {
    const again = run('scripts/build-deb', ['--fast', '--out', folder.file('second')]).trim();
    expect(digest(again)).toBe(digest(file));
  };
  if (process.env['PACKAGES_AGAIN'] === '1') test('is the same, byte by byte, when it is built again', buildAgain);

  test.skipIf(!requires('systemdAnalyze'))('has a unit that systemd takes, and that gives little away', () => {
    const unit = readFileSync(inside('lib/systemd/system/estuary.service'), 'utf8');
    const local = folder.file('estuary.service');
    writeFileSync(local, unit.replaceAll('/usr/lib/estuary', inside('usr/lib/estuary')));
    run('systemd-analyze', ['verify', '--man=no', local]);
    // The overall exposure, from 0 to 10; --threshold is in tenths.
    run('systemd-analyze', ['security', '--offline=true', '--threshold=25', local]);
    for (const line of [
      'Type=notify',
      'AmbientCapabilities=CAP_NET_BIND_SERVICE',
      'RestartPreventExitStatus=2',
      'DevicePolicy=closed',
    ])
      expect(unit).toContain(`\n${line}\n`);
    // Each try with a wrong PIN counts.
    expect(unit).not.toContain('\nExecStartPre');
  });
});

describe.skipIf(!requires('dpkg'))("the client's packages", { timeout: 600_000 }, () => {
  const unpacked = folder.file('client-unpacked');
  const inside = (path: string): string => join(unpacked, path);
  let packages: readonly string[] = [];
  beforeAll(() => {
    packages = run('scripts/build-client', ['--fast', '--out', folder.file('client-first')])
      .trim()
      .split('\n');
    run('dpkg-deb', ['--extract', packages[1] ?? '', unpacked]);
  }, 600_000);

  test("npm's has no dependencies and less than 400 KB, and runs", () => {
    const target = folder.file('client-npm');
    mkdirSync(target);
    run('tar', ['--extract', '--file', packages[0] ?? '', '--directory', target]);
    expect(readFileSync(join(target, 'package/package.json'), 'utf8')).not.toContain('"dependencies"');
    expect(Number(run('du', ['-sk', target]).split('\t')[0])).toBeLessThan(400);
    const program = join(target, 'package/dist/estuary-client.cjs');
    expect(run(process.execPath, [program, '--version'])).toMatch(/^estuary-client \d/);
    expect(run(process.execPath, [program, 'client', '--help'])).toContain('estuary-client');
  });

  test("Debian's brings its Node.js and the units, and nothing of the server", () => {
    const node = inside('usr/lib/estuary-client/node');
    const program = inside('usr/lib/estuary-client/estuary-client.cjs');
    expect(run(node, [program, '--version'])).toMatch(/^estuary-client \d/);
    expect(existsSync(inside('usr/lib/estuary'))).toBe(false);
    expect(run('dpkg-deb', ['--info', packages[1] ?? '', 'postinst'])).toContain('enable estuary-client-renew.timer');
  });

  test('Debian\'s replaces the units that the package "estuary" had up to 0.1.0', () => {
    for (const relation of ['Breaks', 'Replaces'])
      expect(run('dpkg-deb', ['--field', packages[1] ?? '', relation]).trim()).toBe('estuary (<< 0.2.0)');
  });

  test('are the same, byte by byte, when they are built again', () => {
    const again = run('scripts/build-client', ['--fast', '--out', folder.file('client-second')])
      .trim()
      .split('\n');
    expect(again.map(digest)).toEqual(packages.map(digest));
  });

  test.skipIf(!requires('systemdAnalyze')).each(['estuary-client.service', 'estuary-client-renew.service'])(
    'have the unit %s, which systemd accepts, and which has few rights',
    (name) => {
      const units = folder.file('client-units');
      mkdirSync(units, { recursive: true });
      const unit = readFileSync(inside(`lib/systemd/system/${name}`), 'utf8');
      expect(unit).toMatch(/^ExecStart=\/usr\/bin\/estuary-client \w+ --config \/etc\/estuary-client\/client\.toml$/m);
      const local = join(units, name);
      writeFileSync(local, unit.replaceAll('/usr/bin/estuary-client', inside('usr/bin/estuary-client')));
      run('systemd-analyze', ['verify', '--man=no', local]);
      run('systemd-analyze', ['security', '--offline=true', '--threshold=30', local]);
      expect(existsSync(inside('lib/systemd/system/estuary-client-renew.timer'))).toBe(true);
    },
  );
});

describe('systemd is told when the server is up', () => {
  test.skipIf(!requires('systemdNotify'))('READY=1 comes once the listeners answer', async () => {
    const socket = folder.file('notify');
    const program =
      'import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\ns.bind(sys.argv[1])\nprint("bound",flush=True)\n' +
      'while True: print(s.recv(4096).decode(),flush=True)';
    const listener = spawn('python3', ['-c', program, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void listener.kill());
    let heard = '';
    listener.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    await once(listener.stdout, 'data');
    const estuary = await Estuary.start({ env: { NOTIFY_SOCKET: socket } });
    onTestFinished(() => estuary.stop());
    await expect.poll(() => heard).toContain('READY=1');
    expect((await estuary.est('cacerts')).status).toBe(200);
  });
});

describe('the list of parts', () => {
  let sbom: unknown;
  beforeAll(() => {
    sbom = JSON.parse(run('scripts/sbom', []));
  });

  test('is CycloneDX, and has what the server imports, with checksums', () => {
    expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'estuary' } } });
    expect(JSON.stringify(sbom)).toContain('"SHA-512"');
    const names = componentsOf(sbom).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['fastify', 'pino', 'better-sqlite3']));
    expect(names).not.toContain('vitest');
  });

  test('every license is on the list', () => {
    expect(refused(componentsOf(sbom))).toEqual([]);
  });

  test.each([
    ['MIT', true],
    ['GPL-3.0-only', false],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT AND GPL-3.0-only', false],
    ['(MIT OR GPL-3.0-only) AND (ISC OR AGPL-3.0-only)', true],
    ['(GPL-2.0-only OR AGPL-3.0-only) AND MIT', false],
    ['SEE LICENSE IN file', false],
  ])('the license %s is allowed: %s', (license, expected) => {
    expect(isAllowed(license)).toBe(expected);
  });

  test('a package that names none is refused', () => {
    expect(refused([{ name: 'x', version: '1', licenses: [] }])).toHaveLength(1);
  });
});

test('the configuration to begin with is one, and lets nobody in', async () => {
  const { config, warnings } = await loadConfigOnly(join(ROOT, 'config/est.toml'), {});
  expect(warnings).toEqual([]);
  expect(config.admin.bearer_token.tokens.map(({ roles }) => roles)).toEqual([[]]);
});

describe('npm pack', () => {
  test('gives the same bytes twice, with the console, the configuration files and the manual, and without sources', () => {
    const files = ['a', 'b'].map((name) => {
      mkdirSync(folder.file(name));
      const packed = run('npm', [
        'pack',
        '--ignore-scripts',
        '--loglevel',
        'error',
        '--pack-destination',
        folder.file(name),
      ]);
      return folder.file(join(name, packed.trim()));
    });
    const [first = '', second = ''] = files;
    expect(digest(second)).toBe(digest(first));
    const names = run('tar', ['--list', '--file', first]).split('\n');
    for (const name of [
      'dist/server.js',
      'dist/console/index.html',
      'config/estuary.service',
      'docs/reference/configuration.md',
    ])
      expect(names).toContain(`package/${name}`);
    expect(names.filter((name) => /^package\/(src|test|node_modules)\//.test(name))).toEqual([]);
  });
});
