/** `examples/mail-merge`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { NODE } from '../support/server-process.ts';
import { exampleFile, issuedNames, startExample, type Example } from './support.ts';

const SCRIPT = exampleFile('mail-merge', 'make-tokens.js');

let example: Example;
beforeAll(async () => {
  example = await startExample('mail-merge');
});
afterAll(() => example.estuary.stop());

const merge = async (input: string): Promise<{ code: number; rows: string[] }> => {
  const { dir, server } = example.estuary;
  const file = (name: string): string => join(dir, name);
  const { code, output } = await runAny(
    NODE,
    [
      ...[SCRIPT, '--url', `https://localhost:${server.port('admin')}`, '--ca', file('ca/root.pem')],
      ...['--cert', file('admin/client.pem'), '--key', file('admin/client.key')],
    ],
    { input },
  );
  return { code, rows: output.split('\r\n').filter((row) => row !== '') };
};

const enroll = (cn: string, token: string, dnsNames: readonly string[] = []) =>
  example.estuary.enroll(onTheWire(simpleCsr(makeKey(), cn, dnsNames)), { password: token });

describe('one-time passwords by mail merge', () => {
  test('--check accepts it without a warning', async () => {
    expect(await example.check()).toBe('example.toml: the configuration is valid\n');
  });

  test('each recipient gets a row with a password, which enrolls for its own name and for no other', async () => {
    const { code, rows } = await merge(readFileSync(exampleFile('mail-merge', 'recipients.csv'), 'utf8'));
    expect({ code, header: rows[0] }).toEqual({ code: 0, header: 'client_id,name,email,token,expires_at,error' });
    const [anna, jo] = [
      /^press-7,"Müller, Anna",anna@example.com,(\w+),/,
      /^press-8,"Jean ""Jo"" Dupont",jo@example.com,(\w+),/,
    ].map((row, index) => row.exec(rows[index + 1] ?? '')?.[1] ?? 'no token');
    expect((await enroll('press-8', anna ?? '')).status).toBe(403);
    expect((await enroll('press-7', anna ?? '', ['admin.example.com'])).status).toBe(403);
    const answer = await enroll('press-7', anna ?? '');
    expect(answer.status).toBe(200);
    expect(issuedNames(answer)).toEqual(['CN=press-7']);
    expect((await enroll('press-7', anna ?? '')).status).toBe(401);
    expect((await enroll('press-8', jo ?? '')).status).toBe(200);
  });

  test('a row that is refused has the reason, and the others their passwords', async () => {
    const { code, rows } = await merge('client_id,expires_at\r\npress-9,\r\npress-10,2020-01-01T00:00:00Z\r\n');
    expect(code).toBe(1);
    expect(rows[1]).toMatch(/^press-9,\w+,[\dTZ:.-]+,$/);
    expect(rows[2]).toMatch(/^press-10,,,"?400 /);
  });

  test.each([
    ['name\nx\n', 'the first line names no column client_id'],
    ['', 'the first line names no column client_id'],
  ])('%j is refused whole', async (input, reason) => {
    expect(await merge(input)).toEqual({ code: 2, rows: [`make-tokens: ${reason}\n`] });
  });
});
