/** A service with every dependency that can fail: a disk, an HSM, a KDC, a gssproxy, a remote CA, a clock, a log. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { DogtagStandIn } from '../dogtag-stand-in/index.ts';
import { ASKED_PROFILE } from '../dogtag-profiles.ts';
import { Estuary, section } from '../estuary.ts';
import { LogFile, LogPipe } from '../faulty-log.ts';
import { Gssproxy } from '../gssproxy.ts';
import { Kdc, SERVICE } from '../kdc.ts';
import { withKeysInHsm } from '../keys-in-hsm.ts';
import { configureMixedLoad } from '../mixed-load/configure.ts';
import { LIBFAKETIME } from '../requires.ts';
import { softHsm, type SoftHsm } from '../softhsm.ts';
import { Disk } from './disk.ts';
import { removeFolder } from '../folders.ts';

/** How long a start may take, in milliseconds: with an HSM, on a busy machine. */
const START = 300_000;

/** Where the server's log goes; another one from the next start. */
class ChaosLog {
  readonly pipe = new LogPipe();
  readonly file = new LogFile();
  current: LogPipe | LogFile = this.pipe;

  remove(): void {
    this.pipe.remove();
    this.file.remove();
  }
}

export class ChaosSetting {
  readonly estuary: Estuary;
  readonly kdc: Kdc;
  readonly gssproxy: Gssproxy;
  readonly dogtag: DogtagStandIn;
  readonly dogtagPort: number;
  readonly disk: Disk;
  readonly log: ChaosLog;
  readonly #hsm: SoftHsm;
  readonly #clock: string;
  readonly #folder: string;

  private constructor(parts: {
    readonly estuary: Estuary;
    readonly kdc: Kdc;
    readonly gssproxy: Gssproxy;
    readonly dogtag: DogtagStandIn;
    readonly disk: Disk;
    readonly log: ChaosLog;
    readonly hsm: SoftHsm;
    readonly clock: string;
    readonly folder: string;
  }) {
    this.estuary = parts.estuary;
    this.kdc = parts.kdc;
    this.gssproxy = parts.gssproxy;
    this.dogtag = parts.dogtag;
    this.dogtagPort = parts.dogtag.server.port;
    this.disk = parts.disk;
    this.log = parts.log;
    this.#hsm = parts.hsm;
    this.#clock = parts.clock;
    this.#folder = parts.folder;
  }

  /** @param mib of the disk that the store and the audit log are on */
  static async start(mib: number): Promise<ChaosSetting> {
    const folder = mkdtempSync(join(tmpdir(), 'estuary-chaos-'));
    const mounted = join(folder, 'disk');
    mkdirSync(mounted);
    const clock = join(folder, 'clock');
    writeFileSync(clock, '+0\n');
    const disk = Disk.make(join(folder, 'disk.img'), mounted, mib);
    const hsm = softHsm();
    hsm.addToken('est');
    const kdc = await Kdc.start();
    await kdc.addUser('alice');
    const gssproxy = await Gssproxy.start(kdc);
    const dogtag = await DogtagStandIn.start();
    const log = new ChaosLog();
    const options = withKeysInHsm(
      {
        listeners: ['est', 'admin', 'publication'],
        timeout: START,
        log: () => log.current,
        // A PKI of the day before yesterday: its certificates are valid whatever day the clock jumps to.
        quickstartEnv: { LD_PRELOAD: LIBFAKETIME, FAKETIME: '-3d' },
        env: {
          ...kdc.env,
          GSSPROXY_SOCKET: gssproxy.socket,
          LD_PRELOAD: LIBFAKETIME,
          FAKETIME_TIMESTAMP_FILE: clock,
          FAKETIME_CACHE_DURATION: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
        },
        configure(config) {
          configure(config, dogtag);
          Object.assign(section(config, 'store'), { path: join(mounted, 'est.db') });
          Object.assign(section(config, 'audit'), { file: join(mounted, 'audit.log') });
        },
      },
      hsm,
    );
    const estuary = await Estuary.start(options);
    return new ChaosSetting({ estuary, kdc, gssproxy, dogtag, disk, log, hsm, clock, folder });
  }

  /** @param offset as libfaketime reads it: `+1d` */
  setClock(offset: string): void {
    writeFileSync(this.#clock, `${offset}\n`);
  }

  get store(): string {
    return join(this.#folder, 'disk', 'est.db');
  }

  async stop(): Promise<void> {
    await this.estuary.stop();
    await this.dogtag.stop();
    await this.gssproxy.stop();
    await this.kdc.stop();
    this.#hsm.remove();
    this.disk.remove();
    this.log.remove();
    removeFolder(this.#folder);
  }
}

function configure(config: TomlTable, dogtag: DogtagStandIn): void {
  configureMixedLoad(config);
  // A lockout while the clock is wrong would last until the clock is there again.
  section(config, 'otp')['max_failures'] = 100;
  Object.assign(section(config, 'otp'), { failure_window: 1 });
  config['gssapi'] = { enabled: true, service_principal: SERVICE, gssproxy: true, default_template: 'CN={principal}' };
  const { urls, kra_urls, ...settings } = dogtag.settings({ timeout: 2 });
  const ca: TomlTable = {
    label: 'dogtag',
    driver: 'dogtag',
    dogtag: { ...settings, urls: [...urls], kra_urls: [...kra_urls] },
    profile: { key_usage: [...ASKED_PROFILE.key_usage], extended_key_usage: [...ASKED_PROFILE.extended_key_usage] },
  };
  config['ca'] = [...(Array.isArray(config['ca']) ? config['ca'] : []), ca];
}
