/**
 * A fleet of `estuary client` against the server of this process, whose keys are in an HSM, in virtual time. Agents die between response and
 * installation, lose their disks, are off for months, come back with an expired certificate, and are rejected. After each of these, every holder
 * must be in its state within a minute. A rollover that waits for what the server says cuts off nobody, and one that does not is predicted.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { ClientError } from '../../../src/client/client-error.ts';
import { readClientConfig } from '../../../src/client/config/load.ts';
import type { EstOperations } from '../../../src/client/context.ts';
import { EstServer } from '../../../src/client/http/est-server.ts';
import type { ClientIdentity, ServerTrust } from '../../../src/client/http/connection.ts';
import { runCommand } from '../../../src/main/commands/run-command.ts';
import { COMMANDS } from '../../../src/main/commands/table.ts';
import type { Certificate } from '../../../src/pki/x509/certificate.ts';
import { makeCa } from '../../../test/support/certificates.ts';
import { ClientWorld, DAY, Killed } from '../../../test/support/client-world.ts';
import { textOf } from '../../../test/support/command.ts';
import { caSection, Estuary, itemsOf, section } from '../../../test/support/estuary.ts';
import { expectedState, type Held } from '../../../test/support/fleet-model.ts';
import { withKeysInHsm } from '../../../test/support/keys-in-hsm.ts';
import { openssl } from '../../../test/support/openssl.ts';
import { Random } from '../../../test/support/random.ts';
import { certify, newKey, rollRoot } from '../../../test/support/rollover.ts';
import { PIN, softHsm, type SoftHsm } from '../../../test/support/softhsm.ts';
import { IN_PROCESS } from '../../../test/support/wanted-server.ts';

export interface StatesOptions {
  readonly agents: number;
  /** Days of a certificate. The whole takes nine of its lifetimes. */
  readonly lifetime: number;
  readonly seed: number;
  readonly progress?: (text: string) => void;
}

export interface StatesResult {
  readonly certificates: number;
  readonly requests: number;
  readonly deaths: number;
  /** Responses with 503 in the hour without the HSM. */
  readonly unavailable: number;
  readonly checks: number;
  /** The longest that it took until every state was right, in seconds. */
  readonly slowest: number;
  /** Holders that were seen in each state, without repeats. */
  readonly states: Readonly<Record<string, number>>;
  /** Agents that the rollover cut off which did not wait. */
  readonly cutOff: number;
  readonly problems: readonly string[];
}

const [MINUTE, HOUR] = [60_000, 3_600_000];
/** In lifetimes of a certificate. */
const [FORGET, LENGTH] = [4, 9];
/** An agent's next attempt after a failure, for each day that a certificate lives. */
const LEAST_RETRY = 72 * MINUTE;
/** What becomes of an agent. */
const KINDS = [
  'plain',
  'killed',
  'dying',
  'wiped',
  'lost',
  'away',
  'rejected',
  'approved',
  'registered',
  'dead',
] as const;

/** Those that never return. */
const SCRAPPED: readonly string[] = ['lost', 'dead'];

interface Agent {
  readonly name: string;
  readonly kind: (typeof KINDS)[number];
  readonly world: ClientWorld;
  /** Oldest first. */
  readonly held: Held[];
  readonly rejections: number[];
  isQueued: boolean;
  /** Whether the process is on; how often it still dies when a response arrives. */
  isOn: boolean;
  deaths: number;
}

export async function runStates(options: StatesOptions): Promise<StatesResult> {
  const RealDate = Date;
  const clock = { time: RealDate.now() };
  class VirtualDate extends RealDate {
    constructor(...values: [] | [value: number | string | Date]) {
      super(values.length === 0 ? clock.time : values[0]);
    }

    static override now(): number {
      return clock.time;
    }
  }
  const hsm = softHsm();
  const environment = { ...hsm.env, TEST_HSM_PIN: PIN, ESTUARY_TEST_SERVER: IN_PROCESS };
  const before = Object.keys(environment).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, environment);
  try {
    hsm.addToken('est');
    // Without its environment, which a server in another process has.
    const { configure = () => undefined } = withKeysInHsm({ configure: (config) => change(config, options) }, hsm);
    Object.assign(globalThis, { Date: VirtualDate });
    const estuary = await Estuary.start({ configure });
    try {
      return await new StatesFleet(options, estuary, hsm, clock).run();
    } finally {
      await estuary.stop();
    }
  } finally {
    Object.assign(globalThis, { Date: RealDate });
    for (const [name, value] of before)
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    hsm.remove();
  }
}

