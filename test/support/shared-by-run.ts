/**
 * vitest's global setup: what the files of a run share: built processes and threads (started-modules.ts), and a folder for PostgreSQL
 * (postgres.ts) and PKIs (quickstart.ts).
 */
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SHARED_FOLDER } from './postgres.ts';
import { until } from './until.ts';
import { removeFolder } from './folders.ts';
import { buildStartedModules } from './started-modules.ts';

/** No program is started here: most runs of single files need none. @returns what ends them */
export default function setup(): () => Promise<void> {
  buildStartedModules();
  const folder = mkdtempSync(join(tmpdir(), 'estuary-postgres-'));
  chmodSync(folder, 0o711);
  // The test processes inherit it.
  process.env[SHARED_FOLDER] = folder;
  return async () => {
    await end(folder);
    removeFolder(folder);
  };
}

async function end(folder: string): Promise<void> {
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const pid = (): number | undefined => {
    try {
      return Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
    } catch {
      return undefined;
    }
  };
  const running = pid();
  if (running === undefined || !isAlive(running)) return;
  process.kill(running, 'SIGQUIT');
  await until('PostgreSQL has stopped', () => !isAlive(running));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
