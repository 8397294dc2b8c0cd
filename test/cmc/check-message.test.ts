/** RFC 5272 §6.8 and §6.19, RFC 6402 §2.5: what a registration authority states, and what rejects a message as a whole. */
import { expect, test } from 'vitest';
import { checkMessage, MAX_REQUESTS, popWitness, processedControls, voucherFor } from '../../src/cmc/check-message.ts';
import { badMessage } from '../../src/cmc/refusal.ts';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { CONTROL_VALUES } from '../pki/cmc/samples.ts';
import { messageOf, outcome, part, senderOf } from './support.ts';

const PUBLISH_CERT = '1.3.6.1.5.5.7.7.30';
const NONE: ReadonlySet<number> = new Set();
const check = (message: ReturnType<typeof messageOf>, role?: 'ra', processed = NONE): Promise<string> =>
  outcome(() => {
    checkMessage(message, senderOf(role), processed);
  });

test.each(['lraPOPWitness', 'raIdentityWitness', 'controlProcessed', 'batchRequests'] as const)(
  'RFC 6402 §2.12: only a registration authority sends the control %s',
  async (name) => {
    const message = messageOf([
      part(1, 'transactionId', CONTROL_VALUES.transactionId),
      buildControl(2, name, CONTROL_VALUES[name]),
    ]);
    expect(await check(message)).toBe('403 badIdentity [2]');
    expect(await check(message, 'ra')).toBe('ok');
  },
);

test('RFC 5272 §3.2.1: an unsupported control rejects the message, unless a registration authority has processed it', async () => {
  const message = messageOf([{ bodyPartID: 7, type: PUBLISH_CERT, values: [Buffer.of(5, 0)] }]);
  expect(await check(message)).toBe('400 badRequest [7]');
  expect(await check(message, undefined, new Set([6]))).toBe('400 badRequest [7]');
  expect(await check(message, undefined, new Set([7]))).toBe('ok');
});

test('a message has at most 100 certification requests, all of a known kind', async () => {
  const request = { bodyPartID: 1, refusal: badMessage(1, 'x') };
  const requests = (length: number) => Array.from({ length }, () => request);
  expect(await check({ ...messageOf(), requests: requests(MAX_REQUESTS) })).toBe('ok');
  expect(await check({ ...messageOf(), requests: requests(MAX_REQUESTS + 1) })).toBe('400 badRequest [0]');
  const other = { kind: 'orm' as const, bodyPartID: 3, type: '1.2.3', der: Buffer.of(5, 0) };
  expect(await check(messageOf([], { reqSequence: [other] }))).toBe('400 noSupport [3]');
});

test('controlProcessed names parts of the own message, or of the inner one that it names first', () => {
  const ra = messageOf([part(1, 'controlProcessed', [4, [5], [8, 6], [9, 7], [8, 6, 2], [8]])]);
  expect([...processedControls(ra)]).toEqual([4, 5, 8]);
  expect([...processedControls(ra, 8)]).toEqual([6]);
  expect([...processedControls(ra, 9)]).toEqual([7]);
});

test('lraPOPWitness names requests of one message, and only a configured registration authority is trusted with it', () => {
  const ra = messageOf([
    part(1, 'lraPOPWitness', { pkiDataBodyid: 0, bodyIds: [4] }),
    part(2, 'lraPOPWitness', { pkiDataBodyid: 8, bodyIds: [5, 6] }),
  ]);
  expect([...popWitness(ra, senderOf('ra')).bodyIds]).toEqual([4]);
  expect([...popWitness(ra, senderOf('ra'), 8).bodyIds]).toEqual([5, 6]);
  expect(popWitness(ra, senderOf('configured-ra')).trusted).toBe(true);
  for (const role of ['ra', 'subscriber'] as const) expect(popWitness(ra, senderOf(role)).trusted).toBe(false);
});

test('raIdentityWitness covers an inner message as a whole, or the controls that it names', () => {
  const covered = (within: number, ...paths: number[][]): readonly boolean[] => {
    const { covers } = voucherFor(
      messageOf(paths.map((path, n) => part(n + 1, 'raIdentityWitness', path))),
      senderOf('ra'),
      within,
    );
    return [covers(undefined), covers(6), covers(7)];
  };
  expect(covered(8, [8])).toEqual([true, true, true]);
  expect(covered(8, [8, 6])).toEqual([true, true, false]);
  expect(covered(8, [9], [8, 7])).toEqual([true, false, true]);
  for (const path of [[9], [9, 6], [8, 6, 7]]) expect(covered(8, path)).toEqual([false, false, false]);
});
