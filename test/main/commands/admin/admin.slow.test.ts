/** `estuary admin …` against the built server. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import qrcode from 'qrcode-generator';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { encodePem, parsePem } from '../../../../src/pki/der/pem.ts';
import { parseCertificate } from '../../../../src/pki/x509/certificate.ts';
import { formatName } from '../../../../src/pki/x509/name.ts';
import { spkiHash } from '../../../../src/pki/x509/public-key.ts';
import { makeCa, makeClient } from '../../../support/certificates.ts';
import { run, runAny } from '../../../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../../../support/csr.ts';
import { caSection, certificatePem, Estuary, section } from '../../../support/estuary.ts';
import { NODE, SERVER } from '../../../support/server-process.ts';
import { estuary, type Around, type Done } from '../../../support/local-command.ts';
import { pause } from '../../../support/until.ts';
import { removeFolder } from '../../../support/folders.ts';

let server: Estuary;
let env: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), 'estuary-admin-'));
const key = makeKey();

const file = (name: string, text?: string): string => {
  const path = join(folder, name);
  if (text !== undefined) writeFileSync(path, text, { mode: 0o600 });
  return path;
};

const tokenEntry = (token: string, roles: string[], labels?: string[]) => ({
  token_hash: `sha256:${createHash('sha256').update(token).digest('hex')}`,
  description: `the ${roles.join()}`,
  roles,
  ...(labels === undefined ? {} : { labels }),
});

beforeAll(async () => {
  server = await Estuary.start({
    configure: (config) => {
      caSection(config, 1)['approval'] = 'manual';
      section(config, 'otp')['max_failures'] = 3;
      section(config, 'otp')['lockout_scope'] = 'username';
      const tokens = section(config, 'admin', 'bearer_token')['tokens'];
      if (!Array.isArray(tokens)) throw new TypeError('no tokens');
      tokens.push(
        tokenEntry('token-of-an-operator', ['operator']),
        tokenEntry('token-of-nobody', []),
        tokenEntry('token-of-the-lab', ['ra', 'auditor'], ['lab']),
      );
    },
  });
  env = {
    ESTUARY_ADMIN_URL: `https://localhost:${server.server.port('admin')}`,
    ESTUARY_ADMIN_TOKEN_FILE: join(server.dir, 'admin/token'),
    ESTUARY_ADMIN_CA: join(server.dir, 'ca/root.pem'),
    ESTUARY_EST_URL: `https://localhost:${server.server.port('est')}`,
  };
});
afterAll(async () => {
  await server.stop();
  removeFolder(folder);
});

const admin = (args: readonly string[], around: Around = {}): Promise<Done> =>
  estuary(['admin', ...args], { ...around, env: { ...env, ...around.env } });

/** What a command that has to succeed prints as JSON. */
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await admin([...args, '--json']);
  expect(err).toBe('');
  expect(code, out).toBe(0);
  return JSON.parse(out) as Record<string, unknown>;
}

const text = (record: Record<string, unknown>, name: string): string => {
  const value = record[name];
  if (typeof value !== 'string') throw new TypeError(`no ${name}`);
  return value;
};

async function items(...args: string[]): Promise<Record<string, unknown>[]> {
  return (await json(...args))['items'] as Record<string, unknown>[];
}

let names = 0;

/** A certificate of `devices`, or a request that `lab` has queued. */
async function enrolled(label = 'devices'): Promise<{ cn: string; serial: string }> {
  const cn = `device-${++names}`;
  const { token } = await server.otp({ client_id: cn });
  const body = onTheWire(simpleCsr(key, cn, [`${cn}.example`]));
  const answer = await server.enroll(body, { password: token, path: `${label}/simpleenroll` });
  if (answer.status === 202) return { cn, serial: '' };
  const pem = certificatePem(answer);
  const [certificate] = await items('cert', 'list', '--subject', `CN=${cn}`);
  expect(pem).toContain('BEGIN CERTIFICATE');
  return { cn, serial: text(certificate ?? {}, 'serial') };
}

