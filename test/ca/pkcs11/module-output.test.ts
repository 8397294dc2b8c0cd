import { expect, test } from 'vitest';
import { moduleOutput } from '../../../src/ca/pkcs11/module-output.ts';

test('at most 100 lines an hour of a CA are in the log, also of another signer; the last says that more came', () => {
  const lines: string[] = [];
  const log = { info: () => undefined, warn: (_: object, line: string) => lines.push(line), error: () => undefined };
  const [first, second] = [moduleOutput('talkative', log), moduleOutput('talkative', log)];
  for (let n = 1; n <= 150; n++) (n % 2 === 0 ? first : second)(`line ${n}`);
  expect(lines).toHaveLength(100);
  expect(lines[98]).toBe('the PKCS #11 library of "talkative" printed: line 99');
  expect(lines[99]).toBe('the PKCS #11 library of "talkative" prints more; the log has no more of it this hour');
  moduleOutput('quiet', log)('hello');
  expect(lines[100]).toBe('the PKCS #11 library of "quiet" printed: hello');
});
