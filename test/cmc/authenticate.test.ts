/** RFC 5272 §3.2 and RFC 6402 §2.5: who sent a message, by its signature, its identity proof and its TLS connection. */
import { describe, expect, test } from 'vitest';
import type { MtlsIdentity } from '../../src/auth/identity.ts';
import type { Ca } from '../../src/ca/router.ts';
import { Authenticator, type Voucher } from '../../src/cmc/authenticate.ts';
import { readContent, readEnvelope, type Message } from '../../src/cmc/message.ts';
import type { PendingRequests } from '../../src/cmc/pending.ts';
import { unauthenticated } from '../../src/cmc/refusal.ts';
import type { Origin, Role, Sender } from '../../src/cmc/sender.ts';
import type { SharedSecrets } from '../../src/cmc/shared-secrets.ts';
import type { Signers } from '../../src/cmc/signers.ts';
import { EstuaryError, forbidden, unavailable } from '../../src/errors.ts';
import type { SharedSecret } from '../../src/pki/cmc/identity-proof.ts';
import type { PkiDataContent } from '../../src/pki/cmc/pki-data.ts';
import type { CmsSigner } from '../../src/pki/cms/cms.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { NOW } from '../auth/chain.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import { fullRequest, ownKeyIdentifier, requestedKey, tcr } from '../support/cmc.ts';
import { createIdentityProof } from '../support/cmc-secrets.ts';
import { buildCsr, extensionRequest, makeKey } from '../support/csr.ts';
import { outcome, part, senderOf } from './support.ts';

const issuing = await makeCa('CN=Issuing');
const issuer = parseCertificate(issuing.der);
const certified = async (subject: string): Promise<Certificate> =>
  parseCertificate((await makeClient(subject, issuing)).der);
const device = await certified('CN=device-1');
const renewed = await certified('CN=device-1');
const other = await certified('CN=device-2');
const ra = await certified('CN=RA');

const SHARED: SharedSecret = { secret: Buffer.from('secret'), identification: 'device 7' };
const GUESS: SharedSecret = { ...SHARED, secret: Buffer.from('guess') };
const key = makeKey();
const csr = buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] });

interface Content {
  readonly signer?: CmsSigner;
  /** What an identityProofV2 of the message is made with. */
  readonly proof?: SharedSecret;
  /** An identityProof, whose hash is SHA-1. */
  readonly outdated?: boolean;
}

const PROOF = 8;

/** A request that its own key signs, unless another signer is given. */
async function messageWith({ signer = requestedKey(key), proof, outdated = false }: Content = {}): Promise<Message> {
  const reqSequence = [tcr(1, csr)];
  const read = async (controlSequence: PkiDataContent['controlSequence']) =>
    readContent(readEnvelope(await fullRequest({ controlSequence, reqSequence }, { signers: [signer] })));
  const { reqSequenceBytes } = (await read([])).data;
  return read([
    part(7, 'identification', SHARED.identification ?? ''),
    ...(proof ? [part(PROOF, 'identityProofV2', createIdentityProof(reqSequenceBytes, proof))] : []),
    ...(outdated ? [part(PROOF, 'identityProof', Buffer.alloc(20))] : []),
  ]);
}

interface At {
  /** The certificate of the signer: in the message, or in the store. */
  readonly presented?: Certificate;
  readonly stored?: Certificate;
  /** Whether its key verifies the signature. */
  readonly verified?: boolean;
  readonly tls?: Certificate | EstuaryError;
  /** The methods that the label accepts. */
  readonly methods?: readonly string[];
  /** An error is thrown for every certificate. */
  readonly rejected?: Error;
  readonly voucher?: Voucher;
}

/** The sender, as the server with these certificates sees it; the RA is `ra`. */
function authenticated(message: Message, at: At = {}): Promise<Sender> {
  const { presented, stored, verified = true, tls, methods, rejected, voucher } = at;
  const found = (certificate?: Certificate) => Promise.resolve(certificate && { certificate, verified });
  const signers = {
    presented: () => found(presented),
    stored: () => found(stored),
    accept: (certificate: Certificate) => {
      if (rejected !== undefined) return Promise.reject(rejected);
      const role: Role = certificate === ra ? 'ra' : 'subscriber';
      return Promise.resolve({ role, issuer, issuedHere: true });
    },
  } as unknown as Signers;
  const secrets = {
    verify: (_: unknown, { bodyPart }: { bodyPart: number }, check: (shared: SharedSecret) => boolean) =>
      check(SHARED) ? Promise.resolve(SHARED) : Promise.reject(unauthenticated(bodyPart, 'The secret is wrong.')),
  } as unknown as SharedSecrets;
  const pending = { ofSigner: () => Promise.resolve(undefined) } as unknown as PendingRequests;
  const ca = { label: 'devices', config: { auth: { methods } } } as unknown as Ca;
  const identity =
    tls === undefined || tls instanceof EstuaryError
      ? tls
      : ({ certificate: tls, issuer, issuedHere: true } as unknown as MtlsIdentity);
  const origin: Origin = {
    ...{ ca, address: '192.0.2.1', now: NOW, tls: identity, presented: [], channelBinding: undefined },
  };
  return new Authenticator(signers, secrets, pending).authenticate(message, origin, voucher);
}

const covering = (...parts: readonly (number | undefined)[]): Voucher => ({
  ra: senderOf('ra'),
  covers: (control) => parts.includes(control),
});

