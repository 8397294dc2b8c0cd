/** Shared queues serve requesters in turn: many requests of one delay those of another by few places. */
import { afterAll, expect, test } from 'vitest';
import { HashingPool } from '../../src/auth/otp/hashing-pool.ts';
import { Replica } from '../../src/ca/dogtag/replicas.ts';
import { Authenticator } from '../../src/cmc/authenticate.ts';
import { readContent, readEnvelope, type Message } from '../../src/cmc/message.ts';
import type { PendingRequests } from '../../src/cmc/pending.ts';
import type { Origin } from '../../src/cmc/sender.ts';
import type { SharedSecrets } from '../../src/cmc/shared-secrets.ts';
import type { Signers } from '../../src/cmc/signers.ts';
import { KeyGenerator } from '../../src/enrollment/key-generation.ts';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import type { SharedSecret } from '../../src/pki/cmc/identity-proof.ts';
import { buildPkiData } from '../../src/pki/cmc/pki-data.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { IsolatedProcess } from '../../src/process/isolated-process.ts';
import { OcspResponder } from '../../src/publication/ocsp-responder.ts';
import { runForRequest } from '../../src/request-context.ts';
import { fixture, log, madeUp } from '../publication/support.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pause } from '../support/until.ts';
import { buildAuthenticatedData } from '../support/cmc-secrets.ts';

const folder = temporaryFolder();
const ended: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ended.splice(0)) await end();
  folder.remove();
});

/** Makes the work of one request; `done` is to be called while the request holds its place. */
type MakeWork = () => Promise<(done: () => void) => Promise<unknown>>;

/** A message of CMC that a shared secret authenticates. One iteration: a busy machine must derive sixty keys before the longest wait ends. */
async function macked(secret: SharedSecret): Promise<Message> {
  const content = buildPkiData({ controlSequence: [buildControl(1, 'identification', secret.identification ?? '')] });
  const password = Buffer.concat([Buffer.from(secret.identification ?? ''), secret.secret]);
  return readContent(readEnvelope(await buildAuthenticatedData(OID.pkiData, content, password, 1)));
}

const QUEUES: readonly (readonly [string, MakeWork])[] = [
  [
    'password hashing',
    () => {
      const pool = new HashingPool({ concurrency: 2, queue: 256, retryAfter: 1 });
      return Promise.resolve((done) => pool.run(() => pause(1).then(done)));
    },
  ],
  [
    'key derivation for CMC with a shared secret',
    async () => {
      const secret: SharedSecret = { identification: 'device-7', secret: Buffer.from('correct horse battery staple') };
      const message = await macked(secret);
      // All that the authentication uses of the other parts.
      const parts = {
        signers: {},
        secrets: { verify: (_: unknown, __: unknown, check: (one: SharedSecret) => unknown) => check(secret) },
        pending: {},
        origin: { ca: { config: { auth: {} } }, address: '192.0.2.1', now: 0, presented: [] },
      } as unknown as { signers: Signers; secrets: SharedSecrets; pending: PendingRequests; origin: Origin };
      const authenticator = new Authenticator(parts.signers, parts.secrets, parts.pending);
      return (done) => authenticator.authenticate(message, parts.origin).then(done);
    },
  ],
  [
    'key generation',
    async () => {
      const generator = new KeyGenerator();
      // With one of the two places left, keys end in the order in which they began. The threads of the pool promise no order.
      const held = await generator.generate('ec:P-256');
      ended.push(() => held.dispose());
      return async (done) => {
        const key = await generator.generate('ec:P-256');
        done();
        key.dispose();
      };
    },
  ],
  [
    'a library in a separate process, such as that of an HSM or of Kerberos',
    async () => {
      const child = new IsolatedProcess({
        module: new URL('./example-child.ts', import.meta.url),
        code: 'PKCS11',
        subject: 'the example',
        env: {},
        init: 'hello',
        startTimeoutMs: 30_000,
        concurrency: 2,
        queueLimit: 256,
        retryAfter: 1,
        log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      });
      ended.push(() => child.stop());
      await child.start();
      return (done) => child.call('later', 1, { deadlineMs: 60_000 }).then(done);
    },
  ],
  [
    "the agent's session at Dogtag",
    () => {
      const replica = new Replica('https://127.0.0.1:1', 'ca', { ca: '', cert: '', key: '' });
      ended.push(() => replica.close());
      return Promise.resolve((done) => replica.session(Date.now() + 60_000, () => pause(1).then(done)));
    },
  ],
  [
    'OCSP',
    async () => {
      const { ca, signer, clock } = await fixture(folder);
      const store = { getCertificates: () => pause(1).then(() => []) };
      const responder = new OcspResponder({ store, validity: 300, log, now: () => clock.now });
      return (done) => responder.answer(ca, signer, ocspRequest(ca, [madeUp()])).then(done);
    },
  ],
];

test.each(QUEUES)('%s', async (_, makeWork) => {
  const work = await makeWork();
  const order: string[] = [];
  const ask = (party: string) => runForRequest({ requestId: party, party }, () => work(() => void order.push(party)));
  await Promise.all([...Array.from({ length: 60 }, () => ask('flood')), ask('other')]);
  expect(order).toHaveLength(61);
  // At most two of the flood had their place already, and as many may end before it.
  expect(order.indexOf('other')).toBeLessThanOrEqual(4);
});
