/** The outcomes of a message's parts, and errors as rejections: in the audit log, and as HTTP and CMC say them (docs/guides/cmc.md). */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { asRefusal, CmcRefusal, denials, done, type PartOutcome } from '../../src/cmc/refusal.ts';
import { buildResponse } from '../../src/cmc/response.ts';
import { failed, unauthorized, unavailable } from '../../src/errors.ts';
import { parseControl } from '../../src/pki/cmc/controls.ts';
import { parsePkiResponse } from '../../src/pki/cmc/pki-data.ts';
import { parseSignedData, keySigner } from '../../src/pki/cms/cms.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { CONTROL_VALUES } from '../pki/cmc/samples.ts';
import { keyPair } from '../support/keys.ts';
import { messageOf, part, senderOf } from './support.ts';

const KINDS = ['bad-request', 'unauthenticated', 'forbidden', 'failure', 'unavailable'] as const;
const refused = (kind: (typeof KINDS)[number], retryAfter?: number): PartOutcome => ({
  kind: 'refused',
  refusal: new CmcRefusal(kind, 'badRequest', [1], kind, { retryAfter }),
});
const ca = { label: 'devices', driver: { chain: () => [] } } as unknown as Ca;

test('only the message is at fault, or the server: a rejection of the sender is audited, a failure is not', () => {
  const ours = KINDS.filter((kind) => new CmcRefusal(kind, 'badRequest', [1], 'x').isOurs);
  expect(ours).toEqual(['failure', 'unavailable']);
  const origin = { address: '192.0.2.1', ca, requestId: 'request-1' };
  const outcomes = [done(2), ...KINDS.map((kind) => refused(kind))];
  expect(denials(outcomes, [], senderOf(), origin).map(({ reason }) => reason)).toEqual([
    'bad-request',
    'unauthenticated',
    'forbidden',
  ]);
  expect(asRefusal(unavailable('PASSWORD_CHECK_BUSY', 'x'), 0).isOurs).toBe(true);
  expect(asRefusal(failed('CERTIFICATE_MISSING', 'x'), 0).isOurs).toBe(true);
});

const key = keyPair('ec:P-256', 'responder');
const publicKey = parsePublicKey(key.publicKey.export({ format: 'der', type: 'spki' }));
const signer = keySigner(key.privateKey, publicKey, { kind: 'subjectKeyIdentifier', keyIdentifier: Buffer.alloc(20) });

async function response(outcomes: readonly PartOutcome[], { controls } = messageOf()) {
  const responder = { signer, certificates: [] };
  const { httpStatus, retryAfter, der } = await buildResponse({
    ...{ ca, responder, controls, outcomes, now: 0, retryAfter: 60 },
  });
  const read = parsePkiResponse(parseSignedData(der).content ?? Buffer.alloc(0)).controlSequence.map(parseControl);
  return { http: [httpStatus, retryAfter], names: read.map(({ name }) => name), read };
}

test('the HTTP status is 200 if a part succeeded or nothing was asked; otherwise the first rejection, failures first', async () => {
  expect((await response([])).http).toEqual([200, undefined]);
  expect((await response([done(1), refused('failure')])).http).toEqual([200, undefined]);
  expect((await response([refused('forbidden'), refused('bad-request')])).http).toEqual([403, undefined]);
  expect((await response([refused('forbidden'), refused('unavailable', 7)])).http).toEqual([503, 7]);
});

test('a message without work succeeds as a whole', async () => {
  expect((await response([])).read).toMatchObject([{ value: { status: 'success', bodyList: [0] } }]);
  expect((await response([refused('forbidden')])).read).toMatchObject([{ value: { status: 'failed' } }]);
});

test('RFC 5272 §6.6: nonces answer a senderNonce only, and batchResponses a batch only', async () => {
  expect((await response([done(1)])).names).toEqual(['statusInfoV2']);
  const message = messageOf([part(1, 'senderNonce', CONTROL_VALUES.senderNonce)]);
  expect((await response([done(1)], message)).names).toEqual(['statusInfoV2', 'senderNonce', 'recipientNonce']);
  const responses = [{ bodyPartID: 9, contentInfo: Buffer.of(0x30, 0) }];
  expect((await response([done(1, { responses })])).names).toEqual(['statusInfoV2', 'batchResponses']);
});

test('only a lockout is already in the audit log when it rejects a message', () => {
  expect(asRefusal(unauthorized('LOCKED_OUT', 'locked out'), 0).audited).toBe(true);
  expect(asRefusal(unauthorized('CLIENT_CERTIFICATE_UNTRUSTED', 'untrusted'), 0).audited).toBe(false);
});
