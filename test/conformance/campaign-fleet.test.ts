/**
 * A fleet follows a replacement campaign in virtual time: some clients over real HTTP, the others through the store.
 * `ESTUARY_FLEET=50000` is the nightly size.
 */
import { hash, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { parse, stringify } from 'smol-toml';
import { expect, onTestFinished, test } from 'vitest';
import { auditedCertificate } from '../../src/audit/applied-events.ts';
import { renewalWindow } from '../../src/ca/renewal-window.ts';
import { loadConfigOnly } from '../../src/config/load.ts';
import { readMaterial } from '../../src/config/material/load-material.ts';
import { TicketSecret } from '../../src/http/ticket-secret.ts';
import { createLogger } from '../../src/log.ts';
import { assemble } from '../../src/main/assemble.ts';
import { Lifecycle } from '../../src/main/lifecycle.ts';
import { Metrics } from '../../src/metrics.ts';
import { FairLimiter } from '../../src/process/fair-limiter.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { certificateRow, reservation } from '../store/support.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, hashOtpsCheaply, section } from '../support/estuary.ts';
import { call, type Answer } from '../support/https.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { freePorts } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { until } from '../support/until.ts';

const FLEET = Number(process.env['ESTUARY_FLEET'] ?? 2000);
/** One client in a hundred uses HTTP. */
const SAMPLE = FLEET / 100;
const HOUR = 3_600_000;
const [POLL, LENGTH] = [6 * HOUR, 96 * HOUR];
const PARTS = 50;
const BATCH = 500;

interface Client {
  readonly name: string;
  readonly serial: string;
  /** Only of the sample. */
  readonly cert: string | undefined;
  /** From the start of the campaign; Infinity: it never returns. */
  readonly returns: number;
}

/** The server in this process, with a virtual clock. */
async function world() {
  const folder = temporaryFolder();
  await makeQuickstart(folder.path);
  const file = join(folder.path, 'est.toml');
  const toml = parse(readFileSync(file, 'utf8'));
  const [est = 0, admin = 0] = await freePorts(2);
  Object.assign(section(toml, 'est'), { port: est });
  Object.assign(section(toml, 'admin'), { port: admin });
  Object.assign(section(toml, 'log'), { level: 'fatal' });
  hashOtpsCheaply(toml, folder.path);
  writeFileSync(file, stringify(toml));
  const { config } = await loadConfigOnly(file, {});
  const log = createLogger('fatal');
  const clock = { time: Date.now(), now: () => clock.time };
  const { path } = config.store;
  const lookupKey = { configured: undefined, required: true };
  const store = await openStore({ path, auditFile: config.audit.file, node: 'one', lookupKey, now: clock.now });
  const assembly = await assemble(config, await readMaterial(config), {
    ...{ log, metrics: new Metrics(), store, instance: 'one', clock },
    ...{ ticketSecret: TicketSecret.random(), isOnDuty: () => true, lastReload: () => undefined, faults: () => [] },
    makeMutex: (_, queue) => new FairLimiter({ concurrency: 1, queue }),
    reload: () => Promise.resolve({ ok: false, reason: 'not here' }),
  });
  const lifecycle = new Lifecycle(assembly, { log });
  await lifecycle.start();
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    await lifecycle.stop();
    await store.close();
    folder.remove();
  });
  const ca = readFileSync(folder.file('ca/root.pem'), 'latin1');
  const token = readFileSync(folder.file('admin/token'), 'latin1').trim();
  const administer = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const text = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const { text: json } = await call({ port: admin, path, method, headers, tls: { ca }, ...text });
    return JSON.parse(json) as Record<string, unknown>;
  };
  const devices = config.ca[0];
  if (devices === undefined) throw new Error('no CA');
  return { store, clock, administer, agent, est: { port: est, tls: { ca } }, renewal: devices.renewal };
}

