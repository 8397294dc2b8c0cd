/** A Node that is older than Estuary needs, for tests of how the command hands over. */
import { copyFile, link, realpath, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { runAny } from './command.ts';
import { NODE } from './server-process.ts';

export interface Runtime {
  readonly command: string;
  /** What stands before the script's path. */
  readonly args: readonly string[];
}

/** One of the machine's, else one that pretends, made in a folder of the caller's. */
export async function olderRuntime(folder: string): Promise<Runtime> {
  return (await olderNode()) ?? (await pretendedOlderNode(folder));
}

/** A Node below 26 on the PATH, outside of node_modules. */
async function olderNode(): Promise<Runtime | undefined> {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  for (const path of [...folders, '/usr/bin', '/usr/local/bin']) {
    const command = join(path, 'node');
    const { code, output } = await runAny(command, ['--version']).catch(() => ({ code: -1, output: '' }));
    if (code === 0 && Number(/^v(\d+)\./.exec(output)?.[1] ?? 99) < 26) return { command, args: [] };
  }
  return undefined;
}

/** The pinned Node under another path, that takes itself for an older one: for machines that have no older. */
async function pretendedOlderNode(folder: string): Promise<Runtime> {
  const command = join(folder, 'older-node');
  await link(await realpath(NODE), command).catch(async () => copyFile(await realpath(NODE), command));
  const preload = join(folder, 'older.mjs');
  await writeFile(
    preload,
    `if (process.execPath.endsWith('older-node'))
       Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`,
  );
  return { command, args: ['--import', preload] };
}
