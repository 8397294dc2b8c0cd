/**
 * Which test files `scripts/test --fast` runs. `node test/support/affected-tests.ts` prints the files that did not pass
 * with the present content of all files that they can reach; as a vitest reporter, it records those that pass.
 *
 * A file reaches what it imports, and each file or folder that one of its texts names, such as a child process, a
 * fixture or a document. All files reach the set-up of the tests.
 */
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { isObject } from '../../src/process/protocol.ts';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache');
const WANTED = join(CACHE, 'tests-wanted.json');
const PASSED = join(CACHE, 'tests-passed.json');
const FAST = { of: 'test/**/*.test.ts', but: ['test/{conformance,interop,faults,dogtag}/**', '**/*.slow.test.ts'] };
const COMMON = [
  'package-lock.json',
  'tsconfig.json',
  'vitest.config.ts',
  'test/support/file-cpu.ts',
  'test/support/metadata.ts',
];
const GENERATED = /^(?:dist|coverage|node_modules|\.cache|\.git)(?:\/|$)/;

type Keys = Record<string, string>;

export default class PassedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const [wanted, passed] = [readKeys(WANTED), readKeys(PASSED)];
    for (const module of modules) {
      const file = relative(ROOT, module.moduleId);
      const key = wanted[file];
      if (module.state() === 'passed' && key !== undefined) passed[file] = key;
    }
    writeFileSync(PASSED, JSON.stringify(passed));
  }
}

function readKeys(file: string): Keys {
  try {
    const keys: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isObject(keys) ? Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, String(key)])) : {};
  } catch {
    return {};
  }
}

interface FileState {
  readonly hash: string;
  /** Absolute paths. */
  readonly names: readonly string[];
}

const states = new Map<string, FileState>();

function stateOf(file: string): FileState {
  let state = states.get(file);
  if (state === undefined) {
    const content = readFileSync(file);
    const hash = createHash('sha256').update(content).digest('base64');
    state = { hash, names: file.endsWith('.ts') ? namedIn(content.toString('utf8'), file) : [] };
    states.set(file, state);
  }
  return state;
}

/**
 * The files that a source names in quotes, relative to itself or to the project, with or without `.ts`. Of a pattern, the
 * folder counts. A word alone is a folder only after `ROOT`.
 */
function namedIn(source: string, file: string): string[] {
  const found = new Set<string>();
  for (const [, root, text = ''] of source.matchAll(/(ROOT, )?['"`]([\w./@-]{2,100})[^'"`\n]*['"`]/g)) {
    if (root === undefined && !/[./]\w/.test(text)) continue;
    const path = text.startsWith('.') ? resolve(dirname(file), text) : join(ROOT, text);
    for (const existing of [...filesAt(path), ...filesAt(`${path}.ts`)]) found.add(existing);
  }
  return [...found];
}

const at = new Map<string, string[]>();

/** A file, or the files of a folder. The project and what is generated do not count. */
function filesAt(path: string): string[] {
  let files = at.get(path);
  if (files === undefined) {
    const inside = relative(ROOT, path);
    const isOutside = inside === '' || inside.startsWith('..') || GENERATED.test(inside);
    const entry = isOutside ? undefined : statSync(path, { throwIfNoEntry: false });
    const below = (): string[] => readdirSync(path).flatMap((name) => filesAt(join(path, name)));
    files = entry?.isFile() ? [path] : entry?.isDirectory() ? below() : [];
    at.set(path, files);
  }
  return files;
}

function keyOf(file: string): string {
  const seen = new Set<string>();
  const open = [join(ROOT, file)];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...stateOf(next).names);
  }
  const hash = createHash('sha256').update(process.version);
  for (const one of [...COMMON.map((name) => join(ROOT, name)), ...[...seen].sort()])
    hash.update(`${one}\0${stateOf(one).hash}\n`);
  return hash.digest('base64');
}

if (import.meta.main) {
  const keys: Keys = {};
  for (const file of globSync(FAST.of, { cwd: ROOT, exclude: FAST.but })) keys[file] = keyOf(file);
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(WANTED, JSON.stringify(keys));
  const passed = readKeys(PASSED);
  for (const [file, key] of Object.entries(keys)) if (passed[file] !== key) console.log(file);
}
