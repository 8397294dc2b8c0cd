/** `scripts/quickstart` as somebody on a fresh machine uses it, against what its documentation promises. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny, runText } from './support/command.ts';
import { opensslText, temporaryFolder } from './support/openssl.ts';
import { freePorts } from './support/ports.ts';
import { QUICKSTART } from './support/quickstart.ts';
import { requires } from './support/requires.ts';
import { NODE, SERVER, type ServerProcess, untilListening } from './support/server-process.ts';

const NAMES = [
  'est.toml',
  'ca/root.pem',
  'ca/issuing.pem',
  'ca/issuing.key',
  'tls/server.pem',
  'tls/server.key',
  'tls/client-anchors.pem',
  'admin/token',
  'admin/ca.pem',
  'admin/client.pem',
  'admin/client.key',
];

/** Path → content of every file below a folder. */
function snapshot(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  return new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
}

describe.skipIf(!requires('openssl'))('scripts/quickstart --no-start', () => {
  const folder = temporaryFolder();
  const dir = join(folder.path, 'with a blank');
  const quickstart = (...args: string[]): Promise<string> => runText(QUICKSTART, ['--no-start', '--dir', dir, ...args]);

  beforeAll(() => quickstart());
  afterAll(() => folder.remove());

  test.each(NAMES)('leaves %s behind', (name) => {
    expect(statSync(join(dir, name)).size).toBeGreaterThan(0);
  });

  test('private keys and the token are for their owner alone', () => {
    const secrets = [...snapshot(dir).keys()].filter((path) => path.endsWith('.key') || path.endsWith('/token'));
    expect(secrets.length).toBeGreaterThanOrEqual(7);
    expect(secrets.filter((path) => (statSync(path).mode & 0o777) !== 0o600)).toEqual([]);
  });

  test('the server accepts the configuration', async () => {
    const file = join(dir, 'est.toml');
    const { code, output } = await runAny(NODE, [SERVER, '--check', '--config', file]);
    // What a token may ask for is `bind_client_id`'s to say, and here it says nothing.
    expect({ code, lines: output.trimEnd().split('\n').sort() }).toEqual({
      code: 0,
      lines: [
        `${file}: otp.bind_client_id: warning: is "off": anyone with a token can ask for any name, including those of others ("cn" or "san")`,
        `${file}: the configuration is valid`,
      ],
    });
  });

  test('the server certificate names this machine and is that of an EST server (RFC 7030 §3.6.1)', async () => {
    const path = join(dir, 'tls/server.pem');
    const text = opensslText(['x509', '-in', path, '-noout', '-ext', 'subjectAltName,extendedKeyUsage']);
    const host = (await runText('uname', ['-n'])).trim();
    for (const name of ['DNS:localhost', 'IP Address:127.0.0.1', 'IP Address:0:0:0:0:0:0:0:1', `DNS:${host}`])
      expect(text).toContain(name);
    expect(text).toContain('TLS Web Server Authentication, CMC Registration Authority');
    const chain = ['-CAfile', join(dir, 'ca/root.pem'), '-untrusted', join(dir, 'ca/issuing.pem')];
    expect(opensslText(['verify', '-x509_strict', '-purpose', 'sslserver', ...chain, path])).toContain('OK');
  });

  test('administrators have a CA of their own', async () => {
    const client = join(dir, 'admin/client.pem');
    expect(opensslText(['verify', '-CAfile', join(dir, 'admin/ca.pem'), client])).toContain('OK');
    const foreign = await runAny('openssl', ['verify', '-CAfile', join(dir, 'ca/root.pem'), client]);
    expect(foreign.code).not.toBe(0);
  });

  test('a second run changes nothing', async () => {
    const before = snapshot(dir);
    await quickstart();
    expect(snapshot(dir)).toEqual(before);
  });

  test('a second run with other ports changes the ports alone, and the lines follow', async () => {
    const before = snapshot(dir);
    const lines = await quickstart('--est-port', '19443', '--admin-port=19444');
    const after = snapshot(dir);
    expect([...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path)).toEqual([
      join(dir, 'est.toml'),
    ]);
    const changed = (text = ''): string => text.replace('port = 9443', 'port = 19443').replace('= 9444', '= 19444');
    expect(after.get(join(dir, 'est.toml'))).toBe(changed(before.get(join(dir, 'est.toml'))));
    expect(lines).toContain('https://localhost:19443/.well-known/est/cacerts');
    expect(await quickstart()).toBe(lines);
  });

  test.each([
    [['--est-port', '70000'], '--est-port: "70000" is not a port'],
    [['--admin-port', '-1'], '--admin-port: "-1" is not a port'],
    [['--dir'], '--dir needs a value'],
    [['--fast'], 'unknown option --fast'],
  ])('refuses %j', async (args, message) => {
    const { code, output } = await runAny(QUICKSTART, args);
    expect(code).toBe(1);
    expect(output).toContain(message);
  });

  test('says which file is gone rather than start with half a PKI', async () => {
    rmSync(join(dir, 'ca/issuing.key'));
    const { code, output } = await runAny(QUICKSTART, ['--no-start', '--dir', dir]);
    expect(code).toBe(1);
    expect(output).toContain('ca/issuing.key is not: put it back, or remove');
  });
});

describe.skipIf(!requires('curl', 'openssl'))('scripts/quickstart', () => {
  const folder = temporaryFolder();
  let server: ServerProcess;

  beforeAll(async () => {
    const [est = 0, admin = 0] = await freePorts(2);
    // A relative folder, started from elsewhere than the checkout.
    const args = ['--dir', 'tour', '--est-port', String(est), '--admin-port', String(admin)];
    const child = spawn(QUICKSTART, args, { cwd: folder.path, stdio: ['ignore', 'pipe', 'pipe'] });
    server = await untilListening(child, ['est', 'admin'], 110_000);
  });
  afterAll(async () => {
    await server.stop();
    folder.remove();
  });

  const printed = (): string[] =>
    server
      .output()
      .split('\n')
      .filter((line) => /^(#|curl|openssl)/.test(line));

  /** What a person does with a line: paste it into a shell, in whatever folder that is. */
  const paste = (line: string): Promise<string> => runText('bash', ['-o', 'pipefail', '-c', line], { cwd: '/' });

  test('every line that it prints works when pasted, one after the other', async () => {
    const answers = new Map<string, string>();
    for (const line of printed()) answers.set(line, await paste(line));
    const answerTo = (word: string): string =>
      [...answers]
        .filter(([line]) => !line.startsWith('#') && line.includes(word))
        .map(([, answer]) => answer)
        .join('');
    expect(answerTo('/cacerts').match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(answerTo('/admin/otp')).toContain('"client_id":"device-1"');
    expect(answerTo('/simpleenroll')).toMatch(/subject=CN = device-1\n[^]*BEGIN CERTIFICATE/);
    expect(answerTo('/simplereenroll')).toMatch(/subject=CN = device-1\n[^]*BEGIN CERTIFICATE/);
  });

  test('the whole tour works pasted at once, and again', async () => {
    const answer = await paste(printed().join('\n'));
    expect(answer.match(/subject=CN = device-1\n/g)).toHaveLength(2);
  });

  test('leaves the database where the documentation says', () => {
    expect(statSync(folder.file('tour/data/est.db')).size).toBeGreaterThan(0);
  });

  test('Ctrl-C ends it with exit code 0', async () => {
    server.signal('SIGINT');
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });
});
