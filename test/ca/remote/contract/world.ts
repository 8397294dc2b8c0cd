/** A server's part between a request and its CA, in the test's process: it can be killed, started again and doubled, and its clock is the test's. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { createRouter } from '../../../../src/ca/create-router.ts';
import type { OtpIdentity } from '../../../../src/auth/identity.ts';
import type { Ca, CaRouter } from '../../../../src/ca/router.ts';
import { loadConfigOnly } from '../../../../src/config/load.ts';
import type { Material } from '../../../../src/config/material/material.ts';
import { readMaterial } from '../../../../src/config/material/load-material.ts';
import type { Config } from '../../../../src/config/schema.ts';
import type { Enrollment } from '../../../../src/enrollment/enrollment.ts';
import { reconcile } from '../../../../src/enrollment/reconcile.ts';
import { EstuaryError } from '../../../../src/errors.ts';
import { createLogger } from '../../../../src/log.ts';
import { encodePem } from '../../../../src/pki/der/pem.ts';
import { OID } from '../../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../../src/pki/x509/certificate.ts';
import { FairLimiter } from '../../../../src/process/fair-limiter.ts';
import { allRows } from '../../../../src/store/page.ts';
import { openStore } from '../../../../src/store/sqlite/open.ts';
import type { Store } from '../../../../src/store/store.ts';
import { dns, extKeyUsage, keyUsage, makeCertificate, subjectAltName } from '../../../support/certificates.ts';
import { section } from '../../../support/estuary.ts';
import { makeKey, simpleCsr, type TestKey } from '../../../support/csr.ts';
import { otpRow } from '../../../store/rows.ts';
import { makeQuickstart } from '../../../support/quickstart.ts';
import { ASKED_PROFILE } from '../../../support/dogtag-stand-in/index.ts';
import { otpIdentity, pipeline, received } from '../../../enrollment/support.ts';
import { acmeStandIn } from './acme.ts';
import { commandStandIn } from './command.ts';
import { dogtagStandIn } from './dogtag.ts';
import { estStandIn } from './est.ts';
import { makePki, type StandIn } from './stand-in.ts';
import { removeFolder } from '../../../support/folders.ts';

const log = createLogger('silent');
const DAY = 86_400_000;
const LABELS = ['est', 'acme', 'command', 'command-without-poll', 'dogtag'] as const;
export type RemoteLabel = (typeof LABELS)[number];

/** Opens the store of the world. */
export type OpenStore = (options: {
  readonly path: string;
  readonly auditFile: string;
  readonly node: string;
  readonly now: () => number;
}) => Promise<Store>;

export interface Device {
  readonly name: string;
  readonly key: TestKey;
  readonly csr: Buffer;
  readonly otp: OtpIdentity;
  readonly requestIds: string[];
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly retryAfter?: number | undefined;
  readonly certificate?: Buffer;
}

export class World {
  readonly store: Store;
  readonly upstreams: Readonly<Record<RemoteLabel, StandIn>>;
  readonly #time: { now: number };
  readonly #dir: string;
  readonly #config: Config;
  readonly #material: Pick<Material, 'cas' | 'labels'>;
  #devices = 0;

  private constructor(
    dir: string,
    time: { now: number },
    store: Store,
    upstreams: World['upstreams'],
    config: Config,
    material: Material,
  ) {
    this.#time = time;
    this.#dir = dir;
    this.store = store;
    this.upstreams = upstreams;
    this.#config = config;
    this.#material = material;
  }

  static async start(open: OpenStore = openStore): Promise<World> {
    const dir = mkdtempSync(join(tmpdir(), 'estuary-remote-'));
    const file = (name: string): string => join(dir, name);
    const time = { now: Date.now() };
    const now = (): number => time.now;
    await makeQuickstart(dir);
    const pki = await makePki('Upstream', Date.now());
    const tls = await makeCertificate({
      subject: 'CN=localhost',
      issuer: pki.root,
      extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
    });
    writeFileSync(file('root.pem'), encodePem('CERTIFICATE', pki.root.der));
    writeFileSync(file('password'), 'secret', { mode: 0o600 });
    const est = await estStandIn(tls, pki, now);
    const acme = await acmeStandIn(tls, pki, now);
    const command = await commandStandIn(dir, pki, now);
    const dogtag = await dogtagStandIn(now);
    const upstreams = { est, acme, command, 'command-without-poll': command, dogtag };
    const program = (kind: string): string[] => [command.program, kind];
    const trust = { tls_trust_anchors: 'root.pem', timeout: 5 };
    const programs = { issue: program('issue'), revoke: program('revoke'), timeout: 5 };
    const settings = dogtag.dogtag.settings({ timeout: 5 });
    const tables: Readonly<Record<RemoteLabel, TomlTable>> = {
      est: { driver: 'est', est: { url: est.url, username: 'ra', password_file: 'password', ...trust } },
      acme: {
        driver: 'acme',
        acme: { directory: acme.url, account_key_file: 'account.key', dns_hook: ['/bin/true'], ...trust },
      },
      command: { driver: 'command', command: { ...programs, poll: program('poll') } },
      'command-without-poll': { driver: 'command', command: programs },
      dogtag: { driver: 'dogtag', dogtag: { ...settings, urls: [...settings.urls], kra_urls: [] } },
    };
    const asked = Object.fromEntries(Object.entries(ASKED_PROFILE).map(([key, values]) => [key, [...values]]));
    const toml = parse(readFileSync(file('est.toml'), 'utf8'));
    section(toml, 'est')['retry_after'] = 1;
    const cas = toml['ca'];
    if (!Array.isArray(cas)) throw new TypeError('no [[ca]]');
    toml['ca'] = [
      ...cas,
      ...LABELS.map((label): TomlTable => ({
        label,
        ...(label === 'dogtag' ? {} : { upstream_trust_anchors: 'root.pem' }),
        profile: {
          key_types: ['ec:P-256'],
          san: { dns: ['.*'] },
          ...asked,
          ...(label === 'dogtag' ? { validity_days: 30, max_validity_days: 90 } : {}),
        },
        ...tables[label],
      })),
    ];
    writeFileSync(file('est.toml'), stringify(toml));
    const { config } = await loadConfigOnly(file('est.toml'), {});
    const material = await readMaterial(config);
    const store = await open({ path: file('est.db'), auditFile: file('audit.log'), node: 'node-1', now });
    return new World(dir, time, store, upstreams, config, material);
  }

