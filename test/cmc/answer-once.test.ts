/** RFC 5272 §6.6: a repeated message gets its first response, and is processed once. */
import { expect, test } from 'vitest';
import { AnswerOnce, checkRecipientNonce, transactionOf, type NewAnswer } from '../../src/cmc/answer-once.ts';
import { CmcRefusal } from '../../src/cmc/refusal.ts';
import type { CmcClaim, CmcConclusion } from '../../src/store/cmc-store.ts';
import { CONTROL_VALUES } from '../pki/cmc/samples.ts';
import { messageOf, outcome, part, senderOf } from './support.ts';

const CMS = { bodyPartID: 9, contentInfo: Buffer.of(0x30, 0) };
const REQUEST = { kind: 'orm' as const, bodyPartID: 3, type: '1.2.3', der: Buffer.of(5, 0) };

test('a message is recognized by its transaction, its nonce, its requests or its batch; a mere query is not', () => {
  const keyOf = (message: ReturnType<typeof messageOf>) => transactionOf(message, senderOf(), 'devices').key;
  const query = part(1, 'getCert', CONTROL_VALUES.getCert);
  expect(keyOf(messageOf([query]))).toBeUndefined();
  const recognized = [
    messageOf([part(1, 'transactionId', CONTROL_VALUES.transactionId)]),
    messageOf([part(1, 'senderNonce', CONTROL_VALUES.senderNonce)]),
    messageOf([], { cmsSequence: [CMS] }),
    { ...messageOf([], { reqSequence: [REQUEST] }), requests: [{ bodyPartID: 3, refusal: refused() }] },
  ].map(keyOf);
  expect(new Set(recognized).size).toBe(4);
  expect(recognized).not.toContain(undefined);
});

test('the recipientNonce must be one that was sent in this transaction', async () => {
  const nonces = (known: boolean) => ({ isCmcNonce: () => Promise.resolve(known) });
  const echo = messageOf([part(5, 'recipientNonce', CONTROL_VALUES.recipientNonce)]);
  const transaction = transactionOf(echo, senderOf(), 'devices');
  const check = (message: typeof echo, known: boolean) =>
    outcome(() => checkRecipientNonce(message, transaction, nonces(known)));
  expect(await check(echo, true)).toBe('ok');
  expect(await check(echo, false)).toBe('400 badRequest [5]');
  expect(await check(messageOf(), false)).toBe('ok');
});

function refused() {
  return new CmcRefusal('bad-request', 'badRequest', [3], 'x');
}

const ANSWER: NewAnswer = { httpStatus: 200, retryAfter: undefined, der: Buffer.of(1), nonce: null, final: true };
const RECEIVED = { requestId: 'id-1', now: 0 };
const TRANSACTION = { key: 'key', transactionKey: 'transaction' };

function setUp(claim: CmcClaim = { state: 'claimed', id: 'id-1' }) {
  const concluded: CmcConclusion[] = [];
  const store = {
    claimCmcMessage: () => Promise.resolve(claim),
    concludeCmcMessage: (_key: string, _instance: string, conclusion: CmcConclusion) => {
      concluded.push(conclusion);
      return Promise.resolve();
    },
  };
  return { once: new AnswerOnce({ store, instance: 'node', retryAfter: 7 }), concluded };
}

test('a message in progress is answered with 503, in this process and in another; afterwards it is free again', async () => {
  const { once } = setUp();
  const { promise, resolve } = Promise.withResolvers<NewAnswer>();
  const first = once.answer(TRANSACTION, RECEIVED, () => promise);
  expect(await outcome(() => once.answer(TRANSACTION, RECEIVED, () => Promise.resolve(ANSWER)))).toBe(
    '503 tryLater [0]',
  );
  resolve(ANSWER);
  expect(await first).toBe(ANSWER);
  expect(await once.answer(TRANSACTION, RECEIVED, () => Promise.resolve(ANSWER))).toBe(ANSWER);
  const { once: elsewhere } = setUp({ state: 'under-way' });
  expect(await outcome(() => elsewhere.answer(TRANSACTION, RECEIVED, () => Promise.resolve(ANSWER)))).toBe(
    '503 tryLater [0]',
  );
});

test('a message that another process began keeps its ID, and the work knows it', async () => {
  for (const [id, retaken] of [
    ['id-1', false],
    ['id-0', true],
  ] as const) {
    const seen: unknown[] = [];
    await setUp({ state: 'claimed', id }).once.answer(TRANSACTION, RECEIVED, (...args) => {
      seen.push(args);
      return Promise.resolve(ANSWER);
    });
    expect(seen).toEqual([[id, retaken]]);
  }
});

test('only a definitive answer is stored, and is sent again', async () => {
  const { once, concluded } = setUp();
  await once.answer(TRANSACTION, RECEIVED, () => Promise.resolve({ ...ANSWER, final: false }));
  await once.answer(TRANSACTION, RECEIVED, () => Promise.resolve(ANSWER));
  await expect(once.answer(TRANSACTION, RECEIVED, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(concluded.map(({ answer }) => answer)).toEqual([null, ANSWER.der, null]);
  const again = setUp({ state: 'answered', answer: ANSWER.der }).once;
  expect(await again.answer(TRANSACTION, RECEIVED, () => Promise.reject(new Error('processed again')))).toEqual({
    httpStatus: 200,
    retryAfter: undefined,
    der: ANSWER.der,
  });
});