describe('one-time passwords', () => {
  test('create: the token, and lines for curl that enroll when they are pasted into a shell', async () => {
    const { code, out } = await admin(['otp', 'create', "o'hara, press 7", '--max-uses', '2', '--expires-at', '2d']);
    expect(code).toBe(0);
    expect(out).toMatch(/^token +\S{20}$/m);
    const lines = /with curl and openssl:\n\n(openssl.*\nprintf.*)\n/.exec(out)?.[1] ?? '';
    await run('bash', ['-euo', 'pipefail', '-c', lines], { cwd: folder });
    const subject = await run('openssl', ['x509', '-in', file('o_hara_press_7.pem'), '-noout', '-subject']);
    expect(subject.toString()).toContain("o'hara, press 7");
    const [record] = await items('otp', 'list', '--client-id', "o'hara, press 7");
    expect(record).toMatchObject({ uses: 1, max_uses: 2, status: 'active' });
  });

  test('create for a label, and for programs the record alone', async () => {
    const { out } = await admin(['otp', 'create', 'a:b', '--ca-label', 'lab']);
    expect(out).toContain(`${env['ESTUARY_EST_URL'] ?? ''}/.well-known/est/lab/simpleenroll`);
    expect(out).toContain(`printf 'user = "%s"\\n' device:`);
    const record = await json('otp', 'create', 'for-a-program');
    expect(Object.keys(record)).toEqual(['id', 'token', 'client_id', 'created_at', 'expires_at', 'max_uses']);
    const { out: csv } = await admin(['otp', 'create', 'for-a-table', '--csv']);
    expect(csv).toMatch(/^id,token,client_id,created_at,expires_at,max_uses\r\n[^\n]*,for-a-table,[^\n]*\r\n$/);
    const guessed = await admin(['otp', 'create', 'x'], { env: { ESTUARY_EST_URL: '' } });
    expect(guessed.err).toContain('is a guess (https://localhost:9443/.well-known/est). Set it with --est-url');
  });

  test('list, show, extend, revoke', async () => {
    const { id } = await server.otp({ client_id: 'one-of-a-kind' });
    const { out } = await admin(['otp', 'list', '--client-id', 'one-of-a-kind']);
    expect(out).toMatch(/^ID +CLIENT ID +CA +STATUS +USES +EXPIRES\n\S+ +one-of-a-kind +- +active +0\/1 +\S+Z\n$/);
    const ends = await json('otp', 'extend', id, '--expires-at', '2031-01-31');
    expect(ends['expires_at']).toBe('2031-01-31T00:00:00.000Z');
    expect((await admin(['otp', 'show', id])).out).toMatch(/^expires_at +2031-01-31T00:00:00Z$/m);
    expect((await admin(['otp', 'revoke', id])).code).toBe(2);
    expect(await json('otp', 'show', id)).toMatchObject({ status: 'active' });
    expect(await admin(['otp', 'revoke', id, '--yes'])).toMatchObject({ code: 0, out: `revoked the token ${id}\n` });
    expect(await json('otp', 'show', id)).toMatchObject({ status: 'revoked' });
  });

  test.each([
    ['rows.csv', 3, 'client_id,max_uses\r\n"bulk, 1",2\r\nbulk-2,0\r\nbulk-3,\r\n'],
    [
      'rows.ndjson',
      2,
      '{"client_id":"bulk, 1","max_uses":2}\n{"client_id":"bulk-2","max_uses":0}\n\n{"client_id":"bulk-3"}\n',
    ],
  ])('bulk: %s, answered in its format, each row for itself', async (name, line, rows) => {
    const out = file(`answers-of-${name}`);
    const done = await admin(['otp', 'bulk', file(name, rows), '--out', out]);
    expect(done.code).toBe(1);
    expect(done.err).toContain(
      `row ${line}: client_id "bulk-2": max_uses must be 1 or more (FIELD_INVALID)\n2 of 3 tokens created; the results are in`,
    );
    const lines = readFileSync(out, 'utf8').trim().split('\n');
    expect(lines.length).toBe(name.endsWith('.csv') ? 4 : 3);
    expect(lines.at(-1)).toMatch(/bulk-3/);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect((await admin(['otp', 'bulk', file(name), '--out', out])).code).toBe(2);
  });

  test('bulk: an estimate before the first token; --dry-run names row and client_id of each bad row', async () => {
    const rows = file('estimated.csv', 'client_id,max_uses\r\nestimated,1\r\nbad-1,0\r\nbad-2,x\r\n');
    const dry = await admin(['otp', 'bulk', rows, '--dry-run']);
    expect(dry.code).toBe(1);
    expect(dry.err).toMatch(/^row 3: client_id "bad-1": .*\nrow 4: client_id "bad-2": .*\n1 of 3 rows are valid\n$/m);
    const list = ['otp', 'list', '--client-id', 'estimated', '--csv'];
    expect((await admin(list)).out.trim().split('\n')).toHaveLength(1);
    expect((await admin(['otp', 'bulk', rows])).err).toMatch(/^creating tokens: 3 rows, about \d+ s\n/);
    expect((await admin(list)).out.trim().split('\n')).toHaveLength(2);
  });
});