  /** Milliseconds, virtual. */
  get clock(): number {
    return this.#time.now;
  }

  set clock(now: number) {
    this.#time.now = now;
  }

  async device(): Promise<Device> {
    const name = `device-${++this.#devices}.example`;
    const key = makeKey();
    const row = otpRow({ max_uses: 10, expires_at: this.clock + 100 * DAY });
    await this.store.insertOtp(row, []);
    const { id } = row;
    const otp = otpIdentity({ otp_id: id, requester: `otp:${id}`, display: name, client_id: name });
    return { name, key, csr: simpleCsr(key, name, [name]), otp, requestIds: [] };
  }

  router(): CaRouter {
    return createRouter(this.#config, this.#material, {
      now: () => this.clock,
      env: process.env,
      log,
      makeMutex: (_name, queue) => new FairLimiter({ concurrency: 1, queue }),
      store: this.store,
    });
  }

  pipeline(store: Store, otp: OtpIdentity): Enrollment {
    return pipeline({ store, identity: otp, now: () => this.clock, retryWindow: DAY });
  }

  /** What the store has of a device's requests. */
  async recordsOf({ requestIds }: Device): Promise<readonly { readonly type: string; readonly detail: string }[]> {
    const records: { type: string; detail: string }[] = [];
    // Of a busy store, a page may be empty although the list continues.
    for (const request_id of requestIds)
      for await (const { type, detail } of allRows((page) => this.store.listAudit({ ...page, request_id })))
        records.push({ type, detail: detail ?? '' });
    return records;
  }

  async isRecorded(der: Buffer): Promise<boolean> {
    const found = await this.store.getCertificates(parseCertificate(der).serialNumber);
    return found.some((row) => row.der.equals(der));
  }

  async stop(): Promise<void> {
    for (const upstream of new Set(Object.values(this.upstreams))) await upstream.stop();
    await this.store.close();
    removeFolder(this.#dir);
  }
}

interface Sent {
  readonly operation?: 'simpleenroll' | 'serverkeygen';
  readonly ca?: Ca;
}

/** One process: a router with its drivers, and the pipeline. */
export class Node {
  readonly ca: Ca;
  /** Names of the store's calls, in order. */
  readonly calls: string[] = [];
  /** Called after each call of the store. */
  afterCall: (index: number) => void = () => undefined;
  readonly #world: World;
  readonly #store: Store;
  readonly #death = Promise.withResolvers<'killed'>();
  #isDead = false;

  private constructor(world: World, label: string) {
    const ca = world.router().issuers.find((issuer) => issuer.label === label);
    if (ca === undefined) throw new Error(`no CA ${label}`);
    this.ca = ca;
    this.#world = world;
    this.#store = this.#watched(world.store);
  }

  /** @param first it owns the store, and closes what a killed process left */
  static async start(world: World, label: RemoteLabel | 'devices', first = true): Promise<Node> {
    const node = new Node(world, label);
    await node.ca.driver.start?.();
    if (first) await reconcile(world.store, log);
    return node;
  }

  isDead(): boolean {
    return this.#isDead;
  }

  /** After `kill`, nothing reaches the store. */
  #watched(store: Store): Store {
    return new Proxy(store, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]): Promise<unknown> => {
          const index = this.calls.push(String(property)) - 1;
          const never = new Promise(() => undefined);
          if (this.isDead()) return never;
          const result: unknown = await Reflect.apply(value, target, args);
          this.afterCall(index);
          return this.isDead() ? never : result;
        };
      },
    });
  }

  async send(device: Device, { operation = 'simpleenroll', ca = this.ca }: Sent = {}): Promise<Answered | 'killed'> {
    const requestId = randomUUID();
    device.requestIds.push(requestId);
    const request = received(ca, device.csr, { requestId, operation });
    const answer = this.#world
      .pipeline(this.#store, device.otp)
      .enroll(request)
      .then(
        ({ outcome }): Answered =>
          outcome.status === 'issued'
            ? { status: 200, text: '', certificate: outcome.certificate }
            : { status: 202, text: '' },
        (error: unknown): Answered => {
          if (!(error instanceof EstuaryError)) throw error;
          return { status: error.status, text: error.message, retryAfter: error.retryAfter };
        },
      );
    return Promise.race([answer, this.#death.promise]);
  }

  /** Like `kill -9`: no further call reaches the store, and no response the device. */
  kill(): void {
    this.#isDead = true;
    this.#death.resolve('killed');
  }

  async close(): Promise<void> {
    await this.ca.driver.close?.();
  }
}
