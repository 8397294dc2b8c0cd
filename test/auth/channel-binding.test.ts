/** RFC 7030 §3.5 and RFC 7894 §3.3: which claim of a request is compared with the channel binding, and when one is required. */
import { expect, test } from 'vitest';
import { checkPopLinking, type LinkingAttributes, type PopLinkingPolicy } from '../../src/auth/channel-binding.ts';
import { EstuaryError } from '../../src/errors.ts';

const BINDING = Buffer.alloc(32, 7);
const RIGHT = BINDING.toString('base64');
/** Of the right length, and of others. */
const WRONG = [Buffer.alloc(32, 8), Buffer.alloc(31, 7), Buffer.alloc(33, 7), Buffer.alloc(0)].map((one) =>
  one.toString('base64'),
);
const REQUIRED: PopLinkingPolicy = { challenge_password: 'binding', require_pop_linking: true };
const OPTIONAL: PopLinkingPolicy = { challenge_password: 'binding', require_pop_linking: false };
const IGNORED: PopLinkingPolicy = { challenge_password: 'ignore', require_pop_linking: true };

interface Case {
  readonly binding?: Buffer | undefined;
  readonly linked?: boolean;
}

function outcome(attributes: Partial<LinkingAttributes>, policy: PopLinkingPolicy, more: Case = {}): string {
  const { binding, linked = false } = { binding: BINDING, ...more };
  const both = { challengePassword: undefined, identityLinking: undefined, ...attributes };
  try {
    checkPopLinking(both, { kind: 'connection', binding: () => binding, linked }, policy);
    return 'passes';
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return error.code;
  }
}

for (const attribute of ['challengePassword', 'identityLinking'] as const) {
  test(`${attribute}: only the binding of this connection passes`, () => {
    expect(outcome({ [attribute]: RIGHT }, REQUIRED)).toBe('passes');
    for (const wrong of WRONG)
      for (const policy of [REQUIRED, OPTIONAL])
        expect(outcome({ [attribute]: wrong }, policy), wrong).toBe('POP_LINKING_MISMATCH');
  });

  test(`${attribute}: on a connection without a binding nothing passes`, () => {
    for (const claimed of [RIGHT, ...WRONG])
      expect(outcome({ [attribute]: claimed }, REQUIRED, { binding: undefined })).toBe('POP_LINKING_MISMATCH');
  });
}

test('an estIdentityLinking counts before a challengePassword', () => {
  const [wrong = ''] = WRONG;
  expect(outcome({ identityLinking: RIGHT, challengePassword: wrong }, REQUIRED)).toBe('passes');
  expect(outcome({ identityLinking: wrong, challengePassword: RIGHT }, REQUIRED)).toBe('POP_LINKING_MISMATCH');
});

test('challenge_password = "ignore": a challengePassword is no claim, and none is required', () => {
  const [wrong = ''] = WRONG;
  expect(outcome({ challengePassword: wrong }, IGNORED)).toBe('passes');
  expect(outcome({}, IGNORED)).toBe('passes');
  expect(outcome({ identityLinking: wrong }, IGNORED)).toBe('POP_LINKING_MISMATCH');
});

test('a claim is required with require_pop_linking, unless CMC has linked identity and key', () => {
  expect(outcome({}, REQUIRED)).toBe('POP_LINKING_MISSING');
  expect(outcome({}, REQUIRED, { linked: true })).toBe('passes');
  expect(outcome({}, OPTIONAL)).toBe('passes');
});

test('a request that a registration authority carries is not compared with its connection', () => {
  const [wrong = ''] = WRONG;
  const both = { challengePassword: wrong, identityLinking: wrong };
  expect(() => {
    checkPopLinking(both, { kind: 'carried' }, REQUIRED);
  }).not.toThrow();
});