describe('certificates', () => {
  test('list in each format, by filters, page by page', async () => {
    const made = [await enrolled(), await enrolled(), await enrolled()];
    const wanted = made.map(({ serial }) => serial);
    const { out } = await admin(['cert', 'list', '--san', made[0]?.cn ?? '', '--issued-after', '1h']);
    expect(out).toMatch(/^SERIAL +CA +STATUS +NOT AFTER +SUBJECT +NAMES +REQUESTER\n/);
    expect(out).toContain(wanted[0]);
    const first = await admin(['cert', 'list', '--limit', '1', '--order', 'desc']);
    expect(first.out).toContain(wanted[2]);
    const cursor = /--cursor (\S+) to continue/.exec(first.err)?.[1] ?? '';
    const second = await items('cert', 'list', '--limit', '1', '--order', 'desc', '--cursor', cursor);
    expect(second.map(({ serial }) => serial)).toEqual([wanted[1]]);
    const all = await json('cert', 'list', '--all', '--status', 'valid');
    expect((all['items'] as Record<string, unknown>[]).map(({ serial }) => serial)).toEqual(
      expect.arrayContaining(wanted),
    );
    expect(all['next_cursor']).toBeNull();
    const { out: csv } = await admin(['cert', 'list', '--csv']);
    expect(csv).toMatch(/^serial,ca,subject,sans,/);
    for (const serial of wanted) expect(csv).toContain(`\r\n${serial},devices,`);
    expect((await admin(['cert', 'list', '--subject', 'nobody'])).err).toBe('Nothing found.\n');
    const unknown = 'Nothing found. No CA has the label "devcies". The labels are: devices, lab.\n';
    expect((await admin(['cert', 'list', '--ca-label', 'devcies'])).err).toBe(unknown);
  });

  test('show and its PEM; revoke asks, and does nothing without a yes', async () => {
    const { serial, cn } = await enrolled();
    const shown = await admin(['cert', 'show', serial]);
    expect(shown.out).toMatch(new RegExp(`^subject +CN=${cn}$`, 'm'));
    expect(shown.out.trim().endsWith('-----END CERTIFICATE-----')).toBe(true);
    const { out: pem } = await admin(['cert', 'show', serial, '--pem']);
    expect((await run('openssl', ['x509', '-noout', '-subject'], { input: pem })).toString()).toContain(cn);
    const asked: string[] = [];
    const answering = (answer: string): Around => ({
      terminal: { ask: (question) => (asked.push(question), Promise.resolve(answer)) },
    });
    const args = ['cert', 'revoke', serial, '--reason', 'keyCompromise', '--invalidity-date', '2h'];
    const no = await admin(args, answering(''));
    expect(no).toMatchObject({ code: 1, out: '' });
    expect(no.err).toContain('not confirmed: nothing was changed');
    expect(no.err).toContain(cn);
    expect(await json('cert', 'show', serial)).toMatchObject({ status: 'valid' });
    expect(await admin(args, answering('y'))).toMatchObject({ code: 0 });
    expect(asked).toEqual(['Revoke this certificate? [y/N] ', 'Revoke this certificate? [y/N] ']);
    expect(await json('cert', 'show', serial)).toMatchObject({ status: 'revoked', reason: 'keyCompromise' });
    const again = await admin([...args, '--yes']);
    expect(again).toMatchObject({ code: 1, out: '' });
    expect(again.err).toContain('already revoked (409 ALREADY_REVOKED)');
  });

  test('revoke-all: counts first, and revokes so many', async () => {
    const [one, two] = [await enrolled(), await enrolled()];
    const filter = ['--requester', one.cn];
    expect(await admin(['cert', 'revoke-all', ...filter, '--dry-run'])).toMatchObject({
      code: 0,
      out: 'the filters match 1 certificates\n',
    });
    const wrong = await admin(['cert', 'revoke-all', ...filter, '--count', '2', '--yes']);
    expect(wrong.err).toContain('--count is 2: nothing was revoked');
    expect((await admin(['cert', 'revoke-all', ...filter])).code).toBe(2);
    expect(await admin(['cert', 'revoke-all', ...filter, '--yes'])).toMatchObject({
      code: 0,
      out: 'the filters match 1 certificates\n1 revoked\n',
    });
    expect(await json('cert', 'show', one.serial)).toMatchObject({ status: 'revoked' });
    expect(await json('cert', 'show', two.serial)).toMatchObject({ status: 'valid' });
    const none = await admin(['cert', 'revoke-all', '--status', 'expired', '--yes']);
    expect(none).toMatchObject({ code: 2 });
  });

  test('import refuses what is known, in PEM or DER; the server is verified with a CA in DER, too', async () => {
    const { serial } = await enrolled();
    const pem = (await admin(['cert', 'show', serial, '--pem'])).out;
    const inDer = (name: string, text: string): string => {
      writeFileSync(file(name, ''), parsePem(text)[0]?.der ?? '');
      return join(folder, name);
    };
    const ca = ['--ca', inDer('root.der', server.root)];
    for (const known of [file('known.pem', pem), inDer('known.der', pem)]) {
      const { code, err } = await admin(['cert', 'import', known, '--ca-label', 'devices', ...ca]);
      expect([code, err]).toEqual([1, expect.stringContaining('(409 CERTIFICATE_KNOWN)')]);
    }
  });
});