test(`draft-ietf-lamps-est-renewal-info: ${FLEET} clients are replaced within a campaign without a peak, and those that are away later`, async () => {
  const { store, clock, administer, agent, est, renewal } = await world();
  const key = makeKey();
  const begins = clock.time + 1000;
  const due = begins + LENGTH;
  /** A number from 0 to 1 that follows from the client. */
  const chance = (what: string, n: number): number =>
    Number.parseInt(hash('sha256', `${what} ${n}`, 'hex').slice(0, 8), 16) / 2 ** 32;

  const post = (operation: string, name: string, more: object): Promise<Answer> => {
    const headers = { 'Content-Type': 'application/pkcs10', ...('headers' in more ? (more.headers as object) : {}) };
    const body = Buffer.from(onTheWire(simpleCsr(key, name)));
    return call({ ...est, method: 'POST', path: `/.well-known/est/${operation}`, body, ...more, headers });
  };
  const record = async (name: string, at: number): Promise<string> => {
    const intent = reservation({ created_at: at, subject: `CN=${name}`, requester: name });
    await store.reserve(intent, []);
    const times = { not_before: at, not_after: at + 397 * 24 * HOUR, sans: [], der: Buffer.alloc(1) };
    const row = certificateRow(intent, times);
    const issued = { type: 'certificate.issued', outcome: 'success', ...auditedCertificate(row) } as const;
    await store.recordCertificate(row, [issued]);
    return intent.serial ?? '';
  };
  const { token } = await administer('POST', '/admin/otp', { client_id: 'fleet', max_uses: SAMPLE });
  const Authorization = `Basic ${Buffer.from(`fleet:${String(token)}`).toString('base64')}`;
  const make = async (n: number): Promise<Client> => {
    const name = `client-${String(n).padStart(6, '0')}`;
    const returns = n % 50 === 7 ? LENGTH + 24 * HOUR * chance('return', n) : n % 100 === 9 ? Infinity : 0;
    // Every tenth of the sample is away.
    if (n % 100 !== (n % 1000 < 100 ? 7 : 0))
      return { name, serial: await record(name, clock.time), cert: undefined, returns };
    const cert = certificatePem(await post('simpleenroll', name, { agent, headers: { Authorization } }));
    return { name, serial: new X509Certificate(cert).serialNumber.toLowerCase(), cert, returns };
  };
  const clients: Client[] = [];
  for (let n = 0; n < FLEET; n += BATCH)
    clients.push(...(await Promise.all(Array.from({ length: Math.min(BATCH, FLEET - n) }, (_, i) => make(n + i)))));

  clock.time = begins;
  const by = new Date(due).toISOString();
  const { id } = await administer('POST', '/admin/renewals', { filter: { ca: 'devices' }, by });
  const campaigns = await store.listRenewals();
  const progress = (): Promise<Record<string, unknown>> => administer('GET', `/admin/renewals/${String(id)}`);
  /** The progress, once the holders are derived. */
  const progressWith = (replaced: number): Promise<Record<string, unknown>> =>
    until(`${replaced} are replaced`, async () => {
      const now = await progress();
      return now['replaced'] === replaced && now;
    });
  expect(await progress()).toMatchObject({ total: FLEET, waiting: FLEET, overdue: 0 });

  /** What a client learns when it asks: from the server over HTTP, or from the same rule. */
  const windowOf = async ({ serial, cert }: Client): Promise<{ start: number; end: number }> => {
    const row = await store.findIssued('devices', serial);
    if (row === undefined) throw new Error('unknown');
    const window = renewalWindow(row, renewal, campaigns);
    if (cert === undefined) return window;
    const aki = parseCertificate(new X509Certificate(cert).raw).authorityKeyIdentifier ?? Buffer.alloc(0);
    const path = `/.well-known/est/renewal-info/${aki.toString('base64url')}.${Buffer.from(serial, 'hex').toString('base64url')}`;
    const { status, text } = await call({ ...est, agent, path });
    expect(status, text).toBe(200);
    const { suggestedWindow } = JSON.parse(text) as { suggestedWindow: { start: string; end: string } };
    const told = { start: Date.parse(suggestedWindow.start), end: Date.parse(suggestedWindow.end) };
    expect(told).toEqual(window);
    return told;
  };
  const plans: { readonly client: Client; readonly at: number }[] = [];
  for (const [n, client] of clients.entries()) {
    // The client asks at each Retry-After, since any time; one that was away asks when it returns.
    const asks = begins + (client.returns > 0 ? client.returns : chance('phase', n) * POLL);
    if (asks === Infinity) continue;
    const { start, end } = await windowOf(client);
    plans.push({ client, at: Math.floor(Math.max(asks, start + chance('time', n) * (end - start))) });
  }
  plans.sort((a, b) => a.at - b.at);

  const parts = new Array<number>(PARTS).fill(0);
  const follow = async (until: number): Promise<void> => {
    while (plans.length > 0 && (plans[0]?.at ?? 0) <= until) {
      const now = plans.splice(0, Math.min(BATCH, plans.filter(({ at }) => at <= until).length));
      await Promise.all(now.flatMap(({ client, at }) => (client.cert === undefined ? [record(client.name, at)] : [])));
      for (const { client, at } of now) {
        const part = Math.floor(((at - begins) / LENGTH) * PARTS);
        if (part < PARTS) parts[part] = (parts[part] ?? 0) + 1;
        if (client.cert === undefined) continue;
        clock.time = at;
        const tls = { ...est.tls, cert: client.cert, key: key.pem };
        const answer = await post('simplereenroll', client.name, { tls });
        expect(answer.status, answer.text).toBe(200);
      }
    }
    clock.time = until;
  };
  await follow(due + 1000);
  const [away, never] = [FLEET / 50, FLEET / 100];
  expect(await progressWith(FLEET - away - never)).toMatchObject({
    overdue: away + never,
    waiting: 0,
    failed: 0,
  });
  expect(Math.max(...parts) / ((FLEET - away - never) / PARTS), 'of the mean rate').toBeLessThanOrEqual(2);

  await follow(due + 24 * HOUR);
  const { overdue_certificates: overdue, ...end } = await progressWith(FLEET - never);
  expect(end).toMatchObject({ total: FLEET, overdue: never });
  const lost = clients.filter(({ returns }) => returns === Infinity).map(({ serial }) => serial);
  expect(lost).toEqual(expect.arrayContaining((overdue as { serial: string }[]).map(({ serial }) => serial)));
  expect(overdue).toHaveLength(Math.min(never, 100));
}, 1_800_000);
