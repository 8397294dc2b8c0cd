#!/usr/bin/env node
/**
 * Program entry. It holds signals from its first statement on, since Node's default action for SIGHUP ends the process,
 * and therefore imports nothing before. On an older Node.js it starts the newer one that npm installed with it, with
 * the same arguments, standard streams, signals and exit code. Until that is decided, it imports only Node's own
 * modules.
 */
import type { Signal, Signals } from './main/signals.ts';

const NEEDED = 26;

const signals = holdSignals(['SIGTERM', 'SIGINT', 'SIGHUP']);
// Rotations of logs send them. The default action of one opens a debugger, to which every local user may connect; that
// of the other ends the process.
for (const name of ['SIGUSR1', 'SIGUSR2'] as const) process.on(name, () => undefined);
// A terminal or reader that is gone must not end the process.
process.stderr.on('error', () => undefined);
if (Number.parseInt(process.versions.node, 10) >= NEEDED) await run();
else await handOver();

async function run(): Promise<void> {
  // Before the pool starts. Half of its threads may look up host names (process/shared-lookups.ts).
  process.env['UV_THREADPOOL_SIZE'] ??= '16';
  // Set by the launcher: this process ends with its launcher.
  if (process.env['ESTUARY_LAUNCHED'] !== undefined && process.channel !== undefined) {
    delete process.env['ESTUARY_LAUNCHED'];
    // A killed launcher cannot forward the signal; without this its ports would stay in use.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.send?.('takes signals');
    process.on('message', (message) => {
      const name = message === 'SIGUSR2' ? message : 'SIGUSR1';
      process.emit(name, name);
    });
    process.channel.unref();
  }
  const { main } = await import('./main/cli.ts');
  await main(process.argv.slice(2), signals);
}

/** Holds the signals until `pass` sets a receiver. */
function holdSignals(names: readonly Signal[]): Signals {
  const held: Signal[] = [];
  let taker: ((signal: Signal) => void) | undefined;
  const take = (signal: NodeJS.Signals): void => {
    const name = names.find((name) => name === signal);
    if (name === undefined) return;
    if (taker === undefined) held.push(name);
    else taker(name);
  };
  for (const name of names) process.on(name, take);
  return {
    pass(to) {
      taker = to;
      for (const name of held.splice(0)) to(name);
    },
    release() {
      for (const name of names) process.off(name, take);
      const [first] = held;
      if (first !== undefined) process.kill(process.pid, first);
    },
  };
}

async function handOver(): Promise<void> {
  const { spawn } = await import('node:child_process');
  const runtime = await findRuntime();
  if (runtime === undefined) {
    process.stderr.write(
      `estuary needs Node.js ${NEEDED} or newer; this is ${process.versions.node}, and no newer one was found in node_modules/.bin ` +
        `(run "npm ci" without --omit=optional, or install Node.js ${NEEDED})\n`,
    );
    process.exitCode = 1;
    return;
  }
  launch(spawn, runtime);
}

type Spawn = (typeof import('node:child_process'))['spawn'];

/** @param early a signal that ended an earlier launch before it could handle it */
function launch(spawn: Spawn, runtime: string, early?: Signal): void {
  const child = spawn(runtime, ['--disable-sigusr1', ...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ESTUARY_LAUNCHED: '1' },
  });
  let handlesSignals = false;
  child.once('message', () => {
    handlesSignals = true;
    if (early !== undefined) child.kill(early);
    signals.pass((signal) => child.kill(signal));
    // As a message: with --disable-sigusr1, Node blocks the signal.
    for (const name of ['SIGUSR1', 'SIGUSR2'] as const) process.on(name, () => child.send(name));
  });
  child.on('error', (error) => {
    process.stderr.write(`estuary cannot run ${runtime}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    // A terminal signals the whole process group. The command decides about signals, so start it again to handle this
    // one.
    if (!handlesSignals && (signal === 'SIGHUP' || signal === 'SIGTERM' || signal === 'SIGINT')) {
      launch(spawn, runtime, signal);
      return;
    }
    signals.release();
    process.kill(process.pid, signal);
  });
}

/** The newer runtime that npm installed with this package, or with a package that depends on it. */
async function findRuntime(): Promise<string | undefined> {
  const { existsSync, realpathSync } = await import('node:fs');
  const { dirname, join } = await import('node:path');
  const { fileURLToPath } = await import('node:url');
  const self = realpathSync(process.execPath);
  for (let folder = dirname(dirname(fileURLToPath(import.meta.url))); ; folder = dirname(folder)) {
    const runtime = join(folder, 'node_modules', '.bin', 'node');
    if (existsSync(runtime) && realpathSync(runtime) !== self) return runtime;
    if (dirname(folder) === folder) return undefined;
  }
}
