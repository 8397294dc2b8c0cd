/**
 * Processes a message's certification requests: proof of possession, names, policy, issuance. Each has its own outcome.
 */
import { createHash } from 'node:crypto';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { ClientIdBinding } from '../auth/identity.ts';
import { mtlsIdentity } from '../auth/mtls/mtls.ts';
import type { Ca } from '../ca/router.ts';
import { Authenticated } from '../enrollment/authenticated.ts';
import type { Authorized } from '../enrollment/authorized.ts';
import type { Enrollment } from '../enrollment/enrollment.ts';
import { isOfCa, type NameRight } from '../enrollment/names.ts';
import { Proven } from '../enrollment/proven.ts';
import type { RequestBase } from '../enrollment/request.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { CmcError } from '../pki/cmc/cmc-error.ts';
import { verifyPopLinkWitness } from '../pki/cmc/identity-proof.ts';
import {
  verifyProofOfPossession,
  type CmcCertificateRequest,
  type ProofOfPossession,
} from '../pki/cmc/tagged-request.ts';
import { control, type Message, type RequestPart } from './message.ts';
import { asRefusal, CmcRefusal, done, notAllowed, outcomeOf, type PartOutcome } from './refusal.ts';
import { isRa, type Origin, type Sender } from './sender.ts';

interface RequestsOptions {
  readonly enrollment: Enrollment;
  readonly store: CertificateStore;
  /** `otp.bind_client_id`: a shared secret's identification counts as the client_id. */
  readonly clientIdBinding: ClientIdBinding;
}

/** Common to a message's requests. `requestId` is the message's; each request derives its own. */
export interface MessageBase extends RequestBase, Pick<Origin, 'channelBinding'> {
  /** The message was begun before: certificates may have been issued for it. */
  readonly retaken: boolean;
}

/** RFC 5272 §6.8: requests whose keys an RA states that it has checked, and whether it is trusted with this. */
export interface PopWitness {
  readonly bodyIds: ReadonlySet<BodyPartID>;
  readonly trusted: boolean;
}

/** Concurrent requests of one message: their commits share a transaction. */
const AT_A_TIME = 8;

type Checked =
  | { readonly bodyPartID: BodyPartID; readonly authorized: Authorized }
  /** Issued when the message came before. */
  | { readonly bodyPartID: BodyPartID; readonly certificate: Buffer }
  | { readonly bodyPartID: BodyPartID; readonly refusal: CmcRefusal };

