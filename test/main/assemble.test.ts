/** `assemble` makes every part and starts nothing; a lifecycle starts, reloads and stops the parts. */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { loadConfigOnly } from '../../src/config/load.ts';
import { readMaterial } from '../../src/config/material/load-material.ts';
import type { Config } from '../../src/config/schema.ts';
import { createLogger } from '../../src/log.ts';
import { assemble, type Assembly } from '../../src/main/assemble.ts';
import { Lifecycle } from '../../src/main/lifecycle.ts';
import { Metrics } from '../../src/metrics.ts';
import { FairLimiter } from '../../src/process/fair-limiter.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { TicketSecret } from '../../src/http/ticket-secret.ts';
import { caSection, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { freePorts } from '../support/ports.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { removeFolder } from '../support/folders.ts';

const metrics = new Metrics();
let dir: string;
let made: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'estuary-assemble-'));
  await makeQuickstart(dir);
  made = readFileSync(join(dir, 'est.toml'), 'utf8');
});
beforeEach(() => writeFileSync(join(dir, 'est.toml'), made));
afterAll(() => removeFolder(dir));

async function configured(change: (config: TomlTable) => void): Promise<Config> {
  const config = parse(made);
  const [est = 0, admin = 0] = await freePorts(2);
  Object.assign(section(config, 'est'), { port: est });
  Object.assign(section(config, 'admin'), { port: admin });
  Object.assign(section(config, 'log'), { level: 'fatal' });
  change(config);
  writeFileSync(join(dir, 'est.toml'), stringify(config));
  return (await loadConfigOnly(join(dir, 'est.toml'), {})).config;
}

async function openStoreOf(config: Config): Promise<Store> {
  const store = await openStore({
    path: config.store.path,
    auditFile: config.audit.file,
    node: 'test',
    lookupKey: { configured: undefined, required: config.otp.enabled },
  });
  onTestFinished(() => store.close());
  return store;
}

async function assembleOver(config: Config, store: Store): Promise<Assembly> {
  return assemble(config, await readMaterial(config), {
    log: createLogger(config.log.level),
    metrics,
    store,
    instance: 'test',
    clock: { now: Date.now },
    ticketSecret: TicketSecret.random(),
    isOnDuty: () => true,
    makeMutex: (_name, queueLimit) => new FairLimiter({ concurrency: 1, queue: queueLimit }),
    lastReload: () => undefined,
    faults: () => [],
    reload: () => Promise.resolve({ ok: false, reason: 'not here' }),
  });
}

/** Asynchronous resources that keep something of the system open until they are closed. */
const KINDS = new Set(['Timeout', 'TCPSERVERWRAP', 'TCPWRAP', 'PIPEWRAP', 'PROCESSWRAP', 'WORKER', 'MESSAGEPORT']);

/** Where this project's code created a resource, for the message of a failure. */
function creator(): string {
  const line = new Error().stack?.split('\n').find((each) => each.includes('/src/'));
  return line === undefined ? '' : ` ${line.trim()}`;
}

/** What the code of a test opens and has not closed. Other code of the process does not count, such as the test runner's timers. */
class Opened {
  readonly #context = new AsyncLocalStorage<true>();
  readonly #open = new Map<number, string>();

