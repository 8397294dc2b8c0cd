#!/usr/bin/env node
/**
 * The command, which takes signals from its first line on. On a Node older than Estuary needs, it hands over to the runtime that npm has installed beside it:
 * same arguments, standard streams, signals and exit code. So nothing but Node's own modules may be imported here
 * before that is settled.
 */
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import type { Signal, Signals } from './main/signals.ts';

const NEEDED = 26;
/** What a runtime tells its launcher: from now on it takes signals. */
const TAKES_SIGNALS = 'takes signals';

// Before anything else: a SIGHUP that nobody handles ends the process, and systemd takes that for a clean exit.
const signals = holdSignals(['SIGTERM', 'SIGINT', 'SIGHUP']);
if (Number.parseInt(process.versions.node, 10) >= NEEDED) await run();
else handOver();

async function run(): Promise<void> {
  // Set by handOver: this runtime lives and dies with its launcher.
  if (process.env['ESTUARY_LAUNCHED'] !== undefined && process.channel !== undefined) {
    delete process.env['ESTUARY_LAUNCHED'];
    // A launcher that was killed cannot pass that on; without this its ports would stay taken.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.send?.(TAKES_SIGNALS);
    process.channel.unref();
  }
  const { main } = await import('./main/cli.ts');
  await main(process.argv.slice(2), signals);
}

/** Takes the signals at once, and keeps them until somebody knows what to do with them. */
function holdSignals(names: readonly Signal[]): Signals {
  const held: Signal[] = [];
  let taker: ((signal: Signal) => void) | undefined;
  const take = (signal: NodeJS.Signals): void => {
    const name = names.find((one) => one === signal);
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

function handOver(): void {
  const runtime = findRuntime();
  if (runtime === undefined) {
    process.stderr.write(
      `estuary needs Node.js ${NEEDED} or newer; this is ${process.versions.node}, and no newer one was found in node_modules/.bin ` +
        `(run "npm ci" without --omit=optional, or install Node.js ${NEEDED})\n`,
    );
    process.exitCode = 1;
    return;
  }
  const child = spawn(runtime, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ESTUARY_LAUNCHED: '1' },
  });
  child.once('message', () => signals.pass((signal) => child.kill(signal)));
  child.on('error', (error) => {
    process.stderr.write(`estuary cannot run ${runtime}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    signals.release();
    process.kill(process.pid, signal);
  });
}

/** The newer runtime that npm has put beside this package, or beside the one that depends on it. */
function findRuntime(): string | undefined {
  const self = realpathSync(process.execPath);
  for (let folder = dirname(dirname(fileURLToPath(import.meta.url))); ; folder = dirname(folder)) {
    const runtime = join(folder, 'node_modules', '.bin', 'node');
    if (existsSync(runtime) && realpathSync(runtime) !== self) return runtime;
    if (dirname(folder) === folder) return undefined;
  }
}