export class Requests {
  readonly #options: RequestsOptions;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** Checks every request before issuing any. Never throws. */
  async process(message: Message, sender: Sender, witness: PopWitness, base: MessageBase): Promise<PartOutcome[]> {
    const checked: Checked[] = [];
    for (const part of message.requests) checked.push(await this.#check(part, message, sender, witness, base));
    const unproven = checked.find((request) => 'refusal' in request && request.refusal.failInfo === 'popRequired');
    // RFC 5272 §6.7: if one request lacks proof of possession, all requests of the message are rejected.
    if (unproven !== undefined && 'refusal' in unproven)
      return checked.map((request) => ({
        kind: 'refused',
        refusal: 'refusal' in request ? request.refusal : unproven.refusal.about(request.bodyPartID),
      }));
    const outcomes: PartOutcome[] = [];
    for (let i = 0; i < checked.length; i += AT_A_TIME)
      outcomes.push(...(await Promise.all(checked.slice(i, i + AT_A_TIME).map((request) => this.#enroll(request)))));
    return outcomes;
  }

  async #check(
    part: RequestPart,
    message: Message,
    sender: Sender,
    witness: PopWitness,
    base: MessageBase,
  ): Promise<Checked> {
    const { bodyPartID } = part;
    if ('refusal' in part) return part;
    const { request } = part;
    const requestId = requestIdOf(base.requestId, bodyPartID);
    const { enrollment, clientIdBinding, store } = this.#options;
    try {
      const row = base.retaken ? await store.findCertificateByRequest(requestId) : undefined;
      if (row !== undefined) return { bodyPartID, certificate: row.der };
      const right = await rightOf(request, sender, base.ca);
      const linking = linkingOf(request, message, sender, base);
      const authenticated = Authenticated.bySender({ ...base, requestId, linking }, sender.identity, right);
      const admitted = await enrollment.admit(authenticated);
      const proof = await proofOfPossession(request, witness);
      if (right.kind === 'secret') checkLinked(request, message, sender, clientIdBinding);
      return { bodyPartID, authorized: await enrollment.authorize(admitted, Proven.byCmc(request, proof)) };
    } catch (error) {
      return { bodyPartID, refusal: asRefusal(error, bodyPartID) };
    }
  }

  #enroll(checked: Checked): Promise<PartOutcome> {
    const { bodyPartID } = checked;
    if ('refusal' in checked) return Promise.resolve({ kind: 'refused', refusal: checked.refusal });
    if ('certificate' in checked) return Promise.resolve(done(bodyPartID, { certificates: [checked.certificate] }));
    return outcomeOf(bodyPartID, async () => {
      const outcome = await this.#options.enrollment.certify(checked.authorized);
      return outcome.status === 'pending'
        ? { kind: 'pending', bodyPart: bodyPartID, requestId: outcome.requestId }
        : done(bodyPartID, { certificates: [outcome.certificate] });
    });
  }
}

/**
 * The names that a sender may request. The holder of a certificate that may be renewed here renews it; other accepted
 * certificates enroll for their own subject, as in simpleenroll.
 * @throws CmcRefusal 403 badIdentity; EstuaryError 500 or 503
 */
async function rightOf({ bodyPartID }: CmcCertificateRequest, sender: Sender, ca: Ca): Promise<NameRight> {
  if (isRa(sender) || sender.vouchedFor === true) return { kind: 'any' };
  const { secret, certificate, issuer, issuedHere } = sender;
  if (secret !== undefined) return { kind: 'secret', identification: secret.identification ?? '' };
  if (certificate === undefined || issuer === undefined)
    throw notAllowed(bodyPartID, 'The sender may not ask for a certificate with this message.');
  if (await isOfCa(ca, certificate)) return { kind: 'renewal', certificate };
  return { kind: 'enrollment', identity: mtlsIdentity({ certificate, issuer }, issuedHere), ownSubject: true };
}

/**
 * RFC 5272 §6.8: the request's own proof, or the statement of a configured RA.
 * @throws CmcError popFailed, popRequired, badAlg; CmcRefusal 400 popFailed if the RA is not trusted with this
 */
async function proofOfPossession(
  request: CmcCertificateRequest,
  { bodyIds, trusted }: PopWitness,
): Promise<ProofOfPossession> {
  const { bodyPartID } = request;
  const proof = await verifyProofOfPossession(request).catch((error: unknown): ProofOfPossession => {
    if (bodyIds.has(bodyPartID) && error instanceof CmcError && error.failInfo === 'popRequired')
      return { method: 'raVerified' };
    throw error;
  });
  if ((proof.method === 'raVerified' || bodyIds.has(bodyPartID)) && !trusted)
    throw new CmcRefusal(
      'bad-request',
      'popFailed',
      [bodyPartID],
      'Only a configured registration authority may confirm the possession of a key.',
    );
  return proof;
}

/**
 * RFC 5272 §6.3: the holder of the secret also has the key, because it signed the message, signed a witness made from
 * the secret (§6.3.1), or requests the secret's own names (§6.3.2).
 * @throws CmcRefusal 400 popFailed; CmcError
 */
function checkLinked(
  request: CmcCertificateRequest,
  message: Message,
  { secret, signingKey }: Sender,
  binding: ClientIdBinding,
): void {
  const random = control(message, 'popLinkRandom');
  if (random !== undefined) {
    if (secret === undefined || !verifyPopLinkWitness(request, random.value, secret))
      throw unlinked(request.bodyPartID, 'The request has no popLinkWitnessV2 made with the shared secret.');
    return;
  }
  if (signingKey?.equals(request.publicKey.spki) !== true && binding === 'off')
    throw unlinked(request.bodyPartID, 'The request’s key is not linked to the shared secret. Add a popLinkWitnessV2.');
}

const unlinked = (bodyPartID: BodyPartID, message: string): CmcRefusal =>
  new CmcRefusal('bad-request', 'popFailed', [bodyPartID], message);

/** Links the request's key to its sender, in addition to {@link checkLinked}. */
function linkingOf(
  { publicKey }: CmcCertificateRequest,
  message: Message,
  sender: Sender,
  { channelBinding: binding }: MessageBase,
): PopLinking {
  const { secret, signingKey, carried, vouchedFor } = sender;
  if (binding === undefined || carried === true || vouchedFor === true || isRa(sender)) return { kind: 'carried' };
  // RFC 5272 §6.3.3: the message's signature links a request for the names of the signing certificate.
  const linked =
    secret === undefined
      ? signingKey === undefined
      : signingKey?.equals(publicKey.spki) === true || control(message, 'popLinkRandom') !== undefined;
  return { kind: 'connection', binding, linked };
}

/** The request ID of a body part, stable when the message is processed again. */
export function requestIdOf(messageId: string, bodyPartID: BodyPartID): string {
  const hex = createHash('sha256').update(`${messageId} ${bodyPartID}`).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}
