/** `estuary doctor` while the server runs. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'smol-toml';
import { openWritable } from '../../../src/store/sqlite/database.ts';
import { runAny } from '../../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../../support/csr.ts';
import { caSection, Estuary, section } from '../../support/estuary.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { freePort } from '../../support/ports.ts';
import { requires } from '../../support/requires.ts';
import { NODE, SERVER } from '../../support/server-process.ts';

/** The command needs a port that the configuration names. */
async function withAdminPort(): Promise<Estuary> {
  const port = await freePort();
  return Estuary.start({ configure: (tables) => void Object.assign(section(tables, 'admin'), { port }) });
}

let estuary: Estuary;
beforeAll(async () => {
  estuary = await withAdminPort();
});
afterAll(() => estuary.stop());

const doctor = (...more: string[]) =>
  runAny(NODE, [SERVER, 'doctor', '--config', join(estuary.dir, 'est.toml'), ...more]);

test('finds nothing wrong with a server in order, and what is wrong with its database', async () => {
  const good = await doctor('--json');
  const server = { check: 'server', status: 'ok', detail: 'ready' };
  expect(JSON.parse(good.stdout.toString('utf8'))).toMatchObject({
    ok: true,
    findings: expect.arrayContaining([server]) as unknown,
  });
  expect(good.code).toBe(0);
  chmodSync(join(estuary.dir, 'data/est.db'), 0o644);
  const bad = await doctor();
  expect(bad.output).toMatch(/^failed +permissions: .*est\.db/m);
  expect(bad.code).toBe(1);
});

test.each([
  ['is no database', 'x'.repeat(8192), /^failed +store: .*est\.db: .*Restore a backup with "estuary restore"/m],
  ['is gone', undefined, /^failed +audit: .*audit\.log has records of a database that does not exist/m],
  ['is older than the audit file', '', /^failed +store: the database is older than the audit file/m],
])('a database that %s is a sentence, and what to do', async (_, content, expected) => {
  const copy = temporaryFolder();
  onTestFinished(() => copy.remove());
  for (let n = 0; n < 3; n++) await estuary.otp();
  cpSync(estuary.dir, copy.path, { recursive: true });
  for (const suffix of ['', '-wal', '-shm']) rmSync(copy.file(`data/est.db${suffix}`), { force: true });
  if (content !== undefined) writeFileSync(copy.file('data/est.db'), content, { mode: 0o600 });
  if (content === '') openWritable(copy.file('data/est.db')).close();
  const { code, output } = await runAny(NODE, [SERVER, 'doctor', '--config', copy.file('est.toml')]);
  expect(output).toMatch(expected);
  expect(code).toBe(1);
});

test('warns of what only the own group can use, as with fsGroup', async () => {
  const data = join(estuary.dir, 'data');
  chmodSync(join(data, 'est.db'), 0o660);
  chmodSync(data, 0o2770);
  onTestFinished(() => {
    chmodSync(join(data, 'est.db'), 0o600);
    chmodSync(data, 0o700);
  });
  const { code, output } = await doctor();
  expect(output).toMatch(/^warning permissions: .*data is accessible to the group of the service/m);
  expect(code).toBe(0);
});

test('asks the running server for the state of its files', async () => {
  const own = await withAdminPort();
  onTestFinished(() => own.stop());
  renameSync(join(own.dir, 'data/est.db'), join(own.dir, 'data/moved.db'));
  const { code, output } = await runAny(NODE, [SERVER, 'doctor', '--config', join(own.dir, 'est.toml')]);
  expect(output).toMatch(/^failed {2}server: not ready: store/m);
  expect(code).toBe(1);
  await own.stop();
  const later = await runAny(NODE, [SERVER, 'doctor', '--config', join(own.dir, 'est.toml')]);
  expect(later.output).not.toMatch(/^\w+ +server: /m);
});

test.each([
  ['audit.file', '[audit]\nfile = "/dev/null"', 'is not a regular file'],
  ['store.path', '[store]\npath = "data"', 'is a folder'],
])('--check refuses another thing in the place of %s', async (key, text, problem) => {
  const config = join(estuary.dir, 'irregular.toml');
  const tables = parse(readFileSync(join(estuary.dir, 'est.toml'), 'utf8'));
  writeFileSync(config, stringify({ ...tables, ...parse(text) }));
  const { code, output } = await runAny(NODE, [SERVER, '--check', '--config', config]);
  expect(output).toContain(`irregular.toml: ${key}: `);
  expect(output).toContain(problem);
  expect(code).toBe(2);
});

