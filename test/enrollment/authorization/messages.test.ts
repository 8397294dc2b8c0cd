/** The messages of `[ca.authorization]`: what an answer may contain, and that their documentation is theirs. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  AuthorizationAnswer,
  AuthorizationRequest,
  readAnswer,
} from '../../../src/enrollment/authorization/messages.ts';
import { ROOT } from '../../support/root.ts';

test.each(['DNS:a b', 'DNS:', 'email:x', 'email:\u00fc@a.example', 'URI:http://\u00fc.example/', 'URI:x', 'x'])(
  'an invalid name is rejected when it is read: %s',
  (name) => {
    expect(() => readAnswer(Buffer.from(JSON.stringify({ allow: true, sans: [name] })))).toThrow(JSON.stringify(name));
  },
);

test('docs/reference/authorization.md shows the schemas of request and answer', () => {
  const text = readFileSync(`${ROOT}/docs/reference/authorization.md`, 'utf8');
  const shown = [...text.matchAll(/^```json schema\n([\s\S]*?)^```$/gm)].map(
    ([, block = '']) => JSON.parse(block) as unknown,
  );
  expect(shown).toEqual(
    [AuthorizationRequest, AuthorizationAnswer].map((schema) => JSON.parse(JSON.stringify(schema)) as unknown),
  );
});