function change(config: TomlTable, { lifetime }: StatesOptions): void {
  const profile = { validity_days: lifetime };
  Object.assign(section(caSection(config), 'profile'), profile);
  Object.assign(section(config, 'admin', 'tls'), { certificate: 'tls/server.pem', private_key: 'tls/server.key' });
  Object.assign(caSection(config), { renewal: { retry_after: 86_400 * Math.ceil(lifetime / 4) } });
  config['fleet'] = { forget_expired: FORGET * lifetime };
  config['label'] = [{ name: 'approved', ca: 'devices', approval: 'manual', profile }];
  section(config, 'est')['retry_after'] = Math.min(86_400, 4320 * lifetime);
}

class StatesFleet {
  readonly #options: StatesOptions;
  readonly #estuary: Estuary;
  readonly #hsm: SoftHsm;
  readonly #clock: { time: number };
  readonly #random: Random;
  readonly #start: number;
  readonly #agents: Agent[] = [];
  /** What happens, the earliest first. */
  readonly #events: { readonly at: number; readonly what: () => Promise<unknown> }[] = [];
  readonly #open: EstServer[] = [];
  readonly #problems: string[] = [];
  readonly #seen = new Set<string>();
  readonly #counts = { requests: 0, deaths: 0, unavailable: 0, checks: 0, slowest: 0, cutOff: 0 };
  #isChecked = false;
  #isRolledOver = false;

  constructor(options: StatesOptions, estuary: Estuary, hsm: SoftHsm, clock: { time: number }) {
    this.#options = options;
    this.#estuary = estuary;
    this.#hsm = hsm;
    this.#clock = clock;
    this.#random = new Random(options.seed);
    this.#start = clock.time;
  }

