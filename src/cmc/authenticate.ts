/** From a received message to its sender: signature or MAC, identity proof, TLS identity (docs/guides/cmc.md). */
import { isSameHolder } from '../auth/certificate-holder.ts';
import { countsAt } from '../config/rules/names.ts';
import { EstuaryError, unavailable } from '../errors.ts';
import { FairLimiter } from '../process/fair-limiter.ts';
import { verifyAuthenticatedData, type AuthenticatedData } from '../pki/cms/authenticated-data.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { verifyIdentityProof, type SharedSecret } from '../pki/cmc/identity-proof.ts';
import { requestOfSigner } from '../pki/cmc/tagged-request.ts';
import { checkUnsigned, control, readableRequests, type Envelope, type Message } from './message.ts';
import type { PendingRequests, QueuedSigner } from './pending.ts';
import { badMessageCheck, CmcRefusal, notAllowed, unauthenticated } from './refusal.ts';
import {
  certificateIdentity,
  isRa,
  methodOf,
  namedIdentity,
  secretIdentity,
  type Origin,
  type Sender,
} from './sender.ts';
import type { SharedSecrets } from './shared-secrets.ts';
import { isSignedBy, type Signers } from './signers.ts';

/** An RA's statement about a message inside its own (RFC 6402 §2.5). */
export interface Voucher {
  readonly ra: Sender;
  /** The RA proved the identity of the message's sender, or checked this control in it. */
  readonly covers: (control: BodyPartID | undefined) => boolean;
}

type SignedEnvelope = Extract<Envelope, { readonly kind: 'signed' }>;

type KeyHolder =
  | { readonly kind: 'certificate'; readonly certificate: Certificate }
  /** A request of the message, by its public key. */
  | { readonly kind: 'request'; readonly spki: Buffer }
  | ({ readonly kind: 'queued-request' } & QueuedSigner)
  | { readonly kind: 'secret'; readonly secret: SharedSecret }
  | { readonly kind: 'nobody' };

