/** RFC 5272 §6.3, §6.7 and §6.8: which names a sender of CMC may ask for, and what proves that it has the key. */
import { expect, test } from 'vitest';
import type { PopLinking } from '../../src/auth/channel-binding.ts';
import type { Ca } from '../../src/ca/router.ts';
import { requestIdOf, Requests, type MessageBase, type PopWitness } from '../../src/cmc/requests.ts';
import type { Sender } from '../../src/cmc/sender.ts';
import type { Authenticated } from '../../src/enrollment/authenticated.ts';
import type { Enrollment } from '../../src/enrollment/enrollment.ts';
import type { NameRight } from '../../src/enrollment/names.ts';
import { KEYED_WITNESS } from '../../src/pki/cmc/controls.ts';
import type { TaggedRequest } from '../../src/pki/cmc/pki-data.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { CertificateStore } from '../../src/store/certificate-store.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import { crm, tcr } from '../support/cmc.ts';
import { createPopLinkWitness } from '../support/cmc-secrets.ts';
import { buildCsr, csrAttribute, makeKey } from '../support/csr.ts';
import { messageOf, part, senderOf } from './support.ts';

const issuing = await makeCa('CN=Issuing');
const issuer = parseCertificate(issuing.der);
const certificate = parseCertificate((await makeClient('CN=device-1', issuing)).der);
const device = senderOf('subscriber', { certificate, issuer, issuedHere: true });
const shared = { secret: Buffer.from('secret'), identification: 'device 7' };
const ra = senderOf('configured-ra');

const key = makeKey();
const pkcs10 = tcr(1, buildCsr(key));
const unproven = (bodyPartID: number) => crm(bodyPartID, buildCrmf(key, { certReqId: bodyPartID, popo: null }));
const wrong = crm(1, buildCrmf(key, { signed: Buffer.from('another request') }));

const RANDOM = Buffer.alloc(64, 3);
const witnessOf = (secret: Buffer): Buffer => KEYED_WITNESS.encode(createPopLinkWitness(RANDOM, secret));
const linkedBy = (secret: Buffer) =>
  tcr(1, buildCsr(key, { attributes: [csrAttribute(OID.popLinkWitnessV2, witnessOf(secret))] }));

const MESSAGE_ID = '00000000-0000-4000-8000-000000000001';
const NO_WITNESS: PopWitness = { bodyIds: new Set(), trusted: false };
const vouching = (trusted: boolean): PopWitness => ({ bodyIds: new Set([1]), trusted });

interface Sent {
  readonly requests?: readonly TaggedRequest[];
  readonly by?: Sender;
  readonly witness?: PopWitness;
  readonly random?: boolean;
  readonly retaken?: boolean;
  readonly clientIdBinding?: 'off' | 'cn';
  /** Whether the sender's certificate may be renewed at this label. */
  readonly own?: boolean;
  readonly channelBinding?: MessageBase['channelBinding'];
}

async function sent(options: Sent = {}) {
  const { requests = [pkcs10], by = device, witness = NO_WITNESS, clientIdBinding = 'off', own = true } = options;
  const admitted: { readonly right: NameRight; readonly linking: PopLinking }[] = [];
  const lookedUp: string[] = [];
  let issued = 0;
  const enrollment = {
    admit: ({ right, linking }: Authenticated) => Promise.resolve(admitted.push({ right, linking })),
    authorize: () => ({}),
    certify: () => Promise.resolve({ status: 'issued', certificate: Buffer.of(++issued) }),
  } as unknown as Enrollment;
  const store = {
    findCertificateByRequest: (id: string) => {
      lookedUp.push(id);
      return Promise.resolve({ der: Buffer.from('issued before') });
    },
  } as unknown as CertificateStore;
  const ca = { label: 'devices', ownIsRecorded: true, hasRecorded: () => Promise.resolve(own) } as unknown as Ca;
  const base: MessageBase = {
    requestId: MESSAGE_ID,
    operation: 'fullcmc',
    ca,
    identity: by.identity,
    address: '192.0.2.1',
    events: [],
    channelBinding: options.channelBinding,
    retaken: options.retaken === true,
  };
  const message = messageOf(options.random === true ? [part(9, 'popLinkRandom', RANDOM)] : [], {
    reqSequence: requests,
  });
  const outcomes = await new Requests({ enrollment, store, clientIdBinding }).process(message, by, witness, base);
  const inShort = outcomes.map((outcome) => {
    if (outcome.kind === 'refused') {
      const { failInfo, bodyList, httpStatus } = outcome.refusal;
      return `${httpStatus} ${failInfo} ${JSON.stringify(bodyList)}`;
    }
    return outcome.kind === 'done' ? (outcome.certificates ?? []).map((der) => der.toString('latin1')) : outcome;
  });
  return { outcomes: inShort, admitted, lookedUp, issued };
}

const results = async (options: Sent) => (await sent(options)).outcomes;
const ISSUED = [['\x01']];
const POP_FAILED = ['400 popFailed [1]'];