  async run(): Promise<StatesResult> {
    const certificate = await makeCa('CN=unused');
    for (let n = 0; n < this.#options.agents; n++) await this.#add(n, new ClientWorld(certificate));
    for (let tenth = 1; tenth < 10 * LENGTH; tenth++) this.#at(tenth / 10, () => this.#operate());
    this.#at(1, () => this.#outage());
    this.#at(2, () => this.#narrow(['.*\\.plant\\.example']));
    this.#at(2.6, () => this.#narrow(undefined));
    this.#at(3, () => this.#rollOver());
    this.#at(7.5, () => this.#rollOverAtOnce());
    const end = this.#start + LENGTH * this.#options.lifetime * DAY;
    for (let next = this.#events.shift(); next !== undefined && next.at < end; next = this.#events.shift()) {
      this.#clock.time = Math.max(this.#clock.time, next.at);
      await next.what();
    }
    if (this.#counts.cutOff === 0) this.#report('nobody was cut off');
    if (![...this.#seen].some((one) => one.endsWith(' waiting'))) this.#report('nobody waited');
    const states: Record<string, number> = {};
    for (const one of this.#seen) states[one.split(' ')[1] ?? ''] = (states[one.split(' ')[1] ?? ''] ?? 0) + 1;
    const certificates = this.#agents.reduce((sum, { held }) => sum + held.length, 0);
    return { certificates, ...this.#counts, states, problems: this.#problems };
  }

  /** @param time in lifetimes of a certificate */
  #at(time: number, what: () => Promise<unknown>): void {
    this.#when(this.#start + time * this.#options.lifetime * DAY, what);
  }

  #when(at: number, what: () => Promise<unknown>): void {
    const place = this.#events.findIndex((event) => event.at > at);
    this.#events.splice(place < 0 ? this.#events.length : place, 0, { at: Math.round(at), what });
  }

  // --- agents ------------------------------------------------------------------------------------------------------

  async #add(n: number, world: ClientWorld): Promise<void> {
    const kind = KINDS[n % KINDS.length] ?? 'plain';
    const name = `unit-${n}`;
    const label = kind === 'approved' ? '/.well-known/est/approved' : '';
    const server = { url: `https://localhost:${this.#estuary.server.port('est')}${label}` };
    const trust = { ca_fingerprint: new X509Certificate(this.#estuary.root).fingerprint256 };
    const certificate = {
      ...{ folder: '/certificates/web', subject: `CN=${name}`, otp_env: 'OTP', reload: 'hook' },
      dns_names: [`${name}.${kind === 'rejected' ? 'other' : 'plant'}.example`],
    };
    const config = readClientConfig({ server: { ...server, ...trust }, certificate: [certificate] }, '/client.toml');
    const [first] = config.certificate;
    if (first === undefined) throw new Error('no certificate');
    world.config = { certificate: first, server: config.server };
    const agent: Agent = {
      ...{ name, kind, world, held: [], rejections: [], isQueued: false, isOn: true, deaths: 0 },
    };
    world.connect = (...given) => new SeenServer(given, (seen) => this.#note(agent, seen), this.#open);
    this.#agents.push(agent);
    if (kind === 'registered') await this.#admin('POST', '/admin/devices', { id: name });
    const random = (from: number, to: number) => from + this.#random.next() * (to - from);
    this.#at(kind === 'registered' ? random(1.5, 2) : random(0, 0.3), async () => {
      await this.#givePassword(agent);
      await this.#step(agent);
    });
    if (kind === 'dying') this.#at(0.5, () => Promise.resolve(void (agent.deaths = 1 + (n % 4))));
    if (kind === 'wiped' || kind === 'lost') this.#at(random(1.4, 1.6), () => this.#wipe(agent));
    if (kind === 'away') {
      const back = random(4, 5.5);
      this.#at(random(1.3, 1.5), () => Promise.resolve(void (agent.isOn = false)));
      this.#at(back, () => this.#turnOn(agent));
      this.#at(back + 0.1, () => this.#rescue(agent));
    }
    if (kind === 'dead') this.#at(random(1.2, 1.3), () => Promise.resolve(void (agent.isOn = false)));
  }

  async #givePassword({ name, kind, world }: Agent): Promise<void> {
    // The first request waits for its approval, and its polls have the password.
    const expires_at = new Date(this.#clock.time + this.#options.lifetime * DAY).toISOString();
    const label = kind === 'approved' ? { ca: 'approved' } : {};
    world.otp = (await this.#estuary.otp({ client_id: name, expires_at, ...label })).token;
  }

  /** One step; the next one is an event. */
  async #step(agent: Agent, force?: 'renew'): Promise<ClientError | undefined> {
    const { world, kind } = agent;
    if (!agent.isOn) return undefined;
    const { time } = this.#clock;
    world.now = time;
    world.lives = kind === 'killed' && this.#random.next() < 0.2 ? Math.floor(this.#random.next() * 60) : Infinity;
    const { next, error } = await world.step(force);
    for (const server of this.#open.splice(0)) server.close();
    world.assertWhole();
    // To recognize a used password again takes longer than the rest of an attempt.
    if (world.live !== undefined && kind !== 'plain') world.otp = '';
    if (force !== undefined) return error;
    const isKilled = world.lives < 0;
    if (isKilled) {
      this.#counts.deaths += 1;
      this.#checkSoon();
    }
    // Which agents try again every hour says nothing more about states than a few times in the life of a certificate.
    const least = error === undefined ? 1000 : this.#options.lifetime * LEAST_RETRY;
    const after = isKilled ? time + (1 + this.#random.next() * 59) * MINUTE : Math.max(next, time + least);
    this.#when(after, () => this.#step(agent));
    return error;
  }

  async #turnOn(agent: Agent): Promise<void> {
    agent.isOn = true;
    await this.#step(agent);
  }

  async #wipe(agent: Agent): Promise<void> {
    agent.world.entries.clear();
    agent.world.entries.set('/', { kind: 'folder' });
    if (agent.kind === 'lost') agent.isOn = false;
    else await this.#givePassword(agent);
  }

  #note(agent: Agent, { identity, issued, error }: Seen): void {
    const { held, rejections, name, world } = agent;
    const { time } = this.#clock;
    this.#counts.requests += 1;
    const used = identity && held.find(({ serial }) => serial === serialOf(identity));
    const isRejected = error?.status !== undefined && error.status >= 400 && error.status < 500;
    if (error !== undefined && error.status === undefined) return;
    if (error?.status === 503) this.#counts.unavailable += 1;
    if (used !== undefined && used.notAfter >= time && error?.status !== 401)
      used.uses.push({ at: time, connected: time });
    if (issued === 'queued') agent.isQueued = used !== undefined;
    if (isRejected) agent.isQueued = false;
    if (isRejected && used !== undefined) rejections.push(time);
    if (isRejected || issued !== undefined) this.#checkSoon();
    if (issued === undefined || issued === 'queued') return;
    agent.isQueued = false;
    if (!held.some(({ serial }) => serial === issued.serialNumber)) {
      const [from, to] = [issued.notBefore.getTime(), issued.notAfter.getTime()];
      const at = (part: number): number => Math.floor((from + part * (to - from)) / 1000) * 1000;
      const one = { name, serial: issued.serialNumber, at: time, window: { start: at(0.67), end: at(0.9) } };
      held.push({ ...one, notAfter: to, renewed: used, revoked: false, uses: [] });
    }
    if (agent.deaths === 0) return;
    agent.deaths -= 1;
    world.lives = 0;
    throw new Killed();
  }

  // --- what the server says ----------------------------------------------------------------------------------------

  #checkSoon(): void {
    if (this.#isChecked) return;
    this.#isChecked = true;
    this.#when(this.#clock.time + MINUTE, async () => {
      this.#isChecked = false;
      await this.#check();
    });
  }

  /** Compares every holder's state with the model's; the server has a minute. */
  async #check(): Promise<void> {
    const { time } = this.#clock;
    const forget = FORGET * this.#options.lifetime * DAY;
    const expected = this.#agents.flatMap(({ name, kind, held, rejections, isQueued }) => {
      const isNever = kind === 'registered' && held.length === 0;
      const state = isNever ? 'never' : expectedState(name, { all: held, rejections, isQueued, forget }, time);
      return state === undefined ? [] : [`${name} ${state}`];
    });
    for (const one of expected) this.#seen.add(one);
    expected.sort();
    const began = performance.now();
    for (let wait = 10; ; wait = Math.min(500, 2 * wait)) {
      const { json } = await this.#admin('GET', '/admin/fleet?limit=1000');
      const listed = itemsOf(json).map(({ subject, device, state }) => {
        const name = typeof subject === 'string' ? subject.replace('CN=', '') : String(device);
        return `${name} ${String(state)}`;
      });
      const wrong = [
        ...listed.filter((one) => !expected.includes(one)).map((one) => `listed ${one}`),
        ...expected.filter((one) => !listed.includes(one)).map((one) => `expected ${one}`),
      ];
      const seconds = (performance.now() - began) / 1000;
      if (wrong.length === 0) {
        this.#counts.checks += 1;
        this.#counts.slowest = Math.max(this.#counts.slowest, seconds);
        return;
      }
      if (seconds > 60) {
        this.#report(wrong.join(', '));
        return;
      }
      await sleep(wait);
    }
  }

  #report(problem: string): void {
    this.#problems.push(`after ${this.#lifetimes()} lifetimes: ${problem}`);
  }

  #lifetimes(): string {
    return ((this.#clock.time - this.#start) / DAY / this.#options.lifetime).toFixed(3);
  }

  async #admin(method: string, path: string, body?: unknown) {
    const answer = await this.#estuary.admin(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.json)}`);
    return answer;
  }

  // --- what the operator does --------------------------------------------------------------------------------------

  /** Ten times in the life of a certificate. */
  async #operate(): Promise<void> {
    this.#options.progress?.(`${this.#lifetimes()} of ${LENGTH} lifetimes, ${this.#counts.requests} requests\n`);
    await this.#check();
    const { json } = await this.#admin('GET', '/admin/requests?status=pending&limit=1000');
    for (const { id } of itemsOf(json)) {
      const isWanted = this.#random.next() < 0.9;
      await this.#admin(
        'POST',
        `/admin/requests/${String(id)}/${isWanted ? 'approve' : 'reject'}`,
        isWanted ? {} : { reason: 'sold' },
      );
    }
    if (itemsOf(json).length > 0) await this.#readDecisions();
  }

  /** What was rejected is a rejection from the decision on. */
  async #readDecisions(): Promise<void> {
    const { json } = await this.#admin('GET', '/admin/requests?status=rejected&limit=1000');
    for (const { subject, decided_at } of itemsOf(json)) {
      const agent = this.#agents.find(({ name }) => subject === `CN=${name}`);
      if (agent === undefined || !agent.isQueued || Date.parse(String(decided_at)) < this.#clock.time - 1000) continue;
      agent.isQueued = false;
      agent.rejections.push(this.#clock.time);
    }
  }

  /** An hour without the HSM, in which every plain agent tries to renew. */
  async #outage(): Promise<void> {
    this.#hsm.moveAway();
    this.#when(this.#clock.time + HOUR, async () => {
      await this.#check();
      if (this.#counts.unavailable === 0) this.#report('the HSM was not missed');
      this.#hsm.moveBack();
      await this.#untilHealthy();
    });
    for (const agent of this.#agents) if (agent.kind === 'plain') await this.#step(agent, 'renew');
    await this.#check();
  }

  /** Waits until the server, which tries the token again by both clocks, uses it. */
  async #untilHealthy(): Promise<void> {
    let seen = '';
    for (let tries = 0; tries < 120; tries++) {
      const { json } = await this.#admin('GET', '/admin/cas');
      seen = itemsOf(json)
        .map(({ label, health }) => `${String(label)} ${String(health)}`)
        .join();
      if (!seen.includes('down')) return;
      this.#clock.time += 30_000;
      await sleep(500);
    }
    this.#report(`not available after the HSM returned: ${seen}`);
  }

  async #rescue({ held }: Agent): Promise<void> {
    const serial = held.at(-1)?.serial ?? '';
    await this.#admin('POST', `/admin/certificates/${serial}/rescue?ca=devices`, { for_seconds: 86_400 });
  }

  async #reconfigure(change: (config: TomlTable, dir: string) => void): Promise<void> {
    this.#estuary.reconfigure(change);
    await this.#admin('POST', '/admin/reload');
  }

  #narrow(dns: readonly string[] | undefined): Promise<void> {
    return this.#reconfigure((config) => {
      const san = section(caSection(config), 'profile', 'san');
      if (dns === undefined) delete san['dns'];
      else san['dns'] = [...dns];
    });
  }

  /** Serves both roots, and changes the server certificate once every holder knows the new root (docs/guides/rollover.md). */
  async #rollOver(): Promise<void> {
    const { dir } = this.#estuary;
    rollRoot(dir);
    newServerCertificate(dir, 'tls/next', 'ca/new-root');
    await this.#reconfigure((config) => {
      Object.assign(caSection(config), { certificate: 'ca/new-issuing.pem', chain: 'ca/rollover.pem' });
      const anchors = ['ca/root.pem', 'ca/new-root.pem'].map((name) => readFileSync(join(dir, name), 'latin1'));
      writeFileSync(join(dir, 'tls/anchors.pem'), anchors.join(''));
      section(config, 'tls', 'client_auth')['trust_anchors'] = 'tls/anchors.pem';
    });
    await this.#finishRollOver();
  }

  async #finishRollOver(): Promise<void> {
    const { json } = await this.#admin('GET', '/admin/cas/devices/rollover');
    const [issuer] = itemsOf({ items: json['issuers'] });
    const change = (config: TomlTable): void => {
      Object.assign(section(config, 'tls'), { certificate: 'tls/next.pem', private_key: 'tls/next.key' });
    };
    if (issuer?.['holders'] !== issuer?.['informed'] || (await this.#untrusting(change)).length > 0) {
      this.#when(this.#clock.time + Math.max(1, this.#options.lifetime / 5) * DAY, () => this.#finishRollOver());
      return;
    }
    await this.#reconfigure(change);
    const cutOff = await this.#unreachable();
    if (cutOff.length > 0) this.#report(`the rollover cut off ${cutOff.join()}`);
    this.#isRolledOver = true;
  }

  /** Changes the server certificate at once to one from a root that nobody knows. */
  async #rollOverAtOnce(): Promise<void> {
    if (!this.#isRolledOver) this.#report('the first rollover did not end');
    const { dir } = this.#estuary;
    newKey(dir, 'ca/other-root');
    certify(dir, 'ca/other-root', {
      subject: '/CN=Other root',
      key: 'ca/other-root',
      extensions: ['basicConstraints=critical,CA:TRUE'],
    });
    newServerCertificate(dir, 'tls/other', 'ca/other-root');
    const change = (config: TomlTable): void => {
      Object.assign(section(config, 'tls'), { certificate: 'tls/other.pem', private_key: 'tls/other.key' });
    };
    const predicted = new Set(await this.#untrusting(change));
    await this.#reconfigure(change);
    const cutOff = await this.#unreachable();
    const missed = cutOff.filter((name) => !predicted.has(name));
    if (missed.length > 0) this.#report(`not predicted to be cut off: ${missed.join()}`);
    this.#counts.cutOff = cutOff.length;
  }

  /** Agents that `check --fleet` names and that are still in use. */
  async #untrusting(change: (config: TomlTable) => void): Promise<readonly string[]> {
    const { dir } = this.#estuary;
    const config = parse(readFileSync(join(dir, 'est.toml'), 'utf8'));
    change(config);
    writeFileSync(join(dir, 'next.toml'), stringify(config));
    let out = '';
    const files = ['--config', join(dir, 'next.toml'), '--against', join(dir, 'est.toml')];
    await runCommand({ name: 'estuary', commands: COMMANDS }, ['check', '--fleet', ...files, '--json'], {
      env: process.env,
      out: (text) => void (out += textOf(text)),
      err: (text) => this.#report(textOf(text)),
      now: Date.now,
      signals: { pass: () => undefined, release: () => undefined },
    });
    const { untrusting } = JSON.parse(out) as { untrusting: readonly { subject: string }[] };
    const names = new Set(untrusting.map(({ subject }) => subject.replace('CN=', '')));
    return this.#agents.filter(({ name, kind }) => names.has(name) && !SCRAPPED.includes(kind)).map(({ name }) => name);
  }

  /** Agents with a certificate that do not trust the server any more. What expired long ago is in no list. */
  async #unreachable(): Promise<readonly string[]> {
    const names: string[] = [];
    const oldest = this.#clock.time - FORGET * this.#options.lifetime * DAY;
    for (const agent of this.#agents) {
      const { notAfter = 0 } = agent.held.at(-1) ?? {};
      if (!agent.isOn || agent.world.live === undefined || notAfter < oldest) continue;
      const error = await this.#step(agent, 'renew');
      if (error?.code === 'SERVER_UNTRUSTED') names.push(agent.name);
    }
    return names;
  }
}