/** Deriving a key from a password for AuthenticatedData takes up to 0.1 s of a shared pool thread. */
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
   * Ignores credentials of methods that the label does not accept: a shared secret is the method `cmc`, a certificate
   * the method `mtls`. A shared secret authenticates the sender even if the signer's certificate is invalid.
   * @param voucher of the RA whose message contains this one
   * @throws CmcRefusal 400 badMessageCheck for an invalid signature; 401 badIdentity without an authenticated sender;
   * 403 badIdentity if the certificate is not accepted here or is not that of the TLS connection; EstuaryError 401
   * `LOCKED_OUT`, 503
   */
  async authenticate(message: Message, origin: Origin, voucher?: Voucher): Promise<Sender> {
    const holder = await this.#keyHolder(message, origin);
    // A proof in the message must be valid even if the MAC has already shown the secret.
    const proven = await this.#provenSecret(message, origin, voucher);
    const secret = holder.kind === 'secret' ? holder.secret : proven;
    switch (holder.kind) {
      case 'certificate':
        return this.#byCertificate(message, holder.certificate, secret, origin);
      case 'request':
        if (secret !== undefined) return this.#bySecret(secret, holder.spki, origin);
        return this.#byRequest(message, holder.spki, origin, voucher);
      case 'secret':
        return this.#bySecret(holder.secret, undefined, origin);
      case 'queued-request':
        checkMethod(origin, methodOf(holder.requesterId));
        return { ...plain(namedIdentity(holder.requester)), limitedTo: { queuedRequest: holder.id } };
      case 'nobody':
        return { ...plain(namedIdentity('unsigned')), limitedTo: 'shared-secret revocation' };
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
    const presented = await this.#signers.presented(signedData, signer, origin);
    if (presented?.verified === true) return { kind: 'certificate', certificate: presented.certificate };
    // Before the store: the key of a request may have an older certificate.
    const request = requestOfSigner(signedData, readableRequests(message));
    if (request !== undefined && (await isSignedBy(signedData, signer, request.publicKey)))
      return { kind: 'request', spki: request.publicKey.spki };
    const found = presented ?? (await this.#signers.stored(signedData, signer, origin.now));
    if (found?.verified === true) return { kind: 'certificate', certificate: found.certificate };
    if (found !== undefined || request !== undefined) throw badMessageCheck("The message's signature is not valid.");
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
    checkMethod(origin, 'cmc');
    const identification = control(message, 'identification')?.value;
    return this.#secrets.verify(identification, attempt(origin, 0), ({ secret }) => {
      const password = Buffer.concat([Buffer.from(identification ?? '', 'utf8'), secret]);
      return this.#derivations.run(() => verifyAuthenticatedData(data, password), { waitMs: LONGEST_WAIT });
    });
  }

  /**
   * The secret that an identity proof shows; undefined without a proof, if an RA has checked it, or if the label
   * ignores secrets.
   */
  async #provenSecret(message: Message, origin: Origin, voucher?: Voucher): Promise<SharedSecret | undefined> {
    if (!countsAt(origin.ca.config, 'cmc')) return undefined;
    const outdated = control(message, 'identityProof');
    if (outdated !== undefined && voucher?.covers(outdated.bodyPartID) !== true)
      throw new CmcRefusal(
        'bad-request',
        'badAlg',
        [outdated.bodyPartID],
        'The control identityProof uses SHA-1. Use identityProofV2.',
      );
    const proof = control(message, 'identityProofV2');
    if (proof === undefined || voucher?.covers(proof.bodyPartID) === true) return undefined;
    return this.#secrets.verify(
      control(message, 'identification')?.value,
      attempt(origin, proof.bodyPartID),
      (shared) => verifyIdentityProof(proof, message.data.reqSequenceBytes, shared),
    );
  }

  async #byCertificate(
    message: Message,
    certificate: Certificate,
    secret: SharedSecret | undefined,
    origin: Origin,
  ): Promise<Sender> {
    try {
      const sender = await this.#certified(message, certificate, origin);
      if (isRa(sender) || secret === undefined) return sender;
      return { ...(await this.#bySecret(secret, certificate.spki, origin)), certificate, issuer: sender.issuer };
    } catch (error) {
      if (secret === undefined || !(error instanceof CmcRefusal)) throw error;
      return this.#bySecret(secret, certificate.spki, origin);
    }
  }

  async #certified({ envelope }: Message, certificate: Certificate, origin: Origin): Promise<Sender> {
    checkMethod(origin, 'mtls');
    const sent = envelope.kind === 'signed' ? envelope.signedData.certificates : [];
    const accepted = await this.#signers.accept(certificate, [...sent, ...origin.presented], origin);
    const { issuer } = accepted;
    const carried = await this.#checkTls(certificate, issuer, origin);
    return { ...plain(certificateIdentity(certificate, issuer)), ...accepted, certificate, ...carried };
  }

  async #bySecret(secret: SharedSecret, signingKey: Buffer | undefined, origin: Origin): Promise<Sender> {
    const identity = secretIdentity(secret.identification ?? '');
    return { ...plain(identity), secret, signingKey, ...(await this.#carried(origin)) };
  }

  /** The client of the TLS connection must be the signer, unless it is an RA that carries the message. */
  async #checkTls(
    certificate: Certificate,
    issuer: Certificate | undefined,
    origin: Origin,
  ): Promise<Pick<Sender, 'carried'>> {
    const { tls } = origin;
    if (tls === undefined || tls instanceof EstuaryError) return {};
    if (issuer !== undefined && isSameHolder(tls, { certificate, issuer })) return {};
    const carried = await this.#carried(origin);
    if (carried.carried === undefined)
      throw notAllowed(0, 'The signer of the message is not the client of this TLS connection.');
    return carried;
  }

  /** Whether the TLS connection is a registration authority's. */
  async #carried(origin: Origin): Promise<Pick<Sender, 'carried'>> {
    const { tls } = origin;
    if (tls === undefined || tls instanceof EstuaryError) return {};
    const { role } = await this.#signers.accept(tls.certificate, origin.presented, origin);
    return role === 'subscriber' ? {} : { carried: true };
  }

  /**
   * Signed only with a requested key: an RA, the TLS connection or an older certificate of the key must identify the
   * sender.
   */
  async #byRequest(message: Message, spki: Buffer, origin: Origin, voucher: Voucher | undefined): Promise<Sender> {
    if (voucher?.covers(undefined) === true)
      return { ...plain(voucher.ra.identity), vouchedFor: true, signingKey: spki };
    const { tls } = origin;
    const client = tls instanceof EstuaryError ? undefined : tls;
    const { envelope } = message;
    if (envelope.kind === 'signed' && (client === undefined || (await this.#carried(origin)).carried === true)) {
      const found = await this.#signers.stored(envelope.signedData, envelope.signer, origin.now);
      if (found?.verified === true) return this.#certified(message, found.certificate, origin);
    }
    if (tls instanceof EstuaryError) throw tls;
    if (client === undefined) throw unauthenticated(0, 'The message does not authenticate its sender.');
    const { certificate, issuer, issuedHere } = client;
    // Not as an RA: it may carry another author's message, of which it has signed nothing.
    const sender = plain(certificateIdentity(certificate, issuer));
    return { ...sender, certificate, issuer, issuedHere, signingKey: spki };
  }
}

const NOT_ACCEPTED = {
  cmc: 'This CA does not accept shared secrets.',
  mtls: 'This CA does not accept certificates for authentication.',
} as const;

/** @throws CmcRefusal 401 badIdentity */
function checkMethod({ ca }: Origin, method: keyof typeof NOT_ACCEPTED): void {
  if (!countsAt(ca.config, method)) throw unauthenticated(0, NOT_ACCEPTED[method]);
}

const plain = (identity: Sender['identity']): Sender => ({
  identity,
  role: 'subscriber',
  certificate: undefined,
  issuer: undefined,
  secret: undefined,
  signingKey: undefined,
});

const attempt = ({ address, ca, now }: Origin, bodyPart: BodyPartID) => ({
  address,
  caLabel: ca.label,
  now,
  bodyPart,
});
