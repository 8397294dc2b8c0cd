/** From a received message to its sender: signature or MAC, identity proof, TLS identity (docs/cmc.md). */
import { isSameHolder } from '../auth/certificate-holder.ts';
import { isOfCa } from '../enrollment/names.ts';
import { unavailable } from '../errors.ts';
import { FairLimiter } from '../process/fair-limiter.ts';
import { verifyAuthenticatedData, type AuthenticatedData } from '../pki/cms/authenticated-data.ts';
import { isSameCertificate, type Certificate } from '../pki/x509/certificate.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { verifyIdentityProof, type SharedSecret } from '../pki/cmc/identity-proof.ts';
import { requestOfSigner } from '../pki/cmc/requested-key-signer.ts';
import { checkUnsigned, control, readableRequests, type Envelope, type Message } from './message.ts';
import type { PendingRequests } from './pending.ts';
import { badMessageCheck, CmcRefusal, notAllowed, unauthenticated } from './refusal.ts';
import { certificateIdentity, isRa, namedIdentity, secretIdentity, type Origin, type Sender } from './sender.ts';
import type { SharedSecrets } from './shared-secrets.ts';
import { isSignedBy, type Signers } from './signers.ts';

/** An RA's word for a message inside of its own (RFC 6402 §2.5). */
export interface Voucher {
  readonly ra: Sender;
  /** The RA proved the identity of the whole message's sender, or checked this control in it. */
  readonly covers: (control: BodyPartID | undefined) => boolean;
}

type SignedEnvelope = Extract<Envelope, { readonly kind: 'signed' }>;

/** Who the key behind the signature or the MAC belongs to. */
type KeyHolder =
  | { readonly kind: 'certificate'; readonly certificate: Certificate }
  | { readonly kind: 'request'; readonly bodyPartID: BodyPartID }
  | { readonly kind: 'queued-request'; readonly id: string; readonly requester: string }
  | { readonly kind: 'secret'; readonly secret: SharedSecret }
  | { readonly kind: 'nobody' };

/** Deriving keys from passwords for AuthenticatedData takes up to 0.1 s of a thread of the pool that all share. */
const DERIVATIONS_AT_A_TIME = 1;
const DERIVATIONS_WAITING = 64;
const LONGEST_WAIT = 10_000;

