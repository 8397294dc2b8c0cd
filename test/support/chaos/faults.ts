/** Faults: each is caused, lasts, and is repaired as an administrator would. */
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultyLog, LogFile, LogPipe } from '../faulty-log.ts';
import type { MixedLoad } from '../mixed-load/load.ts';
import { processesOf, type ServiceProcess } from '../service-processes.ts';
import type { Random } from '../random.ts';
import type { ServerProcess } from '../server-process.ts';
import type { ChaosSetting } from './setting.ts';
import { pause, until } from '../until.ts';

export interface Chaos {
  readonly setting: ChaosSetting;
  readonly load: MixedLoad;
  readonly random: Random;
}

export type Fault = (chaos: Chaos) => Promise<void>;

/** Any time from at once to so many milliseconds. */
const randomPause = ({ random }: Chaos, longest: number): Promise<void> => pause(random.between(0, longest));

const killing =
  (kind: ServiceProcess): Fault =>
  async (chaos) => {
    await randomPause(chaos, 500);
    const { pid: server } = chaos.setting.estuary.server;
    // One that missed its deadline is being replaced.
    const pid = await until(`a ${kind}`, () => chaos.random.pick(processesOf(server, kind)));
    process.kill(pid, 'SIGKILL');
  };

async function restartAfterKill({ setting: { estuary } }: Chaos): Promise<void> {
  estuary.server.signal('SIGKILL');
  await estuary.server.exited;
  await estuary.restart();
}

/** Does something while no thread of the server is inside a system call. */
async function whileStopped(server: ServerProcess, act: () => void): Promise<void> {
  const tasks = `/proc/${server.pid}/task`;
  const isStopped = (task: string): boolean => / T /.test(readFileSync(`${tasks}/${task}/stat`, 'utf8'));
  server.signal('SIGSTOP');
  await until('each thread has stopped', () => readdirSync(tasks).every(isStopped));
  act();
  server.signal('SIGCONT');
}

/** What is right at one time is not at another: certificates are not valid yet, tickets and passwords are no longer. */
const WRONG_TIME = [400, 401, 403, 409];

const jumping =
  (offset: string): Fault =>
  async (chaos) => {
    const { load, setting } = chaos;
    for (const status of WRONG_TIME) load.alsoRight.add(status);
    setting.setClock(offset);
    await pause(2000);
    await randomPause(chaos, 2000);
    setting.setClock('+0');
    // The server looks at the file once a second, and answers of before are still under way.
    await pause(3000);
    load.alsoRight.clear();
  };

/** Afterwards the log goes on. */
async function failingLog(chaos: Chaos, log: FaultyLog, begin: () => void): Promise<void> {
  begin();
  await pause(1500);
  await randomPause(chaos, 2000);
  const next = once(log.lines, 'data', { signal: AbortSignal.timeout(60_000) });
  log.repair();
  await next;
}

const failingPipe =
  (begin: (pipe: LogPipe) => void): Fault =>
  (chaos) => {
    const { pipe } = chaos.setting.log;
    return failingLog(chaos, pipe, () => begin(pipe));
  };

async function restartWithLog({ setting: { estuary, log } }: Chaos, next: LogFile | LogPipe): Promise<void> {
  await estuary.server.stop();
  log.current = next;
  await estuary.restart();
}

/** Files that a SIGHUP must not bring into force. */
const BROKEN: readonly ((good: string) => string)[] = [
  () => '',
  () => 'this is [not toml',
  (good) => good.slice(0, good.length / 2),
  (good) => `unknown_key = 1\n${good}`,
  (good) => good.replace('tls/server.pem', 'tls/no-such-file.pem'),
  (good) => good.replace('tls/server.pem', 'est.toml'),
];

async function sighups(chaos: Chaos): Promise<void> {
  const {
    random,
    setting: { estuary },
  } = chaos;
  const file = join(estuary.dir, 'est.toml');
  const good = readFileSync(file, 'utf8');
  try {
    for (let n = 0; n < 25; n++) {
      writeFileSync(file, random.pick(BROKEN)?.(good) ?? '');
      estuary.server.signal('SIGHUP');
      await pause(random.between(0, 120));
    }
  } finally {
    writeFileSync(file, good);
    const reloads = (): number => estuary.server.log().filter(({ msg }) => msg === 'configuration reloaded').length;
    const before = reloads();
    estuary.server.signal('SIGHUP');
    // The next fault may not meet this reload: one that fails is not repeated.
    await until('the good file is in force', () => reloads() > before);
  }
}

export const FAULTS: Readonly<Record<string, Fault>> = {
  'kill -9 of the server': async (chaos) => {
    await randomPause(chaos, 500);
    await restartAfterKill(chaos);
  },
  'kill -9 of an HSM child': killing('HSM child'),
  'kill -9 of a GSSAPI child': killing('GSSAPI child'),
  'kill -9 of the KDC': async (chaos) => {
    await chaos.setting.kdc.down();
    await randomPause(chaos, 2000);
    await chaos.setting.kdc.up();
  },
  'kill -9 of gssproxy': async (chaos) => {
    await chaos.setting.gssproxy.kill();
    await randomPause(chaos, 2000);
    await chaos.setting.gssproxy.up();
  },
  'the CA elsewhere is gone': async (chaos) => {
    const { dogtag, dogtagPort } = chaos.setting;
    await dogtag.server.close();
    await randomPause(chaos, 3000);
    await dogtag.server.listen(dogtagPort);
  },
  'the disk is full': async (chaos) => {
    chaos.setting.disk.fill();
    await pause(500);
    await randomPause(chaos, 2500);
    chaos.setting.disk.empty();
  },
  'the disk can only be read': async (chaos) => {
    const { disk, estuary } = chaos.setting;
    // Linux 6.18 reports success for a sync that is in progress when ext4 aborts, and loses its data (9 of 60 times with a bare program).
    await whileStopped(estuary.server, () => disk.breakDown());
    await pause(500);
    await randomPause(chaos, 1500);
    // No program of the service may have a file open there.
    await estuary.server.stop();
    disk.repair();
    await estuary.restart();
  },
  'the clock jumps a day ahead': jumping('+1d'),
  'the clock jumps a day back': jumping('-1d'),
  'SIGHUPs with broken files': sighups,
  'nobody reads the log': failingPipe((pipe) => pipe.block()),
  'the log is read slowly': failingPipe((pipe) => pipe.slow()),
  'the reader of the log is gone': failingPipe((pipe) => pipe.close()),
  'the disk of the log is full': async (chaos) => {
    const { pipe, file } = chaos.setting.log;
    await restartWithLog(chaos, file);
    await failingLog(chaos, file, () => file.fill());
    await restartWithLog(chaos, pipe);
  },
};
