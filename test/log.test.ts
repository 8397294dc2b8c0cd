import { spawnSync } from 'node:child_process';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Secret } from '../src/config/secret.ts';
import { createLogger, LineBuffer } from '../src/log.ts';
import { ROOT } from './support/root.ts';

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

test.each([
  [true, '{"level":"warn",'],
  [false, '{"level":40,'],
])('levels are names on a terminal (%s), and numbers for programs', (isTerminal, start) => {
  let line = '';
  createLogger('info', { write: (text) => void (line = text) }, isTerminal).warn('x');
  expect(line.startsWith(start)).toBe(true);
});

test('long texts are cut in the log', () => {
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
    ['a password in a list', { rows: [{ password: 'very-secret' }] }, 'very-secret'],
    ['a cookie far down', { a: { b: { c: { Cookie: 'very-secret' } } } }, 'very-secret'],
    ['a token that an error carries', { err: Object.assign(new Error('x'), { token: 'very-secret' }) }, 'very-secret'],
    [
      'a token of an error somewhere else',
      { a: Object.assign(new Error('x'), { token: 'very-secret' }) },
      'very-secret',
    ],
    ['a secret that is a list', { secret: ['very-secret'] }, 'very-secret'],
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

test('what holds no secret is logged as it is, an error with its stack', () => {
  const fields = { n: 1, list: [1, { a: null }], at: new Date(0), none: undefined, nested: { a: { b: true } } };
  const line: unknown = JSON.parse(logged((log) => log.info({ ...fields, err: new RangeError('broken') }, 'x')));
  expect(line).toMatchObject({
    n: 1,
    list: [1, { a: null }],
    at: '1970-01-01T00:00:00.000Z',
    nested: { a: { b: true } },
  });
  expect(line).toMatchObject({ err: { type: 'RangeError', message: 'broken' } });
  expect(line).toHaveProperty('err.stack', expect.stringContaining('log.test.ts'));
});

test('an object that holds itself is logged, as far as it goes', () => {
  const fields: Record<string, unknown> = { a: 1 };
  fields['self'] = fields;
  expect(logged((log) => log.info(fields, 'x'))).toContain('"a":1');
});

describe('lines are gathered for a few milliseconds', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function buffer(): { lines: LineBuffer; written: string[] } {
    const written: string[] = [];
    return { lines: new LineBuffer((text) => void written.push(text)), written };
  }
  const info = (n: number): string => `{"level":30,"n":${n}}\n`;

  test('and written together', () => {
    const { lines, written } = buffer();
    lines.write(info(1));
    lines.write(info(2));
    expect(written).toEqual([]);
    vi.runAllTimers();
    expect(written).toEqual([info(1) + info(2)]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('but a warning goes at once, after those before it', () => {
    const { lines, written } = buffer();
    const warning = '{"level":40,"n":2}\n';
    lines.write(info(1));
    lines.write(warning);
    expect(written).toEqual([info(1) + warning]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('no write is larger than a pipe takes in one piece, unless one line is', () => {
    const { lines, written } = buffer();
    const long = `{"level":30,"text":"${'ü'.repeat(900)}"}\n`;
    const huge = `{"level":30,"text":"${'a'.repeat(9000)}"}\n`;
    for (const line of [long, long, long, huge, long]) lines.write(line);
    vi.runAllTimers();
    expect(written).toEqual([long + long, long, huge, long]);
  });

  test('at the end of the process the rest is written automatically', () => {
    const { lines, written } = buffer();
    lines.flush();
    lines.write(info(1));
    lines.flush();
    expect(written).toEqual([info(1)]);
  });

  test('a process that logs and exits has written it all', () => {
    const script = `import { createLogger } from './src/log.ts'; const log = createLogger('info');
      for (let n = 0; n < 100; n++) log.info({ n }, 'x'); process.exit(3);`;
    const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT });
    expect(status).toBe(3);
    const numbers = stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { n: number }).n);
    // On a busy machine a piece that a thread had in hand comes last.
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  test('lines of two loggers of a process keep their order', () => {
    const script = `import { createLogger } from './src/log.ts'; const [one, other] = [createLogger('info'), createLogger('info')];
      one.info('first'); other.warn('second');`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT });
    expect([...stdout.toString().matchAll(/"msg":"(\w+)"/g)].map(([, word]) => word)).toEqual(['first', 'second']);
  });
});

test('messages below log.level are not written', () => {
  expect(logged((log) => log.info('quiet'), 'warn')).toBe('');
});