export class Authenticator {
  readonly #signers: Signers;
  readonly #secrets: SharedSecrets;
  readonly #pending: PendingRequests;
  readonly #derivations = new FairLimiter({
    concurrency: DERIVATIONS_AT_A_TIME,
    queue: DERIVATIONS_WAITING,
    busy: (detail) => unavailable('PASSWORD_CHECK_BUSY', 'too many passwords to check; try again later', { detail }),
  });

  constructor(signers: Signers, secrets: SharedSecrets, pending: PendingRequests) {
    this.#signers = signers;
    this.#secrets = secrets;
    this.#pending = pending;
  }

  /**
   * @param voucher of the RA whose message this one came in
   * @throws CmcRefusal 400 badMessageCheck: the signature is wrong; 401 badIdentity: the sender is nobody here; 403
   *   badIdentity: it is somebody else than the TLS connection's, or another CA's; EstuaryError 401 `LOCKED_OUT`, 503
   */
  async authenticate(message: Message, origin: Origin, voucher?: Voucher): Promise<Sender> {
    const holder = await this.#keyHolder(message, origin);
    // A proof that is there has to be right, also where the MAC has shown the secret already.
    const proven = await this.#provenSecret(message, origin, voucher);
    const secret = holder.kind === 'secret' ? holder.secret : proven;
    const signingRequest = holder.kind === 'request' ? holder.bodyPartID : undefined;
    switch (holder.kind) {
      case 'certificate':
        return this.#certified(message, holder.certificate, secret, origin);
      case 'queued-request':
        return { ...plain(namedIdentity(holder.requester)), limitedTo: { queuedRequest: holder.id } };
      case 'nobody':
        return { ...plain(namedIdentity('unsigned')), limitedTo: 'shared-secret revocation' };
      default:
        if (secret?.identification !== undefined)
          return {
            ...plain(secretIdentity(secret.identification)),
            secret,
            signingRequest,
            ...(await this.#carried(origin)),
          };
        return this.#uncertified(origin, voucher, signingRequest);
    }
  }

  async #keyHolder(message: Message, origin: Origin): Promise<KeyHolder> {
    const { envelope } = message;
    switch (envelope.kind) {
      case 'unsigned':
        checkUnsigned(message);
        return { kind: 'nobody' };
      case 'authenticated':
        return { kind: 'secret', secret: await this.#authenticatedBy(message, envelope.data, origin) };
      case 'signed':
        return this.#signedBy(message, envelope, origin);
    }
  }

  async #signedBy(message: Message, { signedData, signer }: SignedEnvelope, origin: Origin): Promise<KeyHolder> {
    const found = await this.#signers.find(signedData, signer, origin);
    if (found !== undefined) {
      if (!found.verified) throw badMessageCheck("The message's signature is not valid.");
      return { kind: 'certificate', certificate: found.certificate };
    }
    const request = requestOfSigner(signedData, readableRequests(message));
    if (request !== undefined) {
      if (await isSignedBy(signedData, signer, request.publicKey))
        return { kind: 'request', bodyPartID: request.bodyPartID };
      throw badMessageCheck("The message's signature is not valid.");
    }
    const queued = await this.#pending.ofSigner(message, signedData, signer, origin.ca);
    if (queued !== undefined) return { kind: 'queued-request', ...queued };
    throw unauthenticated(
      0,
      'The signer is unknown: no certificate is known by its name, and no request of this message has it as its subjectKeyIdentifier ' +
        'extension, which a request whose own key signs the message must have (RFC 5272 §3.2).',
    );
  }

  /** RFC 5272 §3.2: the password is the identification followed by the secret. */
  async #authenticatedBy(message: Message, data: AuthenticatedData, origin: Origin): Promise<SharedSecret> {
    const identification = control(message, 'identification')?.value;
    return this.#secrets.verify(identification, attempt(origin, 0), ({ secret }) => {
      const password = Buffer.concat([Buffer.from(identification ?? '', 'utf8'), secret]);
      return this.#derivations.run(() => verifyAuthenticatedData(data, password), { waitMs: LONGEST_WAIT });
    });
  }

  /** The secret that an identity proof shows; undefined where there is no proof, or an RA has checked it. */
  async #provenSecret(message: Message, origin: Origin, voucher?: Voucher): Promise<SharedSecret | undefined> {
    const outdated = control(message, 'identityProof');
    if (outdated !== undefined && voucher?.covers(outdated.bodyPartID) !== true)
      throw new CmcRefusal(
        'bad-request',
        'badAlg',
        [outdated.bodyPartID],
        'The control identityProof uses SHA-1; identityProofV2 does not.',
      );
    const proof = control(message, 'identityProofV2');
    if (proof === undefined || voucher?.covers(proof.bodyPartID) === true) return undefined;
    return this.#secrets.verify(
      control(message, 'identification')?.value,
      attempt(origin, proof.bodyPartID),
      (shared) => verifyIdentityProof(proof, message.data.reqSequenceBytes, shared),
    );
  }

  async #certified(
    { envelope }: Message,
    certificate: Certificate,
    secret: SharedSecret | undefined,
    origin: Origin,
  ): Promise<Sender> {
    const sent = envelope.kind === 'signed' ? envelope.signedData.certificates : [];
    const standing = await this.#signers.standing(certificate, [...sent, ...origin.presented], origin);
    const carried = await this.#checkTls(certificate, standing.issuer, origin);
    const { role, issuer } = standing;
    const sender = { ...plain(certificateIdentity(certificate, issuer)), role, certificate, issuer, ...carried };
    if (isRa(sender)) return sender;
    if (secret?.identification !== undefined)
      return { ...plain(secretIdentity(secret.identification)), secret, certificate, issuer, ...carried };
    await checkCa(origin, certificate);
    return sender;
  }

  /** Contract §3: the TLS identity is the signer's, unless an RA carries the message. */
  async #checkTls(
    certificate: Certificate,
    issuer: Certificate | undefined,
    origin: Origin,
  ): Promise<Pick<Sender, 'carried'>> {
    const { tls } = origin;
    if (tls === undefined || isSameCertificate(tls.certificate, certificate)) return {};
    if (issuer !== undefined && isSameHolder(tls, { certificate, issuer })) return {};
    const carried = await this.#carried(origin);
    if (carried.carried === undefined)
      throw notAllowed(0, 'The message is signed by somebody else than the client of this TLS connection.');
    return carried;
  }

  /** Whether the TLS connection is a registration authority's. */
  async #carried(origin: Origin): Promise<Pick<Sender, 'carried'>> {
    if (origin.tls === undefined) return {};
    const { role } = await this.#signers.standing(origin.tls.certificate, origin.presented, origin);
    return role === 'subscriber' ? {} : { carried: true };
  }

  /** Signed with a requested key alone: who it is, an RA or the TLS connection has to say. */
  async #uncertified(
    origin: Origin,
    voucher: Voucher | undefined,
    signingRequest: BodyPartID | undefined,
  ): Promise<Sender> {
    if (voucher?.covers(undefined) === true) return { ...plain(voucher.ra.identity), vouchedFor: true, signingRequest };
    const { tls } = origin;
    if (tls === undefined) throw unauthenticated(0, 'Nothing in the message proves who its sender is.');
    const { certificate, issuer } = tls;
    await checkCa(origin, certificate);
    // Never as an RA: it may be carrying what somebody else wrote, and has signed none of it.
    return { ...plain(certificateIdentity(certificate, issuer)), certificate, issuer, signingRequest };
  }
}

async function checkCa({ ca }: Origin, certificate: Certificate): Promise<void> {
  if (!(await isOfCa(ca, certificate))) throw notAllowed(0, "The sender's certificate was not issued by this CA.");
}

const plain = (identity: Sender['identity']): Sender => ({
  identity,
  role: 'subscriber',
  certificate: undefined,
  issuer: undefined,
  secret: undefined,
  signingRequest: undefined,
});

const attempt = ({ address, ca, now }: Origin, bodyPart: BodyPartID) => ({
  address,
  caLabel: ca.label,
  now,
  bodyPart,
});
