/** PgBouncer in front of a PostgreSQL of the tests. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accepts, freePort } from './ports.ts';
import type { PostgresCluster } from './postgres.ts';
import { findCommand } from './requires.ts';
import { killed, untilReady } from './spawned.ts';
import { removeFolder } from './folders.ts';

export interface PgBouncer {
  readonly port: number;
  /** The URL of a database through it. */
  url(direct: string): string;
  stop(): Promise<void>;
}

/** Starts one with the settings that it has by default, except for the mode. */
export async function startPgBouncer(
  cluster: PostgresCluster,
  mode: 'session' | 'transaction' | 'statement',
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${cluster.port} user=estuary
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  );
  const program = findCommand('pgbouncer') ?? 'pgbouncer';
  // It refuses to run as root.
  const { uid, gid } = statSync(cluster.data);
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  const child = spawn(program, [file], { ...user, stdio: 'ignore' });
  const stop = async (): Promise<void> => {
    await killed(child);
    removeFolder(folder);
  };
  await untilReady('PgBouncer', () => accepts(port));
  return { port, stop, url: (direct) => direct.replace(`:${cluster.port}/`, `:${port}/`) };
}
