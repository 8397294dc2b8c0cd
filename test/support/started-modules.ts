/**
 * What the sources start as a process or a thread, as built files: from the sources, each start would strip the types of dozens of
 * modules, because such a process gets no compile cache.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';
import { ROOT } from './root.ts';

/** The URL of their folder. Without it, the sources are started. */
const STARTED_MODULES = 'ESTUARY_STARTED_MODULES';
const CACHE = 'node_modules/.cache/started-modules';

/** Builds them if a source has changed, and names their folder to the test processes. */
export function buildStartedModules(): void {
  const folder = `${CACHE}/${keyOfSources()}`;
  const path = join(ROOT, folder);
  if (!existsSync(path)) {
    rmSync(join(ROOT, CACHE), { recursive: true, force: true });
    const unfinished = `${folder}-${process.pid}`;
    execFileSync(process.execPath, [join(ROOT, 'scripts/lib/bundle-server.ts'), unfinished], { stdio: 'pipe' });
    renameSync(join(ROOT, unfinished), path);
  }
  process.env[STARTED_MODULES] = pathToFileURL(`${path}/`).href;
}

function keyOfSources(): string {
  const hash = createHash('sha256').update(process.version);
  for (const entry of readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    hash.update(`${file} ${statSync(file).mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 32);
}

const SIGNATURE = 'export function startedModule(module: string): URL {';

/** Makes `startedModule()` return them. */
export const startedModules: Plugin = {
  name: 'started-modules',
  enforce: 'pre',
  transform(code, id) {
    if (id !== join(ROOT, 'src/process/protocol.ts')) return undefined;
    if (!code.includes(SIGNATURE)) throw new Error(`${id}: no startedModule()`);
    const folder = `process.env['${STARTED_MODULES}']`;
    const answer = `if (${folder} !== undefined) return new URL(\`\${module}.js\`, ${folder});`;
    return code.replace(SIGNATURE, `${SIGNATURE} ${answer}`);
  },
};