test('a message that another process began gets the certificates issued then; no other message looks for them', async () => {
  const again = await sent({ retaken: true });
  expect(again).toMatchObject({ outcomes: [['issued before']], lookedUp: [requestIdOf(MESSAGE_ID, 1)], issued: 0 });
  expect(await sent()).toMatchObject({ outcomes: ISSUED, lookedUp: [], issued: 1 });
});

test('RFC 6402 §2.5: a registration authority, and a sender that it vouches for, may request any name; others only their own', async () => {
  const rightOf = async (by: Sender, own = true) => (await sent({ by, own, clientIdBinding: 'cn' })).admitted[0]?.right;
  expect(await rightOf(senderOf('ra'))).toEqual({ kind: 'any' });
  expect(await rightOf(senderOf('subscriber', { vouchedFor: true }))).toEqual({ kind: 'any' });
  expect(await rightOf(senderOf('subscriber', { secret: shared }))).toEqual({
    ...{ kind: 'secret', identification: 'device 7' },
  });
  expect(await rightOf(device)).toEqual({ kind: 'renewal', certificate });
  expect(await rightOf(device, false)).toMatchObject({
    kind: 'enrollment',
    identity: { method: 'mtls', certificate, issuer, issuedHere: true },
    ownSubject: true,
  });
  for (const more of [{}, { certificate }, { issuer }])
    expect(await results({ by: senderOf('subscriber', more) })).toEqual(['403 badIdentity [1]']);
});

test('RFC 5272 §6.8: a configured registration authority states possession of a key, but not against a wrong proof', async () => {
  expect(await results({ requests: [unproven(1)] })).toEqual(['400 popRequired [1]']);
  expect(await results({ requests: [unproven(1)], by: ra, witness: vouching(true) })).toEqual(ISSUED);
  expect(await results({ requests: [wrong], by: ra, witness: vouching(true) })).toEqual(POP_FAILED);
  // Nobody else may state it, even if the request has its own proof.
  for (const requests of [[unproven(1)], [pkcs10]])
    expect(await results({ requests, witness: vouching(false) })).toEqual(POP_FAILED);
});

test('RFC 5272 §6.7: one request without a proof rejects all requests of the message', async () => {
  const both = await sent({ requests: [pkcs10, unproven(2)] });
  expect(both).toMatchObject({ outcomes: ['400 popRequired [1]', '400 popRequired [2]'], issued: 0 });
  const other = tcr(2, buildCsr(makeKey()));
  expect(await results({ requests: [wrong, other] }), 'another rejection concerns one').toEqual([
    ...POP_FAILED,
    ['\x01'],
  ]);
});

test('RFC 5272 §6.3: the key is linked to the shared secret by a witness, by its signature, or by the names', async () => {
  const by = senderOf('subscriber', { secret: shared });
  const signing = (spki: Buffer) => ({ ...by, signingKey: spki });
  expect(await results({ by })).toEqual(POP_FAILED);
  expect(await results({ by, clientIdBinding: 'cn' })).toEqual(ISSUED);
  expect(await results({ by: signing(key.spki) })).toEqual(ISSUED);
  expect(await results({ by: signing(makeKey().spki) })).toEqual(POP_FAILED);
  for (const clientIdBinding of ['off', 'cn'] as const) {
    expect(await results({ by, random: true, clientIdBinding })).toEqual(POP_FAILED);
    const guessed = linkedBy(Buffer.from('guess'));
    expect(await results({ by, random: true, clientIdBinding, requests: [guessed] })).toEqual(POP_FAILED);
    const linked = linkedBy(shared.secret);
    expect(await results({ by, random: true, clientIdBinding, requests: [linked] })).toEqual(ISSUED);
  }
});

test('RFC 7030 §3.5: the TLS connection is bound unless a registration authority carries the message', async () => {
  const binding = () => Buffer.from('binding');
  const linking = async (by: Sender, more: Sent = {}) =>
    (await sent({ by, channelBinding: binding, clientIdBinding: 'cn', ...more })).admitted[0]?.linking;
  const carried = { kind: 'carried' };
  expect(await linking(device, { channelBinding: undefined })).toEqual(carried);
  expect(await linking({ ...device, carried: true })).toEqual(carried);
  expect(await linking(senderOf('subscriber', { vouchedFor: true }))).toEqual(carried);
  expect(await linking(senderOf('ra'))).toEqual(carried);
  const isLinked = (linked: boolean) => ({ kind: 'connection', binding, linked });
  // §6.3.3: the signature of the sender's certificate covers the request.
  expect(await linking(device)).toEqual(isLinked(true));
  // Signed only with the requested key: the sender is the client of the connection.
  expect(await linking({ ...device, signingKey: key.spki })).toEqual(isLinked(false));
  const bySecret = senderOf('subscriber', { secret: shared });
  expect(await linking(bySecret)).toEqual(isLinked(false));
  expect(await linking({ ...bySecret, signingKey: makeKey().spki })).toEqual(isLinked(false));
  expect(await linking({ ...bySecret, signingKey: key.spki })).toEqual(isLinked(true));
  expect(await linking(bySecret, { random: true })).toEqual(isLinked(true));
});
