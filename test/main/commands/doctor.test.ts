/** `estuary doctor` on a full disk, a nearly full one, one that cannot be written, and one in order. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Config } from '../../../src/config/schema.ts';
import { checkDisks, type ReadSpace } from '../../../src/main/commands/doctor.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { requires } from '../../support/requires.ts';

const MIB = 2 ** 20;
let folder: ReturnType<typeof temporaryFolder>;
let mounts: string[] = [];
beforeEach(() => (folder = temporaryFolder()));
afterEach(() => {
  for (const path of mounts) execFileSync('umount', [path]);
  mounts = [];
  folder.remove();
});

function configOf(
  store: string,
  audit: string,
  { archive, driver = 'sqlite' }: { archive?: string; driver?: 'sqlite' | 'postgres' } = {},
): Pick<Config, 'store' | 'audit'> {
  return { store: { driver, path: store }, audit: { file: audit, archive } } as unknown as Config;
}

const disk =
  (free: number, all: number, inodes = 1000): ReadSpace =>
  () => ({ bsize: 1, blocks: all, bavail: free, files: inodes, ffree: inodes - 1 });

describe('the space', () => {
  test.each([
    ['full', disk(0, 100 * MIB), 'failed', /: 0 KiB free of 100 MiB: the disk is full/],
    ['less than the server needs', disk(4 * MIB - 1, 100 * MIB), 'failed', /: 3.9 MiB free .* is full/],
    ['nearly full', disk(60 * MIB, 1000 * MIB), 'failed', /: 60 MiB free .* is nearly full/],
    ['small, with room', disk(60 * MIB, 64 * MIB), 'ok', /: 60 MiB free of 64 MiB$/],
    ['large, with little room', disk(900 * MIB, 100_000 * MIB), 'warning', /: 900 MiB free of 97.6 GiB: less than 5 %/],
    ['without free inodes', disk(1000 * MIB, 2000 * MIB, 1), 'failed', /no inode is free/],
    ['with room, on a file system that counts no inodes', disk(5 * MIB, 6 * MIB, 0), 'ok', /5 MiB free/],
  ])('of a disk: %s', (_, space, status, detail) => {
    const findings = checkDisks(configOf(folder.file('est.db'), folder.file('audit.log')), space);
    expect(findings).toEqual([{ check: 'disk', status, detail: expect.stringMatching(detail) as string }]);
    expect(findings[0]?.detail.startsWith(`${folder.path} (store, audit log): `)).toBe(true);
  });

  test('of each folder, and of the one above those that are missing', () => {
    const asked: string[] = [];
    const space: ReadSpace = (path) => {
      asked.push(path);
      return disk(5 * MIB, 6 * MIB)(path);
    };
    const archive = folder.file('archive');
    const found = checkDisks(configOf(folder.file('a/est.db'), folder.file('b/c/audit.log'), { archive }), space);
    expect(found.map(({ detail }) => detail.split(':')[0])).toEqual([
      `${folder.file('a')} (store)`,
      `${folder.file('b/c')} (audit log)`,
      `${archive} (audit archive)`,
    ]);
    expect(asked).toEqual([folder.path, folder.path, folder.path]);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test('of a store in PostgreSQL is that of the audit log', () => {
    const found = checkDisks(configOf('unused', folder.file('audit.log'), { driver: 'postgres' }), disk(5, 6));
    expect(found.map(({ detail }) => detail.split(':')[0])).toEqual([`${folder.path} (audit log)`]);
  });
});

describe('writing', () => {
  test('leaves nothing behind, and changes neither database nor log', () => {
    for (const name of ['est.db', 'audit.log']) writeFileSync(folder.file(name), 'contents');
    const before = statSync(folder.file('est.db')).mtimeMs;
    const [found] = checkDisks(configOf(folder.file('est.db'), folder.file('audit.log')));
    expect(found?.detail).toMatch(/ [\d.]+ [MG]iB free of [\d.]+ [MG]iB/);
    expect(found?.detail).not.toContain('cannot be written');
    expect(readdirSync(folder.path).toSorted()).toEqual(['audit.log', 'est.db']);
    expect(statSync(folder.file('est.db')).mtimeMs).toBe(before);
  });

  test('where a file of the server is a folder', () => {
    mkdirSync(folder.file('audit.log'));
    const [found] = checkDisks(configOf(folder.file('est.db'), folder.file('audit.log')));
    expect(found).toMatchObject({
      check: 'disk',
      status: 'failed',
      detail: expect.stringContaining('illegal operation on a directory') as string,
    });
  });
});

describe.skipIf(!requires('root'))('a real disk', () => {
  function mounted(...options: string[]): string {
    const path = folder.file('mounted');
    mkdirSync(path);
    execFileSync('mount', ['-t', 'tmpfs', ...options, 'none', path]);
    mounts.push(path);
    return path;
  }

  test('that is full', () => {
    const path = mounted('-o', 'size=16m');
    writeFileSync(`${path}/filler`, Buffer.alloc(15 * MIB));
    const [found] = checkDisks(configOf(`${path}/est.db`, `${path}/audit.log`));
    expect(found).toEqual({
      check: 'disk',
      status: 'failed',
      detail: `${path} (store, audit log): 1 MiB free of 16 MiB: the disk is full, and the server issues nothing. Free some space`,
    });
  });

  test('that can be read only', () => {
    // Full, and that does not matter: it cannot be written.
    const path = mounted('-o', 'size=4k,ro');
    const [found] = checkDisks(configOf(`${path}/est.db`, `${path}/audit.log`));
    expect(found).toMatchObject({
      check: 'disk',
      status: 'failed',
      detail: expect.stringContaining('read-only file system') as string,
    });
    expect(existsSync(`${path}/est.db`)).toBe(false);
  });
});
