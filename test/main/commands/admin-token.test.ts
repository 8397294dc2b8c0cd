/** `estuary admin token new` makes a token and prints its line for the configuration. */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, test } from 'vitest';
import { Administrators, type AdminToken } from '../../../src/auth/administrators.ts';
import type { AdminRole } from '../../../src/config/vocabulary.ts';
import type { CommandContext } from '../../../src/main/commands/command.ts';
import { runCommand } from '../../../src/main/commands/run-command.ts';
import { COMMANDS } from '../../../src/main/commands/table.ts';
import { configFolder, toml } from '../../config/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

async function estuary(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const context = {
    env: {},
    out: (text: string | Uint8Array) => void (out += String(text)),
    err: (text: string) => void (err += text),
    now: () => Date.UTC(2026, 10, 21, 12),
    signals: { release: () => undefined },
  };
  const code = await runCommand({ name: 'estuary', commands: COMMANDS }, args, context as unknown as CommandContext);
  return { code, out, err };
}

const entryOf = (out: string): string => /^ {2}(\{.*\}),$/m.exec(out)?.[1] ?? '';

describe('estuary admin token new', () => {
  test('the line is one that the configuration takes, and the token is its holder’s', async () => {
    const { code, out } = await estuary(
      'admin',
      'token',
      'new',
      '--description',
      'Ada "RA"',
      '--roles',
      'operator,ra',
      '--days',
      '90',
    );
    expect(code).toBe(0);
    const config = await configFolder();
    const text = toml(`[admin.bearer_token]\nenabled = true\ntokens = [${entryOf(out)}]`);
    expect(await config.problems(text)).toEqual([]);
    config.remove();
    const [entry] = parse(`tokens = [${entryOf(out)}]`)['tokens'] as unknown as [AdminToken & { roles: AdminRole[] }];
    expect(entry).toMatchObject({
      description: 'Ada "RA"',
      roles: ['ra', 'operator'],
      not_after: '2027-02-19T12:00:00Z',
    });
    const token = /^\S{43}$/m.exec(out)?.[0] ?? '';
    expect(new Administrators({ tokens: [entry] }).withToken(token)).toMatchObject({
      display: 'Ada "RA"',
      roles: ['ra', 'operator'],
    });
  });

  test('into a file that nobody else may read, and not over another', async () => {
    const file = folder.file('token');
    const args = ['admin', 'token', 'new', '--description', 'ops', '--roles', 'admin', '--out', file] as const;
    const { code, out } = await estuary(...args);
    expect(code).toBe(0);
    const token = readFileSync(file, 'utf8');
    expect(out).not.toContain(token);
    expect(out).toContain(createHash('sha256').update(token).digest('hex'));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await estuary(...args)).code).toBe(1);
    expect(readFileSync(file, 'utf8')).toBe(token);
  });

  test.each([
    [['--description', 'ops'], '--roles ROLES is missing'],
    [['--roles', 'ra'], '--description TEXT is missing'],
    [['--description', 'ops', '--roles', 'root'], '"root" is unknown. Allowed: admin, ra, auditor, operator'],
    [['--description', 'ops', '--roles', 'ra', '--days', '0'], '--days must be a whole number'],
    [['--description', 'a\nb', '--roles', 'ra'], '--description must have'],
  ])('%j: a line that says what is wrong', async (args, message) => {
    const { code, out, err } = await estuary('admin', 'token', 'new', ...args);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(message);
  });
});