  constructor() {
    const hook = createHook({
      init: (id, kind) => {
        if (KINDS.has(kind) && this.#context.getStore() === true) this.#open.set(id, `${kind}${creator()}`);
      },
      destroy: (id) => this.#open.delete(id),
    }).enable();
    onTestFinished(() => void hook.disable());
  }

  by<T>(run: () => Promise<T>): Promise<T> {
    return this.#context.run(true, run);
  }

  get kinds(): readonly string[] {
    return [...this.#open.values()];
  }
}

const ABSENT_TOKEN = {
  driver: 'pkcs11',
  pkcs11: { module: '/no/such/module.so', token_label: 'est', key_label: 'ca', pin_file: 'admin/token' },
};

const BACKGROUND = (config: TomlTable): void => {
  Object.assign(section(config, 'publication'), { enabled: true, port: 0, base_url: 'http://pki.example' });
  Object.assign(section(config, 'gssapi'), {
    enabled: true,
    service_principal: 'HTTP/localhost@EXAMPLE.TEST',
    keytab: 'no.keytab',
    default_template: 'CN={principal}',
  });
};

describe('assemble', () => {
  test('makes listeners, a token, a CA elsewhere, Kerberos and publication without socket, timer or process', async () => {
    writeFileSync(join(dir, 'no.keytab'), Buffer.from('0502', 'hex'));
    const config = await configured((toml) => {
      BACKGROUND(toml);
      section(toml, 'publication')['port'] = 1;
      Object.assign(caSection(toml, 0), ABSENT_TOKEN, { file: undefined });
      const lab = caSection(toml, 1);
      const dogtag = {
        urls: ['https://127.0.0.1:1'],
        trust_anchors: 'ca/root.pem',
        client_certificate: 'admin/client.pem',
        client_key: 'admin/client.key',
        profile: 'caServerCert',
        cmc_profile: 'caServerCert',
      };
      delete lab['file'];
      delete lab['certificate'];
      delete lab['chain'];
      delete caSection(toml, 0)['file'];
      Object.assign(lab, { driver: 'dogtag', dogtag });
    });
    const store = await openStoreOf(config);
    const opened = new Opened();
    const { parts } = await opened.by(() => assembleOver(config, store));
    expect(parts.length).toBeGreaterThan(5);
    expect(opened.kinds).toEqual([]);
  });

  test('what has started answers, and nothing is left of it once it has stopped', async () => {
    const config = await configured(() => undefined);
    const store = await openStoreOf(config);
    const opened = new Opened();
    const service = await opened.by(async () => {
      const made = new Lifecycle(await assembleOver(config, store), { log: createLogger('fatal') });
      await made.start();
      return made;
    });
    expect(opened.kinds.some((kind) => kind.startsWith('TCPSERVERWRAP'))).toBe(true);
    const ca = readFileSync(join(dir, 'ca/root.pem'), 'latin1');
    const answer = await call({ port: config.est.port, tls: { ca }, method: 'GET', path: '/.well-known/est/cacerts' });
    expect(answer.status).toBe(200);
    await service.stop();
    await expect.poll(() => opened.kinds).toEqual([]);
  });

  test('a part that cannot start takes down those before it', async () => {
    const config = await configured(() => undefined);
    const store = await openStoreOf(config);
    const opened = new Opened();
    const start = async (): Promise<void> => {
      const assembly = await assembleOver(config, store);
      const broken = { start: () => Promise.reject(new Error('broken')) };
      await new Lifecycle({ ...assembly, parts: [...assembly.parts, broken] }, { log: createLogger('fatal') }).start();
    };
    await expect(opened.by(start)).rejects.toThrow('broken');
    await expect.poll(() => opened.kinds).toEqual([]);
  });

  test.each(['est', 'admin', 'publication'] as const)(
    'the port of the %s listener is taken: no part starts, no listener serves, and all is closed',
    async (name) => {
      const config = await configured((toml) => {
        BACKGROUND(toml);
        delete toml['gssapi'];
      });
      const store = await openStoreOf(config);
      const other = createServer();
      await once(other.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void other.close());
      const address = other.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      const taken = { ...config, [name]: { ...config[name], host: '127.0.0.1', port } };
      const assembly = await assembleOver(taken, store);
      const started: string[] = [];
      const parts = assembly.parts.map((part, index) => ({
        bind: () => part.bind?.() ?? Promise.resolve(),
        start: () => void started.push(`part ${index}`),
        stop: () => part.stop?.(),
      }));
      const opened = new Opened();
      const lifecycle = new Lifecycle({ ...assembly, parts }, { log: createLogger('fatal') });
      await expect(opened.by(() => lifecycle.start(() => Promise.resolve(void started.push('begin'))))).rejects.toThrow(
        `the ${name} listener cannot listen on 127.0.0.1, port ${port} (listen EADDRINUSE: address already in use ` +
          `127.0.0.1:${port}). Another program uses the port: stop it, or change ${name}.port.`,
      );
      expect(started).toEqual([]);
      await expect.poll(() => opened.kinds).toEqual([]);
    },
  );
});
