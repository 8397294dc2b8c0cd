/** How long the built server takes to start on a store, in turns with a new one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../test/support/root.ts';
import { startServer } from '../../../test/support/server-process.ts';
import { cpuSeconds } from './cpu.ts';

export interface Start {
  /** Until both listeners answer. */
  readonly seconds: number;
  /** Of CPU, by then. */
  readonly cpu: number;
}

const ROUNDS = 3;

/** @returns the best start on each store, so that what else runs on the machine counts as little as may be */
export async function startUps(
  folder: string,
  store: { readonly path: string; readonly auditFile: string },
): Promise<{ full: Start; empty: Start }> {
  const place = join(folder, 'service');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const quickstart = ['--no-start', '--dir', place, '--est-port', '0', '--admin-port', '0'];
  execFileSync(join(ROOT, 'scripts', 'quickstart'), quickstart, { stdio: ['ignore', 'ignore', 'pipe'] });
  const text = readFileSync(join(place, 'est.toml'), 'utf8');
  const config = (name: string, path: string, audit: string): string => {
    const file = join(place, `${name}.toml`);
    const stores = `[store]\npath = "${path}"\n\n[audit]\nfile = "${audit}"\n`;
    writeFileSync(file, `${text.replaceAll(/^\[(?:store|audit)\]\n(?:[^[\n].*\n)*/gm, '')}\n${stores}`);
    return file;
  };
  const files = {
    full: config('full', store.path, store.auditFile),
    empty: config('empty', join(place, 'empty.db'), join(place, 'empty.log')),
  };
  const starts: Record<keyof typeof files, Start[]> = { full: [], empty: [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const name of ['empty', 'full'] as const) starts[name].push(await start(files[name]));
  const best = (of: readonly Start[]): Start => of.reduce((one, other) => (other.seconds < one.seconds ? other : one));
  return { full: best(starts.full), empty: best(starts.empty) };
}

async function start(config: string): Promise<Start> {
  const since = performance.now();
  const server = await startServer({ config, env: { NODE_ENV: 'production' } });
  try {
    return { seconds: (performance.now() - since) / 1000, cpu: cpuSeconds(server.pid) };
  } finally {
    await server.stop();
  }
}
