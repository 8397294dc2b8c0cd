/** RFC 5272 §3.3 and §6.17: a message from its bytes to its answer; what is audited, logged and definitive. */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { CmcRefusal, done, notAllowed, type PartOutcome, unauthenticated } from '../../src/cmc/refusal.ts';
import { CmcServer } from '../../src/cmc/server.ts';
import { unauthorized, unavailable } from '../../src/errors.ts';
import { buildPkiData, type PkiDataContent } from '../../src/pki/cmc/pki-data.ts';
import { contentInfo, keySigner } from '../../src/pki/cms/cms.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { tcr } from '../support/cmc.ts';
import { buildCsr, makeKey } from '../support/csr.ts';
import { keyPair } from '../support/keys.ts';
import { part, senderOf } from './support.ts';

const { privateKey, publicKey } = keyPair('ec:P-256', 'responder');
const spki = parsePublicKey(publicKey.export({ format: 'der', type: 'spki' }));
const sid = { kind: 'subjectKeyIdentifier', keyIdentifier: Buffer.alloc(20) } as const;
const responder = { signer: keySigner(privateKey, spki, sid), certificates: [] };
const ca = { label: 'devices', driver: { chain: () => [] } } as unknown as Ca;

const messageOf = (data: Partial<PkiDataContent> = {}): Buffer =>
  contentInfo(OID.data, octetString(buildPkiData({ controlSequence: [part(1, 'transactionId', '01')], ...data })));
const ours = new CmcRefusal('unavailable', 'tryLater', [1], 'busy');
const refused = (refusal: CmcRefusal): PartOutcome => ({ kind: 'refused', refusal });

interface Behavior {
  readonly fails?: Error;
  /** Of the requests of each message in turn. */
  readonly outcomes?: readonly (readonly PartOutcome[])[];
  readonly body?: Buffer;
}

async function answer({ fails, outcomes = [], body = messageOf() }: Behavior) {
  const seen = {
    audited: [] as unknown[],
    denied: [] as unknown[],
    logged: [] as string[],
    final: false,
    processed: 0,
  };
  const log = (level: string) => () => void seen.logged.push(level);
  const options = {
    store: {
      audit: (events: readonly { readonly outcome: string }[]) =>
        Promise.resolve(void seen.audited.push(...events.map(({ outcome }) => outcome))),
      claimCmcMessage: ({ id }: { readonly id: string }) => Promise.resolve({ state: 'claimed', id }),
      concludeCmcMessage: (_key: string, _instance: string, { answer: stored }: { readonly answer: unknown }) =>
        Promise.resolve(void (seen.final = stored !== null)),
    },
    log: { info: log('info'), error: log('error') },
    authenticator: {
      authenticate: () => (fails === undefined ? Promise.resolve(senderOf('ra')) : Promise.reject(fails)),
    },
    enrollment: {
      recordDenial: (_: unknown, events: readonly { readonly reason?: string }[]) =>
        Promise.resolve(void seen.denied.push(events.map(({ reason }) => reason))),
    },
    requests: { process: () => Promise.resolve([...(outcomes[seen.processed++] ?? [])]) },
    pending: { query: (bodyPart: number) => Promise.resolve({ kind: 'pending', bodyPart, requestId: 'x' }) },
    instance: 'node-1',
    retryAfter: 60,
  };
  const origin = { ca, address: '192.0.2.1', now: 0, tls: undefined, presented: [], channelBinding: undefined };
  const server = new CmcServer(options as unknown as ConstructorParameters<typeof CmcServer>[0]);
  const { httpStatus } = await server.answer({ ...origin, requestId: 'request-1', body, responder });
  return { httpStatus, ...seen };
}

test('a sender that is not authenticated is audited once; a failure of the server is not its attempt', async () => {
  const failed = async (fails: Error) => (await answer({ fails })).audited;
  expect(await failed(unauthenticated(0, 'unknown'))).toEqual(['failure']);
  expect(await failed(unauthorized('LOCKED_OUT', 'locked out')), 'the lockout has audited it').toEqual([]);
  expect(await failed(unavailable('PASSWORD_CHECK_BUSY', 'busy'))).toEqual([]);
});

test('rejections are audited; the log has failures of the server as errors', async () => {
  const denied = await answer({ outcomes: [[refused(notAllowed(1, 'no'))]] });
  expect(denied).toMatchObject({ httpStatus: 403, denied: [['no']], logged: ['info'] });
  expect(await answer({ outcomes: [[refused(ours)]] })).toMatchObject({
    httpStatus: 503,
    denied: [],
    logged: ['error'],
  });
  expect(await answer({ outcomes: [[done(1)]] })).toMatchObject({ httpStatus: 200, denied: [], logged: [] });
});

test('RFC 5272 §6.6: an answer is definitive if something was done, nothing of ours failed and no query is open', async () => {
  const isFinal = async (...outcomes: PartOutcome[]) => (await answer({ outcomes: [outcomes] })).final;
  const no = refused(notAllowed(1, 'no'));
  expect(await isFinal(done(1))).toBe(true);
  expect(await isFinal(done(1), no)).toBe(true);
  expect(await isFinal(no)).toBe(false);
  expect(await isFinal(done(1), refused(ours))).toBe(false);
  const query = messageOf({ controlSequence: [part(1, 'transactionId', '01'), part(2, 'queryPending', Buffer.of(1))] });
  expect((await answer({ body: query, outcomes: [[done(1)]] })).final).toBe(false);
});

const csr = buildCsr(makeKey());
const requests = (length: number) => Array.from({ length }, (_, n) => tcr(n + 1, csr));
const batch = (inner: readonly Buffer[], own = 0): Buffer =>
  messageOf({
    controlSequence: [
      part(1, 'transactionId', '01'),
      part(
        200,
        'batchRequests',
        inner.map((_, n) => n + 300),
      ),
    ],
    cmsSequence: inner.map((der, n) => ({ bodyPartID: n + 300, contentInfo: der })),
    reqSequence: requests(own).map(({ der }, n) => tcr(n + 2, der)),
  });

test('RFC 5272 §6.17: a batch is definitive if every message inside it is settled', async () => {
  const isFinal = async (...inner: PartOutcome[]) =>
    (await answer({ body: batch([messageOf(), messageOf()]), outcomes: [[], ...inner.map((one) => [one])] })).final;
  expect(await isFinal(done(1), done(1))).toBe(true);
  expect(await isFinal(done(1), refused(notAllowed(1, 'no')))).toBe(true);
  expect(await isFinal(done(1), refused(ours))).toBe(false);
});

test('a batch has at most 100 certification requests, together with its own message', async () => {
  const inner = (length: number) => messageOf({ controlSequence: [], reqSequence: requests(length) });
  const processed = async (own: number, ...lengths: number[]) =>
    (await answer({ body: batch(lengths.map(inner), own) })).processed;
  expect(await processed(1, 49, 50)).toBe(3);
  expect(await processed(1, 49, 51), 'only the last message is too much').toBe(2);
});