function newServerCertificate(dir: string, name: string, by: string): void {
  newKey(dir, name);
  const extensions = [
    'subjectAltName=DNS:localhost',
    'keyUsage=critical,digitalSignature',
    'extendedKeyUsage=serverAuth',
  ];
  certify(dir, name, { subject: '/CN=localhost', key: name, by, extensions });
  openssl(['verify', '-CAfile', join(dir, `${by}.pem`), join(dir, `${name}.pem`)]);
}

const serialOf = ({ certificate }: ClientIdentity): string =>
  new X509Certificate(certificate).serialNumber.toLowerCase();

/** What a request came to. */
interface Seen {
  readonly identity: ClientIdentity | undefined;
  readonly issued?: Certificate | 'queued';
  readonly error?: ClientError;
}

/** The client's connection to the server, with a look at what comes back. */
class SeenServer implements EstOperations {
  readonly #server: EstServer;
  readonly #note: (seen: Seen) => void;
  #identity: ClientIdentity | undefined;

  constructor(
    [settings, trust, identity]: ConstructorParameters<typeof EstServer>,
    note: (seen: Seen) => void,
    open: EstServer[],
  ) {
    this.#server = new EstServer(settings, trust, identity);
    this.#note = note;
    this.#identity = identity;
    open.push(this.#server);
  }

  get base(): URL {
    return this.#server.base;
  }

  get serverCertificate(): Buffer | undefined {
    return this.#server.serverCertificate;
  }

  use(trust: ServerTrust, identity: ClientIdentity | undefined): void {
    this.#identity = identity;
    this.#server.use(trust, identity);
  }

  close(): void {
    this.#server.close();
  }

  caCertificates = (): ReturnType<EstServer['caCertificates']> => this.#seen(this.#server.caCertificates());
  csrAttributes = (authenticate?: boolean): ReturnType<EstServer['csrAttributes']> =>
    this.#seen(this.#server.csrAttributes(authenticate));
  renewalInfo = (id: string): ReturnType<EstServer['renewalInfo']> => this.#seen(this.#server.renewalInfo(id));
  enroll = (...request: Parameters<EstServer['enroll']>): ReturnType<EstServer['enroll']> =>
    this.#seen(this.#server.enroll(...request), (answer) => ({
      issued: answer.kind === 'issued' ? answer.certificate : 'queued',
    }));

  async #seen<Answer>(
    answer: Promise<Answer>,
    what: (answer: Answer) => Pick<Seen, 'issued'> = () => ({}),
  ): Promise<Answer> {
    const identity = this.#identity;
    const got = await answer.catch((error: unknown) => {
      if (error instanceof ClientError) this.#note({ identity, error });
      throw error;
    });
    this.#note({ identity, ...what(got) });
    return got;
  }
}
