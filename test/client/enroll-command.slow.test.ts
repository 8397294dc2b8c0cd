/** `estuary client enroll` on the command line: explicit attempts, --wait, and the client.toml that it leaves. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadClientConfig } from '../../src/client/config/load.ts';
import { estuary } from '../support/local-command.ts';
import { makeEstCa, mayEnroll, type Answers, type EstCa } from '../support/est-ca.ts';
import { csrOf, sendCertificates, sendStatus, type StandIn } from '../support/est-stand-in.ts';
import { liveCertificate } from '../support/estuary-client.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
let est: EstCa;
let clients = 0;
const servers: StandIn[] = [];

beforeAll(async () => {
  est = await makeEstCa();
  writeFileSync(folder.file('otp'), 'secret\n');
});
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));
afterAll(() => folder.remove());

async function start(answers: Answers = {}, ca = est): Promise<StandIn> {
  const server = await ca.start(answers);
  servers.push(server);
  return server;
}

const newFolder = (): string => folder.file(`client-${++clients}`);
const enroll = (out: string, { url }: StandIn, ...more: readonly string[]) =>
  estuary([
    ...['client', 'enroll', '--url', url, '--out', out, '--subject', 'CN=web', '--otp-file', folder.file('otp')],
    ...(more.includes('--ca-fingerprint') ? [] : ['--ca-fingerprint', est.fingerprint]),
    ...more,
  ]);
const enrollments = ({ requests }: StandIn): number =>
  requests.filter(({ operation, headers }) => operation === 'simpleenroll' && headers.authorization !== undefined)
    .length;
const rejected: Answers = {
  simpleenroll: (request) => mayEnroll(request) && sendStatus(request, 401, {}, 'unknown password'),
};

describe('an explicit command', () => {
  test('says what it does, and tries again at once after a failure', async () => {
    const out = newFolder();
    const failing = await start(rejected);
    const first = await enroll(out, failing);
    expect(first).toMatchObject({ code: 1, out: '' });
    expect(first.err).toContain(`sends simpleenroll to ${failing.url}/.well-known/est\n`);
    expect(first.err).toContain('simpleenroll: 401 (unknown password); next attempt in ');
    const second = await enroll(out, failing);
    expect(second).toMatchObject({ code: 1, err: expect.stringContaining('repeats simpleenroll') as unknown });
    expect(enrollments(failing)).toBe(2);
    expect(await enroll(out, await start())).toMatchObject({ code: 0, out: `${out}/live\n` });
  });

  test('names the valid certificate that it leaves in place', async () => {
    const out = newFolder();
    const server = await start();
    await enroll(out, server);
    const again = await enroll(out, server);
    expect(again.code).toBe(0);
    expect(again.err).toMatch(/valid until .*, renewal .*; run with --force to replace it now/);
    expect(enrollments(server)).toBe(1);
  });

  test('runs a failed hook again at once', async () => {
    const out = newFolder();
    const server = await start();
    const hook = ['--reload', `test -e ${folder.file('ready')}`];
    expect((await enroll(out, server, ...hook)).code).toBe(1);
    writeFileSync(folder.file('ready'), '');
    expect((await enroll(out, server, ...hook)).code).toBe(0);
  });

  test('a timer waits for the next attempt, says why, and --force tries at once', async () => {
    const out = newFolder();
    await enroll(out, await start(rejected));
    const server = await start();
    writeFileSync(
      join(out, 'client.toml'),
      readFileSync(join(out, 'client.toml'), 'utf8').replace(/url = .*/, `url = "${server.url}"`),
    );
    const renew = (...more: string[]) => estuary(['client', 'renew', '--config', join(out, 'client.toml'), ...more]);
    const waiting = await renew();
    expect(waiting.code).toBe(1);
    expect(waiting.err).toMatch(/simpleenroll: 401 \(unknown password\); next attempt .*, or now with --force/);
    expect(enrollments(server)).toBe(0);
    expect(await renew('--force')).toMatchObject({ code: 0 });
    const silent = await renew();
    expect(silent).toEqual({ code: 0, out: '', err: '' });
  });

  test('RFC 7030 §4.2.3: does not repeat a request before Retry-After', async () => {
    const out = newFolder();
    const server = await start({
      simpleenroll: (request) => mayEnroll(request) && sendStatus(request, 202, { 'Retry-After': '600' }),
    });
    expect((await enroll(out, server)).code).toBe(3);
    const again = await enroll(out, server);
    expect(again).toMatchObject({
      code: 3,
      err: expect.stringMatching(/not issued yet; asking again in \d+ s/) as unknown,
    });
    expect(enrollments(server)).toBe(1);
    // Another request is not the same request.
    await enroll(out, server, '--dns', 'web.example');
    expect(enrollments(server)).toBe(2);
  });
});