describe('requests', () => {
  test('list, show, approve, reject', async () => {
    const [one, two] = [await enrolled('lab'), await enrolled('lab')];
    const pending = await items('request', 'list', '--status', 'pending', '--ca-label', 'lab');
    const idOf = (cn: string): string => text(pending.find(({ subject }) => subject === `CN=${cn}`) ?? {}, 'id');
    expect((await admin(['request', 'show', idOf(one.cn)])).out).toContain('-----BEGIN CERTIFICATE REQUEST-----');
    const unsure = await admin(['request', 'approve', idOf(one.cn)]);
    expect(unsure).toMatchObject({ code: 2, out: '' });
    expect(unsure.err).toContain('Pass --yes to confirm');
    expect(await json('request', 'approve', idOf(one.cn), '--yes')).toMatchObject({ status: 'approved' });
    expect((await admin(['request', 'reject', idOf(two.cn), '--yes'])).err).toContain('--reason TEXT is missing');
    expect(await json('request', 'reject', idOf(two.cn), '--reason', 'unknown', '--yes')).toMatchObject({
      status: 'rejected',
      reason: 'unknown',
    });
    const twice = await admin(['request', 'approve', idOf(two.cn), '--yes']);
    expect(twice.err).toContain('(409 REQUEST_DECIDED)');
  });

  test('several are approved by their IDs, and those of a filter are rejected, each for itself', async () => {
    const [one, two, three] = [await enrolled('lab'), await enrolled('lab'), await enrolled('lab')];
    const pending = await items('request', 'list', '--status', 'pending', '--ca-label', 'lab');
    const idOf = (cn: string): string => text(pending.find(({ subject }) => subject === `CN=${cn}`) ?? {}, 'id');
    const ids = [idOf(one.cn), idOf(two.cn)];
    const unsure = await admin(['request', 'approve', ...ids], { terminal: { ask: () => Promise.resolve('n') } });
    expect(unsure.code).toBe(1);
    for (const { cn } of [one, two]) expect(unsure.err).toContain(`CN=${cn}`);
    expect(await admin(['request', 'approve', ...ids, '--yes'])).toEqual({
      code: 0,
      out: '2 of 2 requests: approved\n',
      err: '',
    });
    const again = await admin(['request', 'approve', ...ids, '--yes']);
    expect(again).toMatchObject({ code: 1, out: '0 of 2 requests: approved\n' });
    expect(again.err).toContain(`${idOf(one.cn)}: `);
    const both = await admin(['request', 'reject', ...ids, '--search', three.cn, '--reason', 'x', '--yes']);
    expect(both.err).toContain('IDs and filters exclude each other');
    expect((await admin(['request', 'reject', '--reason', 'x', '--yes'])).err).toContain('ID is missing');
    expect(await json('request', 'reject', '--search', three.cn, '--reason', 'not ours', '--yes')).toMatchObject({
      id: idOf(three.cn),
      status: 'rejected',
    });
    const { out } = await admin(['request', 'list', '--ca-label', 'lab']);
    expect(out.indexOf(three.cn), 'the newest first').toBeLessThan(out.indexOf(one.cn));
  });

  test('--watch prints what is new or has changed, until it is ended', async () => {
    const args = ['admin', 'request', 'list', '--status', 'pending', '--watch', '--interval', '1', '--json'];
    const watching = spawn(NODE, [SERVER, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const found: unknown[] = [];
    createInterface({ input: watching.stdout }).on('line', (line) => found.push(JSON.parse(line)));
    const { cn } = await enrolled('lab');
    await expect.poll(() => found).toContainEqual(expect.objectContaining({ subject: `CN=${cn}` }));
    // Two more looks tell nothing new.
    const { length } = found;
    await pause(2500);
    expect(found).toHaveLength(length);
    watching.kill();
    await once(watching, 'close');
  });

  test('check: the verdict, and exit code 1 where it is a refusal', async () => {
    const csr = `-----BEGIN CERTIFICATE REQUEST-----\n${onTheWire(simpleCsr(key, 'device-x', []))}\n-----END CERTIFICATE REQUEST-----\n`;
    const base = ['check', '--csr', file('x.csr', csr), '--client-id', 'device-x', '--ca-label'];
    expect((await admin([...base, 'devices'])).out).toMatch(/^verdict +issue$/m);
    expect(await json(...base, 'lab')).toMatchObject({ verdict: 'queue' });
    expect((await admin([...base, 'nonsense'])).err).toContain('(400 FIELD_INVALID)');
    expect((await admin([...base.slice(0, 3), '--ca-label', 'lab'])).err).toContain('the requester is missing');
  });
});

describe('the service', () => {
  test('status, session, reload, openapi, metrics', async () => {
    const status = await admin(['status']);
    expect(status).toMatchObject({ code: 0 });
    expect(status.out).toMatch(/^status +ok\nstore +ok\nca:devices +ok\n/m);
    expect(await json('status')).toMatchObject({ alive: true, status: 'ok', parts: { store: 'ok' } });
    const stranger = await admin(['status'], { env: { ESTUARY_ADMIN_TOKEN_FILE: '' } });
    expect(stranger.code).toBe(0);
    expect(stranger.out).not.toContain('caller');
    expect((await admin(['session'])).out).toMatch(/^roles +admin$/m);
    const limited = { env: { ESTUARY_ADMIN_TOKEN_FILE: '', ESTUARY_ADMIN_TOKEN: 'token-of-the-lab' } };
    expect((await admin(['status'], limited)).out).toMatch(/^method +bearer\nroles +ra, auditor for lab$/m);
    expect(await json('reload', '--dry-run')).toMatchObject({ dry_run: true, changed: [] });
    expect((await admin(['openapi'])).out).toContain('"openapi": "3.1');
    expect((await admin(['metrics'])).out).toContain('estuary_requests_total');
  });

  test('ca list and show, in each format', async () => {
    expect((await admin(['ca', 'list'])).out).toMatch(/^LABEL +DEFAULT +DRIVER +HEALTH .*\ndevices +yes +file +ok /);
    expect(await items('ca', 'list')).toHaveLength(2);
    expect((await admin(['ca', 'list', '--csv'])).out).toMatch(
      /^label,default,driver,subject,not_after,days_left,health\r\n/,
    );
    const pem = '-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\\n';
    const { out } = await admin(['ca', 'show', 'lab']);
    expect(out).toMatch(new RegExp(`\nCERTIFICATE\n${pem}\nCHAIN\n${pem}$`));
    expect(out).toMatch(/\nCONTENTS\nSUBJECT +KEY +NOT AFTER +SERIAL *\n/);
    expect((await admin(['ca', 'show', 'no'])).err).toContain('(404 UNKNOWN_LABEL)');
  });

  test('ca rollover: a line for each key, and those in its way in a table of their own', async () => {
    const { cn, serial } = await enrolled();
    const { issuers } = await json('ca', 'rollover', 'devices');
    const [{ key_sha256 }] = issuers as [Record<string, string>];
    const { out } = await admin(['ca', 'rollover', 'devices']);
    const heads = `ISSUERS\nSUBJECT .* CAN BE RETIRED\nCN=[^\n]*  no\n\nIN THE WAY OF ${key_sha256}\nSTATE .* LAST CODE\n`;
    expect(out).toMatch(new RegExp(heads));
    expect(out).toMatch(new RegExp(`\nok .*CN=${cn} `));
    expect(out).not.toContain(serial);
  });

  test('lockout list and clear', async () => {
    for (let n = 0; n < 5; n++)
      await server.enroll(onTheWire(simpleCsr(key, 'guesser')), { password: 'no-such-password' });
    const [lockout] = await items('lockout', 'list');
    const name = text(lockout ?? {}, 'key');
    expect((await admin(['lockout', 'list'])).out).toContain(name);
    expect((await admin(['lockout', 'list', '--csv'])).out).toContain(`\r\n${name},username,`);
    expect(await admin(['lockout', 'clear', name])).toMatchObject({ code: 0 });
    expect(await items('lockout', 'list')).toEqual([]);
    expect((await admin(['lockout', 'clear', name])).err).toContain('(404 LOCKOUT_NOT_FOUND)');
  });

  test('overview, statistics, history, configuration', async () => {
    const { cn, serial } = await enrolled();
    expect((await admin(['overview'])).out).toMatch(/\nHEALTH\n[^]*\nCAS\nLABEL /);
    const today = await admin(['statistics', '--by', 'day', '--since', '1h']);
    expect(today.out).toMatch(/^TIME +ISSUED +RENEWED /);
    expect((await admin(['statistics', '--csv'])).out).toMatch(/^time,issued,renewed,/);
    expect(await items('statistics', '--ca-label', 'devices')).toHaveLength(24);
    expect((await admin(['history', '--requester', cn])).out).toMatch(
      new RegExp(`\nCERTIFICATES\nSERIAL [^]*${serial}`),
    );
    expect((await admin(['history'])).err).toContain('(400 FIELD_INVALID)');
    expect((await admin(['configuration'])).out).toContain('otp.max_failures');
  });

  test('events, as they happen', async () => {
    const watching = spawn(NODE, [SERVER, 'admin', 'events', '--json'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const found: unknown[] = [];
    createInterface({ input: watching.stdout }).on('line', (line) => found.push(JSON.parse(line)));
    // Until it listens there is nothing to be heard.
    await expect
      .poll(async () => (await server.otp({ client_id: 'heard' }), found), { interval: 500 })
      .toContainEqual(expect.objectContaining({ type: 'otp.created', subject: 'heard' }));
    watching.kill();
    await once(watching, 'close');
  });

  test('audit list', async () => {
    expect((await admin(['audit', 'list', '--type', 'service.start', '--since', '1h'])).out).toMatch(
      /^SEQ +TIME +TYPE .*\n1 +\S+Z +service.start +success /,
    );
    expect((await admin(['audit', 'list', '--csv'])).out).toMatch(/^seq,time,node,type,/);
  });
});

describe('who is calling', () => {
  test('a profile, and nothing of it to another server', async () => {
    mkdirSync(join(folder, 'estuary'), { recursive: true });
    writeFileSync(join(folder, 'estuary/token'), server.adminToken, { mode: 0o600 });
    const toml = `default = "lab"\n[profiles.lab]\nurl = "${env['ESTUARY_ADMIN_URL'] ?? ''}"\ntoken_file = "token"\nca = "${server.dir}/ca/root.pem"\n`;
    writeFileSync(join(folder, 'estuary/admin.toml'), toml);
    const bare = { env: { XDG_CONFIG_HOME: folder } };
    expect((await estuary(['admin', 'session'], bare)).out).toMatch(/^roles +admin$/m);
    expect((await estuary(['admin', 'session', '--profile', 'lab'], bare)).code).toBe(0);
    const other = await estuary(['admin', 'session', '--profile', 'lba'], bare);
    expect([other.code, other.err]).toEqual([2, expect.stringContaining('has no profile "lba" (it has lab)')]);
    // The address comes from elsewhere: the token of the profile stays where it is.
    const url = ['--url', env['ESTUARY_ADMIN_URL'] ?? '', '--ca', env['ESTUARY_ADMIN_CA'] ?? ''];
    expect((await estuary(['admin', 'session', ...url], bare)).err).toContain('(401 ');
    expect((await estuary(['admin', 'session', ...url, '--profile', 'lab'], bare)).code).toBe(0);
  });

  test.each([
    ['[profiles.a]\ntokn_file = "x"', 'profiles.a.tokn_file: unknown key (the nearest known one is "token_file")'],
    ['[profiles.a]\ntoken = "x"', 'put the token into a separate file'],
    ['profile = 1', 'profile: unknown key'],
    ['[profiles.a]\nurl = 1', 'profiles.a.url: must be a string'],
    ['a = [', 'admin.toml:1: a: '],
    ['default = "b"', 'has no profile "b" (it has none)'],
  ])('a wrong admin.toml: %j', async (toml, sentence) => {
    const config = mkdtempSync(join(folder, 'config-'));
    mkdirSync(join(config, 'estuary'));
    writeFileSync(join(config, 'estuary/admin.toml'), toml);
    const { code, err } = await estuary(['admin', 'session'], { env: { XDG_CONFIG_HOME: config } });
    expect([code, err]).toEqual([2, expect.stringContaining(sentence)]);
  });

  test('a client certificate', async () => {
    const pair = ['--cert', join(server.dir, 'admin/client.pem'), '--key', join(server.dir, 'admin/client.key')];
    const { out, code } = await admin(['session', ...pair], { env: { ESTUARY_ADMIN_TOKEN_FILE: '' } });
    expect(code).toBe(0);
    expect(out).toMatch(/^method +mtls$/m);
    const half = await admin(['session', ...pair.slice(0, 2)]);
    expect([half.code, half.err]).toEqual([2, expect.stringContaining('--key FILE is missing')]);
  });

  test('a server at an address that its certificate does not name', async () => {
    const forwarder = createServer((socket) => {
      const behind = connect(server.server.port('admin'), '127.0.0.1');
      socket.on('error', () => behind.destroy());
      behind.on('error', () => socket.destroy());
      socket.pipe(behind).pipe(socket);
    });
    onTestFinished(() => void forwarder.close());
    await once(forwarder.listen(0, '127.0.0.2'), 'listening');
    const { port } = forwarder.address() as AddressInfo;
    const ESTUARY_ADMIN_URL = `https://127.0.0.2:${port}`;
    const { code, err } = await admin(['session'], { env: { ESTUARY_ADMIN_URL } });
    expect(code).toBe(1);
    expect(err).toMatch(/its certificate is for localhost, .*127\.0\.0\.1.*\. Use one of these names in --url\.$/m);
  });

  test('a token that others can read is warned of', async () => {
    const open = file('open-token', server.adminToken);
    chmodSync(open, 0o644);
    const { code, err } = await admin(['session', '--token-file', open]);
    expect([code, err]).toEqual([0, expect.stringContaining(`warning: other users can read or change ${open}`)]);
  });

  test.each<[string, string[], Record<string, string>, number, string]>([
    [
      'no token',
      ['otp', 'list'],
      { ESTUARY_ADMIN_TOKEN_FILE: '' },
      1,
      'Pass a token with --token-file, or a certificate with --cert and --key. The call needs the role admin or ra',
    ],
    [
      'a wrong token',
      ['otp', 'list'],
      { ESTUARY_ADMIN_TOKEN_FILE: '', ESTUARY_ADMIN_TOKEN: 'wrong' },
      1,
      'the server does not accept the token in ESTUARY_ADMIN_TOKEN',
    ],
    [
      'another role',
      ['otp', 'list'],
      { ESTUARY_ADMIN_TOKEN_FILE: '', ESTUARY_ADMIN_TOKEN: 'token-of-an-operator' },
      1,
      'this call needs the role admin or ra (403 ROLE_MISSING). You are "the operator", with the role operator',
    ],
    [
      'another label',
      ['otp', 'create', 'device-x'],
      { ESTUARY_ADMIN_TOKEN_FILE: '', ESTUARY_ADMIN_TOKEN: 'token-of-the-lab' },
      1,
      'ca must be a label that you may touch: lab (403 LABEL_NOT_PERMITTED). You are "the ra,auditor", with the role ra, auditor for lab',
    ],
    [
      'no role',
      ['ca', 'list'],
      { ESTUARY_ADMIN_TOKEN_FILE: '', ESTUARY_ADMIN_TOKEN: 'token-of-nobody' },
      1,
      'without a role',
    ],
    ['nobody listens', ['status', '--url', 'https://localhost:1'], {}, 3, 'connection refused'],
    ['no such host', ['status', '--url', 'https://host.invalid'], {}, 3, 'https://host.invalid: '],
    [
      'whom nobody trusts',
      ['status'],
      { ESTUARY_ADMIN_CA: '' },
      1,
      "Pass the root of the server's certificate with --ca FILE",
    ],
    [
      'plain HTTP',
      ['status', '--url', 'http://localhost'],
      {},
      2,
      'must be an https:// URL such as https://est.example.com:9444',
    ],
    ['a path', ['status', '--url', 'https://localhost/admin/otp'], {}, 2, '--url must have only a host and a port'],
    ['no address', ['status'], { ESTUARY_ADMIN_URL: '' }, 2, '--url URL is missing'],
    [
      'no file',
      ['status', '--token-file', '/nonexistent'],
      {},
      2,
      '--token-file: cannot open /nonexistent: no such file or directory',
    ],
    [
      'no CA',
      ['ca', 'show', 'none'],
      {},
      1,
      'with this label (404 UNKNOWN_LABEL). "estuary admin ca list" shows the labels',
    ],
    ['no PEM', ['status', '--ca', '/dev/null'], {}, 2, '--ca: /dev/null is not PEM'],
    ['two formats', ['otp', 'list', '--json', '--csv'], {}, 2, '--json and --csv exclude each other'],
    ['no count', ['otp', 'list', '--limit', '0'], {}, 2, '--limit: "0" must be a whole number of at least 1'],
    ['no time', ['audit', 'list', '--since', 'yesterday'], {}, 2, '--since: "yesterday" must be a time like'],
    [
      'a wrong status',
      ['otp', 'list', '--status', 'odd'],
      {},
      1,
      'status must be one of active, consumed, expired, revoked (400 FIELD_INVALID)',
    ],
    ['a wrong cursor', ['otp', 'list', '--cursor', 'odd'], {}, 1, '(400 CURSOR_INVALID)'],
    ['an interval alone', ['otp', 'list', '--interval', '3'], {}, 2, '--interval requires --watch'],
    ['no such command', ['opt', 'list'], {}, 2, 'there is no command "opt list" (the nearest known one is "otp list")'],
    ['no such option', ['otp', 'list', '--token', 'x'], {}, 2, 'there is no option --token'],
  ])('%s is a sentence and an exit code', async (_, args, more, code, sentence) => {
    const done = await admin(args, { env: more });
    expect(done).toMatchObject({ code, out: '' });
    expect(done.err).toContain(sentence);
    expect(done.err).not.toMatch(/\n {4}at /);
  });

  test('a rejected reload has a line for each problem', async () => {
    const path = join(server.dir, 'est.toml');
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, `first = 1\nsecond = 2\n${before}`);
    const { err, code } = await admin(['reload']);
    writeFileSync(path, before);
    // The status is "degraded" until then.
    expect((await admin(['reload'])).code).toBe(0);
    expect(err).toMatch(/first: unknown key .*\n.*est\.toml: second: unknown key .* \(409 RELOAD_FAILED\)\n$/);
    expect(code).toBe(1);
  });

  test('the name of the server is checked, and another listener is no admin API', async () => {
    const est = server.server.port('est');
    expect((await admin(['status', '--url', `https://localhost:${est}`])).err).toContain('which is not the admin API');
    const elsewhere = await admin(['status', '--url', `https://127.0.0.1.nip.invalid:${est}`]);
    expect(elsewhere.code).toBe(3);
  });
});

describe('devices', () => {
  test('create, change, disable, enable, show, delete', async () => {
    const made = await json(
      ...['device', 'create', 'press 7/a', '--match-issuer-spki', 'AB'.repeat(32), '--match-serial-number', '4711'],
      ...['--attribute', 'site=Berlin=West', '--attribute', 'line=2', '--not-after', '365d', '--note', 'new'],
    );
    expect(made).toMatchObject({
      id: 'press 7/a',
      match: { issuer_spki_sha256: 'ab'.repeat(32), serial_number: '4711' },
      attributes: { site: 'Berlin=West', line: '2' },
      enabled: true,
      note: 'new',
    });
    expect((await admin(['device', 'create', 'press 7/a'])).err).toContain('(409 DEVICE_EXISTS)');
    await json('device', 'create', 'press 7/a', '--ca-label', 'lab');
    expect((await admin(['device', 'show', 'press 7/a'])).err).toContain('(400 DEVICE_ID_AMBIGUOUS)');
    expect(await json('device', 'change', 'press 7/a', '--at', 'lab', '--note', 'n')).toMatchObject({
      ca: 'lab',
      note: 'n',
    });
    expect(await json('device', 'show', 'press 7/a', '--at', '')).toMatchObject({ ca: null });
    expect((await admin(['device', 'delete', 'press 7/a', '--at', 'lab', '--yes'])).code).toBe(0);
    await admin(['device', 'disable', 'press 7/a']);
    const upserted = await json('device', 'create', 'press 7/a', '--upsert', '--attribute', 'line=2');
    expect(upserted).toMatchObject({
      ...made,
      enabled: false,
      attributes: { line: '2' },
      changed_at: expect.any(String) as string,
    });
    await admin(['device', 'import', file('upsert.csv', 'id,note,enabled\npress 7/a,,\n'), '--upsert']);
    expect(await json('device', 'show', 'press 7/a')).toMatchObject({ enabled: false, note: 'new' });
    const changed = await json(
      'device',
      'change',
      'press 7/a',
      '--note',
      'old',
      '--clear',
      'match',
      '--clear',
      'not_after',
    );
    expect(changed).toMatchObject({ note: 'old', match: null, not_after: null, attributes: { line: '2' } });
    expect(await json('device', 'disable', 'press 7/a')).toMatchObject({ enabled: false });
    expect((await admin(['device', 'list', '--enabled', 'false'])).out).toMatch(/press 7\/a +- +no +- /);
    expect(await json('device', 'enable', 'press 7/a')).toMatchObject({ enabled: true });
    expect((await admin(['device', 'show', 'press 7/a'])).out).toMatch(/\nEVENTS\nSEQ +TIME /);
    expect((await admin(['device', 'delete', 'press 7/a'])).code).toBe(2);
    expect(await admin(['device', 'delete', 'press 7/a', '--revoke', '--yes'])).toMatchObject({ code: 0 });
    expect((await admin(['device', 'show', 'press 7/a'])).err).toContain('(404 DEVICE_NOT_FOUND)');
  });

  test('--issuer-file takes the key of a CA certificate, PEM or DER; --match-issuer that of a configured one', async () => {
    const ca = await makeCa('CN=Maker');
    const pem = file('maker.pem', encodePem('CERTIFICATE', ca.der));
    const der = file('maker.der', '');
    writeFileSync(der, ca.der);
    const key = { issuer_spki_sha256: spkiHash(parseCertificate(ca.der)) };
    expect(await json('device', 'create', 'by-pem', '--issuer-file', pem)).toMatchObject({ match: key });
    expect(await json('device', 'create', 'by-der', '--issuer-file', der)).toMatchObject({ match: key });
    const root = parseCertificate(parsePem(server.root)[0]?.der ?? Buffer.alloc(0));
    const named = await json('device', 'create', 'by-name', '--match-issuer', formatName(root.subject));
    expect(named).toMatchObject({ match: { issuer_spki_sha256: spkiHash(root) } });
    expect((await admin(['device', 'create', 'x', '--match-issuer', 'CN=Nobody'])).err).toContain(
      'is not the subject of a configured trust anchor',
    );
    const leaf = await makeClient('CN=unit', ca);
    const [two, unit] = [
      file('two.pem', server.root + server.root),
      file('unit.pem', encodePem('CERTIFICATE', leaf.der)),
    ];
    for (const [args, sentence] of [
      [[two], 'the file must contain exactly one certificate'],
      [[unit], 'this is not a CA certificate'],
      [[file('empty.pem', '')], 'exactly one certificate'],
      [['/nonexistent'], 'no such file'],
      [[pem, '--match-issuer-spki', 'ab'], 'exclude each other'],
    ] as const) {
      const { code, out, err } = await admin(['device', 'create', 'x', '--issuer-file', ...args]);
      expect([code, out, err]).toEqual([2, '', expect.stringContaining(sentence)]);
    }
  });

  test.each([
    [['create', 'x', '--attribute', 'site'], '--attribute: "site" must have the form NAME=TEXT'],
    [['change', 'x'], 'nothing to change'],
    [['change', 'x', '--clear', 'id'], '--clear: "id" is unknown. Allowed: ca, match, attributes, not_after, note'],
    [['change', 'x', '--clear', 'note', '--note', 'y'], '--clear note and a new value exclude each other'],
    [['import', '/nonexistent'], 'FILE /nonexistent cannot be read'],
    [['import', '/dev/null'], 'FILE has no header line'],
  ])('%j is refused before anything is sent', async (args, sentence) => {
    const { code, out, err } = await admin(['device', ...args]);
    expect([code, out, err]).toEqual([2, '', expect.stringContaining(sentence)]);
  });

  test('import of more rows than a call takes, in two calls; what was exported can be imported again', async () => {
    const rows = Array.from({ length: 10_002 }, (_, n) => (n === 10_000 ? ',x' : `fleet-${n},n${n}`));
    const answers = file('fleet-answers.csv');
    const done = await admin([
      'device',
      'import',
      file('fleet.csv', `id,note\n${rows.join('\n')}\n`),
      '--out',
      answers,
    ]);
    expect(done.code).toBe(1);
    expect(done.err).toContain('row 10002: id is required (FIELD_INVALID)\n10001 of 10002 devices registered');
    const lines = readFileSync(answers, 'utf8').trimEnd().split('\r\n');
    expect(lines).toHaveLength(10_003);
    expect(lines.at(-2)).toMatch(/,10002,FIELD_INVALID,id is required$/);
    expect(lines.at(-1)).toMatch(/^fleet-10001,/);
    const { out: table } = await admin(['device', 'list', '--csv', '--id', 'fleet-7']);
    const again = await admin(['device', 'import', file('again.csv', table), '--upsert']);
    expect(again).toMatchObject({
      code: 0,
      err: expect.stringMatching(/1 of 1 devices registered\n$/) as unknown,
    });
    expect((await admin(['device', 'import', file('again.csv')])).err).toContain('row 2: ');
  });
});

describe('lines for a device', () => {
  test('the line for estuary client enrolls', async () => {
    const { out } = await admin(['otp', 'create', 'client, 1']);
    const line = /with Estuary:\n\n(EST_OTP=.*)\n/.exec(out)?.[1] ?? '';
    const bin = mkdtempSync(join(folder, 'bin-'));
    writeFileSync(join(bin, 'estuary'), `#!/bin/sh\nexec '${NODE}' '${SERVER}' "$@"\n`, { mode: 0o755 });
    await run('sh', ['-c', line], { cwd: folder, env: { PATH: `${bin}:${process.env['PATH'] ?? ''}` } });
    expect(await items('cert', 'list', '--requester', 'client, 1')).toMatchObject([
      { subject: String.raw`CN=client\, 1` },
    ]);
  });

  test('a QR code of what a device has to know', async () => {
    const { out } = await admin(['otp', 'create', 'gerät-1', '--ca-label', 'lab', '--qr']);
    const token = /^token +(\S+)$/m.exec(out)?.[1] ?? '';
    const text = JSON.stringify({
      est: `${env['ESTUARY_EST_URL'] ?? ''}/.well-known/est`,
      label: 'lab',
      client_id: 'gerät-1',
      token,
    });
    const code = qrcode(0, 'M');
    code.addData(Buffer.from(text).toString('latin1'), 'Byte');
    code.make();
    const rows = out.split('\n').filter((line) => line.startsWith('\u001b[30;107m'));
    const dark = (row: number, column: number): boolean =>
      '█▀'.includes((rows[row >> 1] ?? '').slice('\u001b[30;107m'.length).charAt(column)) && row % 2 === 0;
    for (let row = 0; row < code.getModuleCount(); row += 2)
      for (let column = 0; column < code.getModuleCount(); column++)
        expect(dark(row + 4, column + 4), `${row} ${column}`).toBe(code.isDark(row, column));
  });
});

test('the built program, colored on a terminal alone and not with NO_COLOR', async () => {
  const plain = await runAny(NODE, [SERVER, 'admin', 'status'], { env });
  expect(plain.output).toMatch(/^status +ok$/m);
  const command = `${NODE} ${SERVER} admin status`;
  const onTerminal = await runAny('script', ['-qec', command, '/dev/null'], { env: { ...env, TERM: 'xterm' } });
  expect(onTerminal.output).toMatch(/status +\u001b\[32mok\u001b\[0m/);
  const sober = await runAny('script', ['-qec', command, '/dev/null'], {
    env: { ...env, TERM: 'xterm', NO_COLOR: '1' },
  });
  expect(sober.output).not.toContain('\u001b[32m');
});

test('the built program ends without a word when nobody reads on', async () => {
  const { code, output } = await runAny('sh', ['-c', `'${NODE}' '${SERVER}' admin openapi | head -n 1`], { env });
  expect([code, output]).toEqual([0, '{\n']);
});
