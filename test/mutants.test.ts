/** scripts/mutate: each change replaces exactly the original code. */
import { stripTypeScriptTypes } from 'node:module';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { mutate } from '../scripts/lib/mutate/mutants.ts';

const changes = (text: string): string[] =>
  mutate('x.ts', text).mutants.map(({ original, replacement }) => `${original} → ${replacement}`);

describe('what is changed', () => {
  test.each<[string, string, string[]]>([
    ['a condition', 'if (f()) g = 1;', ['f() → true', 'f() → false']],
    ['a guard', 'if (a === 1) throw b;', ['a === 1 → true', 'a === 1 → false']],
    ['each clause of a condition', 'if (a && b()) c = 1;', ['a && b() → false', 'a → true', 'b() → true']],
    ['each clause of alternatives', 'c = a === 1 || !b;', ['a === 1 || !b → true', 'a === 1 → false', '!b → false']],
    ['a bound', 'c = a < b;', ['a < b → true', 'a < b → false', 'a < b → a <= b']],
    ['a value that is a clause', 'c = a && d;', ['a && d → d', 'a && d → a']],
    ['a default', 'c = a ?? b;', ['a ?? b → a', 'a ?? b → b']],
    ['one for all', 'c = a.some(f);', ['a.some(f) → a.every(f)']],
    ['a predicate', 'c = a.filter((x) => f(x));', ['f(x) → true', 'f(x) → false']],
    ['a literal', 'c = { d: true };', ['true → false']],
    ['a negation once', 'if (!(a === 1)) b = 1;', ['!(a === 1) → true', '!(a === 1) → false']],
    ['a call that is a statement', 'f(1);', ['f(1); → ']],
    ['the condition of a loop: it has to end', 'while (f()) g = 1;', ['f() → false']],
    [
      'the keys of a write, and its kind',
      'a = write(lock.token, b);',
      [
        ...['quick', 'slow', 'begins', 'completes'].map(
          (kind) => `write → ((...all) => ({ ...write(...all), kind: '${kind}' }))`,
        ),
        ...['undefined', '(() => [])', "'everything'"].map((keys) => `lock.token → ${keys}`),
      ],
    ],
    ['each key of several', 'c = (a) => [...lock.token(a), ...b(a)];', ['lock.token(a) → []', 'b(a) → []']],
    ['no type', 'type A = true; let a: true | undefined;', []],
    ['no line of log', 'log.warn({}, "x");', []],
  ])('%s', (_, text, expected) => {
    expect(changes(text)).toEqual(expected);
  });
});

test('without a mutant the text does what it did, with one what that says', () => {
  const source = `
    const f = (a: number, b?: number): string => {
      if (a > 1 && (b ?? 2) < 3) return 'first';
      return a === 0 ? 'zero' : 'other';
    };
    const out: string[] = [];
    if (out.length === 0) out.push('x');
    else out.push('y');
    return [f(2), f(2, 5), f(0), f(1), ...out];`;
  const { mutants, text } = mutate('x.ts', `function run() {${source}}`);
  const run = (active: string): unknown =>
    runInNewContext(`${stripTypeScriptTypes(text)}; run();`, { __mutant: (id: string) => id === active });
  const expected = ['first', 'other', 'zero', 'other', 'x'];
  expect(JSON.stringify(run('none'))).toBe(JSON.stringify(expected));
  const same = mutants.filter(({ id }) => JSON.stringify(run(id)) === JSON.stringify(expected));
  expect(same.map(({ original, replacement }) => `${original} → ${replacement}`)).toEqual([
    '(b ?? 2) < 3 → (b ?? 2) <= 3',
    'out.length === 0 → true',
    "out.push('y'); → ",
  ]);
});