test('--check, estuary check and a start refuse a damaged database with the same words', async () => {
  const config = join(estuary.dir, 'damaged.toml');
  const database = join(estuary.dir, 'damaged.db');
  writeFileSync(database, 'no database\n'.repeat(500), { mode: 0o600 });
  const tables = parse(readFileSync(join(estuary.dir, 'est.toml'), 'utf8'));
  writeFileSync(
    config,
    stringify({ ...tables, ...parse('[store]\npath = "damaged.db"\n[audit]\nfile = "damaged.log"') }),
  );
  const reason = `the store failed: ${database}: SQLITE_NOTADB: file is not a database. Restore a backup`;
  for (const [args, code, output] of [
    [['--check'], 2, `damaged.toml: store.path: ${reason}`],
    [['check', '--offline'], 2, `damaged.toml: store.path: ${reason}`],
    [[], 1, `estuary: could not start: ${reason}`],
  ] as const) {
    const ended = await runAny(NODE, [SERVER, ...args, '--config', config]);
    expect(ended.output).toContain(output);
    expect(ended.code).toBe(code);
  }
});

test('a database that nobody made is not accepted as an older one, and nothing is created', async () => {
  const config = join(estuary.dir, 'nowhere.toml');
  const tables = parse(readFileSync(join(estuary.dir, 'est.toml'), 'utf8'));
  writeFileSync(config, stringify({ ...tables, ...parse('[store]\npath = "nowhere/est.db"') }));
  const { code, output } = await runAny(NODE, [SERVER, 'store', 'accept-older-database', '--config', config]);
  expect(output).toContain('nowhere/est.db does not exist. Correct store.path, or restore a backup');
  expect(code).toBe(1);
  expect(existsSync(join(estuary.dir, 'nowhere'))).toBe(false);
});

test('a start, a reload and doctor warn of the certificates of a label that was renamed', async () => {
  const wire = onTheWire(simpleCsr(makeKey(), 'device-1'));
  const { token } = await estuary.otp();
  expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
  const rename = (label: string): void =>
    estuary.reconfigure((config) => {
      caSection(config)['label'] = label;
    });
  rename('machines');
  const message = 'no CA has the label "devices" of 1 certificates that have not expired: no CRL';
  const warned = { key: 'ca', message: expect.stringContaining(message) as unknown };
  const reloaded = await estuary.admin('POST', '/admin/reload?dry_run=true');
  expect(reloaded.json['warnings']).toContainEqual(warned);
  expect((await doctor()).output).toContain(`warning ca: ${message}`);
  await estuary.server.stop();
  await estuary.restart();
  expect(await estuary.outputSoFar()).toContain(JSON.stringify(message).slice(1, -1));
  await estuary.server.stop();
  rename('devices');
  await estuary.restart();
  expect((await doctor()).output).not.toContain('no CA has the label');
});

test('contacts the directory, the token issuer and the OpenID provider', async () => {
  const config = join(estuary.dir, 'providers.toml');
  const dead = `localhost:${await freePort()}`;
  const tables = parse(readFileSync(join(estuary.dir, 'est.toml'), 'utf8'));
  Object.assign(section(tables, 'otp'), { enabled: false });
  Object.assign(section(tables, 'auth', 'ldap'), { url: `ldaps://${dead}`, user_dn: 'uid={username},dc=example' });
  const issuer = { issuer: `https://${dead}/issuer` };
  Object.assign(section(tables, 'auth', 'jwt'), {
    ...issuer,
    audience: 'est',
    jwks_url: `https://${dead}/jwks`,
    algorithms: ['ES256'],
  });
  writeFileSync(join(estuary.dir, 'client-secret'), 'secret', { mode: 0o600 });
  Object.assign(section(tables, 'admin', 'oidc'), {
    ...issuer,
    client_id: 'estuary',
    client_secret_file: 'client-secret',
    redirect_url: 'https://localhost/auth/oidc/callback',
    roles_claim: 'groups',
    roles: { team: { roles: ['ra'] } },
  });
  writeFileSync(config, stringify(tables));
  const { code, output } = await runAny(NODE, [SERVER, 'doctor', '--config', config]);
  for (const check of ['directory', 'token issuer', 'OpenID provider'])
    expect(output).toMatch(new RegExp(`^failed +${check}: .*${dead}.*ECONNREFUSED`, 'm'));
  expect(code).toBe(1);
});

describe.skipIf(!requires('root'))('on a small disk', () => {
  test('names the full folder and its free space', async () => {
    const folder = join(estuary.dir, 'small');
    mkdirSync(folder);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'none', folder]);
    onTestFinished(() => void execFileSync('umount', [folder]));
    const config = join(estuary.dir, 'small.toml');
    const text = readFileSync(join(estuary.dir, 'est.toml'), 'utf8');
    writeFileSync(config, text.replace('data/audit.log', 'small/audit.log'));
    writeFileSync(join(folder, 'filler'), Buffer.alloc(15 << 20));
    const { code, output } = await runAny(NODE, [SERVER, 'doctor', '--config', config]);
    expect(output).toContain(`failed  disk: ${folder} (audit log): 1 MiB free of 16 MiB: the disk is full`);
    expect(code).toBe(1);
  });
});