describe('client.toml', () => {
  test('has the settings of the attempt that succeeded, not of a wrong one before', async () => {
    const [out, right] = [newFolder(), await start()];
    const wrong = await start({ simpleenroll: (request) => sendStatus(request, 404) });
    await enroll(out, wrong, '--label', 'wrong', '--dns', 'wrong.example');
    const config = join(out, 'client.toml');
    expect(loadClientConfig(config).certificate[0]?.label).toBe('wrong');
    expect((await enroll(out, right, '--dns', 'web.example')).code).toBe(0);
    const { server, certificate } = loadClientConfig(config);
    expect([server.url.join(), certificate[0]?.label, certificate[0]?.dns_names]).toEqual([
      right.url,
      undefined,
      ['web.example'],
    ]);
    expect(loadClientConfig(`${config}.old`).certificate[0]?.label).toBe('wrong');
    expect(liveCertificate(out).subjectAltNames).toEqual([{ kind: 'dns', value: 'web.example' }]);
  });

  test('keeps the settings that got a certificate until others get one', async () => {
    const [out, right, wrong] = [newFolder(), await start(), await start(rejected)];
    const url = (): string => loadClientConfig(join(out, 'client.toml')).server.url.join();
    await enroll(out, right);
    const unused = await enroll(out, wrong);
    expect([unused.code, unused.err]).toEqual([0, expect.stringContaining('keeps its settings')]);
    expect((await enroll(out, wrong, '--force')).code).toBe(1);
    expect(url()).toBe(right.url);
    const other = await start();
    expect((await enroll(out, other, '--force')).code).toBe(0);
    expect(url()).toBe(other.url);
  });

  test('a corrected fingerprint replaces the CA that a wrong one led to', async () => {
    const strange = await makeEstCa('CN=Strange CA');
    const [out, wrong, right] = [newFolder(), await start(rejected, strange), await start()];
    expect((await enroll(out, wrong, '--ca-fingerprint', strange.fingerprint)).code).toBe(1);
    expect(existsSync(join(out, 'trust/anchors.pem'))).toBe(true);
    expect(await enroll(out, right)).toMatchObject({ code: 0 });
    // The CAs of the former configuration count no longer.
    const renewed = await start(rejected, strange);
    expect((await enroll(out, renewed, '--force')).err).toContain('is not trusted');
  });
});

describe('--wait', () => {
  test.each([
    [202, 'seconds'],
    [429, 'seconds'],
    [503, 'seconds'],
    [202, 'a date'],
    [429, 'a date'],
    [503, 'a date'],
  ])('waits after %i with %s in Retry-After', async (status, form) => {
    const out = newFolder();
    let answers = 0;
    const retryAfter = form === 'seconds' ? '1' : new Date(Date.now() + 2000).toUTCString();
    const server = await start({
      simpleenroll: async (request) => {
        if (!mayEnroll(request)) return undefined;
        if ((answers += 1) === 1) return sendStatus(request, status, { 'Retry-After': retryAfter });
        return sendCertificates(request, [await est.issue(csrOf(request))]);
      },
    });
    expect(await enroll(out, server, '--wait', '60')).toMatchObject({ code: 0, out: `${out}/live\n` });
    expect(enrollments(server)).toBe(2);
  });

  test('ends where the next attempt is later, and does not wait after a rejection', async () => {
    for (const [status, code] of [
      [503, 1],
      [202, 3],
      [403, 1],
    ] as const) {
      const server = await start({
        simpleenroll: (request) => mayEnroll(request) && sendStatus(request, status, { 'Retry-After': '5' }),
      });
      expect((await enroll(newFolder(), server, '--wait', '4')).code).toBe(code);
      expect(enrollments(server)).toBe(1);
    }
  });

  test('with --force goes on with the enrollment that it began', async () => {
    const out = newFolder();
    await enroll(out, await start());
    const before = liveCertificate(out);
    let [requests, outages] = [0, 0];
    const server = await start({
      cacerts: (request) =>
        (outages += 1) === 1
          ? sendStatus(request, 503, { 'Retry-After': '1' })
          : sendCertificates(request, [est.ca.der]),
      simpleenroll: async (request) => {
        if (!mayEnroll(request)) return undefined;
        if ((requests += 1) === 1) return sendStatus(request, 202, { 'Retry-After': '1' });
        return sendCertificates(request, [await est.issue(csrOf(request))]);
      },
    });
    const done = await enroll(out, server, '--force', '--wait', '60', '--dns', 'new.example');
    expect(done.code).toBe(0);
    expect([requests, outages]).toEqual([2, 3]);
    expect(liveCertificate(out).subjectAltNames).toEqual([{ kind: 'dns', value: 'new.example' }]);
    expect(liveCertificate(out).serialNumber).not.toBe(before.serialNumber);
  });
});
