import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Secret } from '../src/config/secret.ts';
import { createLogger } from '../src/log.ts';

function logged(write: (log: ReturnType<typeof createLogger>) => void, level: 'info' | 'warn' = 'info'): string {
  let output = '';
  write(
    createLogger(level, {
      write: (line) => {
        output += line;
      },
    }),
  );
  return output;
}

test('issue 11.2: long texts are cut in the log', () => {
  const output = logged((log) => log.info({ detail: 'a'.repeat(130_000), url: '/short', n: 1 }, 'refused'));
  expect(JSON.parse(output)).toMatchObject({ detail: `${'a'.repeat(4096)}… (130000 characters)`, url: '/short', n: 1 });
});

describe('the log holds no secret', () => {
  test.each([
    ['an authorization header', { headers: { authorization: 'Basic c2VjcmV0LXZhbHVl' } }, 'c2VjcmV0LXZhbHVl'],
    ['a request with headers', { req: { headers: { Authorization: 'Bearer very-secret' } } }, 'very-secret'],
    ['a proxy-authorization header', { headers: { 'proxy-authorization': 'very-secret' } }, 'very-secret'],
    ['a password', { password: 'very-secret' }, 'very-secret'],
    ['a token in a body', { body: { token: 'very-secret' } }, 'very-secret'],
    ['a PIN', { pkcs11: { pin: 'very-secret' } }, 'very-secret'],
    ['a Secret under any name', { whatever: new Secret(Buffer.from('very-secret')) }, 'very-secret'],
  ])('%s is cut out', (_, object, secret) => {
    const output = logged((log) => log.info(object, 'something'));
    expect(output).toContain('[secret]');
    expect(output).not.toContain(secret);
  });

  test('a Secret shows itself in no string, JSON or inspection', () => {
    const secret = new Secret(Buffer.from('very-secret'));
    for (const shown of [
      String(secret),
      JSON.stringify({ secret }),
      inspect({ secret }, { depth: 9, showHidden: true }),
    ]) {
      expect(shown).toContain('[secret]');
      expect(shown).not.toContain('very-secret');
      expect(shown).not.toContain(Buffer.from('very-secret').toString('hex').slice(0, 8));
    }
    expect(secret.reveal().toString()).toBe('very-secret');
  });
});

test('a line of the log is JSON, named estuary, with an ISO 8601 time', () => {
  const line: unknown = JSON.parse(logged((log) => log.info({ port: 9443 }, 'listening')));
  expect(line).toMatchObject({ name: 'estuary', msg: 'listening', port: 9443 });
  expect(line).toHaveProperty('time', expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/));
});

test('messages below log.level are not written', () => {
  expect(logged((log) => log.info('quiet'), 'warn')).toBe('');
});