describe('a message that names its own request as its signer', () => {
  test('is not authenticated if another key signed it: badMessageCheck, for every TLS client', async () => {
    const forged = await messageWith({
      signer: {
        ...requestedKey(makeKey()),
        sid: { kind: 'subjectKeyIdentifier', keyIdentifier: subjectKeyIdentifier(key.spki) },
      },
    });
    for (const at of [{}, { tls: device }])
      expect(await outcome(() => authenticated(forged, at))).toBe('400 badMessageCheck [0]');
  });

  test("is from the client of the TLS connection, but on an RA's from the holder of the key's certificate", async () => {
    const message = await messageWith();
    const signingKey = key.spki;
    expect(await authenticated(message, { tls: device })).toMatchObject({ certificate: device, signingKey });
    expect(await authenticated(message, { tls: device, stored: other })).toMatchObject({ certificate: device });
    const carried = await authenticated(message, { tls: ra, stored: other });
    expect(carried).toMatchObject({ certificate: other, role: 'subscriber', signingKey: undefined, carried: true });
    expect(await authenticated(message, { stored: other }), 'without a TLS client').toMatchObject({
      certificate: other,
    });
    expect(await authenticated(message, { tls: ra })).toMatchObject({
      certificate: ra,
      role: 'subscriber',
      signingKey,
    });
  });
});

describe('a message that the key of a certificate signed', () => {
  test('has to be signed by it: badMessageCheck; 401 if nothing is known by the name of the signer', async () => {
    const message = await messageWith({ signer: requestedKey(makeKey()) });
    for (const at of [{ presented: device }, { stored: device }]) {
      expect(await authenticated(message, at)).toMatchObject({ certificate: device });
      const forged = () => authenticated(message, { ...at, verified: false, tls: device });
      expect(await outcome(forged)).toBe('400 badMessageCheck [0]');
    }
    expect(await outcome(() => authenticated(message, { tls: device }))).toBe('401 badIdentity [0]');
  });

  test('comes over a connection of the same holder, or of an RA', async () => {
    const message = await messageWith();
    const from = (tls?: Certificate) => authenticated(message, { presented: device, ...(tls && { tls }) });
    for (const tls of [undefined, device, renewed]) {
      const sender = await from(tls);
      expect(sender).toMatchObject({ certificate: device, role: 'subscriber', issuedHere: true });
      expect(sender.carried).toBeUndefined();
    }
    expect(await from(ra)).toMatchObject({ certificate: device, role: 'subscriber', carried: true });
    expect(await outcome(() => from(other))).toBe('403 badIdentity [0]');
  });

  test('and that shows a secret counts as from the holder of the secret; an RA stays an RA', async () => {
    const message = await messageWith({ proof: SHARED });
    expect(await authenticated(message, { presented: device })).toMatchObject({
      ...{ certificate: device, secret: SHARED, signingKey: device.spki, role: 'subscriber' },
    });
    const sender = await authenticated(message, { presented: ra });
    expect(sender).toMatchObject({ certificate: ra, role: 'ra', secret: undefined });
  });

  test('falls back to the secret if the certificate is refused, but not if it cannot be checked now', async () => {
    const message = await messageWith({ proof: SHARED });
    const refused = { presented: device, rejected: unauthenticated(0, 'The certificate is revoked.') };
    const sender = await authenticated(message, refused);
    expect(sender).toMatchObject({ certificate: undefined, secret: SHARED, signingKey: device.spki });
    expect(await outcome(async () => authenticated(await messageWith(), refused))).toBe('401 badIdentity [0]');
    const rejected = unavailable('STORE_UNAVAILABLE', 'try again later');
    expect(await outcome(() => authenticated(message, { presented: device, rejected }))).toBe('503 STORE_UNAVAILABLE');
  });
});

test('a method that the label does not accept authenticates nobody, and its credentials are not checked', async () => {
  const proven = await messageWith({ proof: SHARED });
  const guessed = await messageWith({ proof: GUESS });
  const byCertificate = { presented: device, methods: ['mtls'] };
  for (const message of [proven, guessed])
    expect(await authenticated(message, byCertificate)).toMatchObject({ certificate: device, secret: undefined });
  const bySecret = { presented: device, methods: ['cmc'] };
  const sender = await authenticated(proven, bySecret);
  expect(sender).toMatchObject({ certificate: undefined, secret: SHARED });
  expect(await outcome(async () => authenticated(await messageWith(), bySecret))).toBe('401 badIdentity [0]');
});

test('without another credential, the refusal of the TLS certificate is the answer', async () => {
  const tls = forbidden('CLIENT_CERTIFICATE_NOT_ACCEPTED', 'the certificate is not accepted here');
  expect(await outcome(async () => authenticated(await messageWith(), { tls }))).toBe(
    '403 CLIENT_CERTIFICATE_NOT_ACCEPTED',
  );
  expect(await outcome(async () => authenticated(await messageWith()))).toBe('401 badIdentity [0]');
  expect(await authenticated(await messageWith({ proof: SHARED }), { tls })).toMatchObject({ secret: SHARED });
});

describe('an identity proof', () => {
  test('is verified, unless an RA states that it has done so', async () => {
    const guessed = await messageWith({ proof: GUESS });
    const check = (voucher?: Voucher) =>
      outcome(() => authenticated(guessed, { tls: device, ...(voucher && { voucher }) }));
    for (const voucher of [undefined, covering(), covering(undefined), covering(PROOF + 1)])
      expect(await check(voucher)).toBe(`401 badIdentity [${PROOF}]`);
    expect(await check(covering(PROOF))).toBe('ok');
  });

  test('with SHA-1 is badAlg, unless an RA states that it has verified it', async () => {
    const message = await messageWith({ outdated: true });
    const check = (voucher?: Voucher) =>
      outcome(() => authenticated(message, { tls: device, ...(voucher && { voucher }) }));
    for (const voucher of [undefined, covering(), covering(undefined), covering(PROOF + 1)])
      expect(await check(voucher)).toBe(`400 badAlg [${PROOF}]`);
    expect(await check(covering(PROOF))).toBe('ok');
  });
});
