#!/usr/bin/env node
/**
 * The command. On a Node older than Estuary needs, it hands over to the runtime that npm has installed beside it:
 * same arguments, standard streams, signals and exit code. So nothing but Node's own modules may be imported here
 * before that is settled.
 */
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const NEEDED = 26;
const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

if (Number.parseInt(process.versions.node, 10) >= NEEDED) await run();
else handOver();

async function run(): Promise<void> {
  // Set by handOver: this runtime lives and dies with its launcher.
  if (process.env['ESTUARY_LAUNCHED'] !== undefined && process.channel !== undefined) {
    delete process.env['ESTUARY_LAUNCHED'];
    // A launcher that was killed cannot pass that on; without this its ports would stay taken.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.channel.unref();
  }
  const { main } = await import('./main/cli.ts');
  await main(process.argv.slice(2));
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
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`estuary cannot run ${runtime}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of FORWARDED) process.removeAllListeners(name);
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
