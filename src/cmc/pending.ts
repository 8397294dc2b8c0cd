/** Certification requests that wait for an administrator, and their queries (RFC 5272 §6.13). docs/guides/approval.md */
import type { Ca } from '../ca/router.ts';
import { Authenticated } from '../enrollment/authenticated.ts';
import type { Enrollment } from '../enrollment/enrollment.ts';
import type { RequestBase } from '../enrollment/request.ts';
import { failed } from '../errors.ts';
import type { SignedData, SignerInfo } from '../pki/cms/cms.ts';
import { stateOf } from '../store/request-state.ts';
import type { RequestRow, RequestStore } from '../store/request-store.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { controlsNamed } from '../pki/cmc/controls.ts';
import { requestOfSigner, parseCertificateRequest, type CmcCertificateRequest } from '../pki/cmc/tagged-request.ts';
import type { Message } from './message.ts';
import { badMessage, CmcRefusal, done, notAllowed, type PartOutcome } from './refusal.ts';
import { isRa, type Sender } from './sender.ts';
import { isSignedBy } from './signers.ts';

/** The operation of requests in CMC messages. */
export const OPERATION = 'fullcmc';

/** A pendToken is the ID of the queued request, in ASCII. */
export const pendToken = (requestId: string): Buffer => Buffer.from(requestId, 'latin1');

/** A query requests no names: they were decided before the request was queued. */
const NOTHING_NEW = { kind: 'none' } as const;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Maximum tokens per message for finding its signer. */
const MAX_TOKENS = 4;

/** The queued request whose key signed a message. */
export interface QueuedSigner {
  readonly id: string;
  /** Its requester: for people, and as a key. */
  readonly requester: string;
  readonly requesterId: string;
}

export class PendingRequests {
  readonly #store: CertificateStore & RequestStore;
  readonly #enrollment: Enrollment;

  constructor(store: CertificateStore & RequestStore, enrollment: Enrollment) {
    this.#store = store;
    this.#enrollment = enrollment;
  }

  /** The queued request that a message queries and whose key signs it: its sender has no certificate yet. */
  async ofSigner(
    { controls }: Message,
    signedData: SignedData,
    signer: SignerInfo,
    ca: Ca,
  ): Promise<QueuedSigner | undefined> {
    for (const { value } of controlsNamed(controls, 'queryPending').slice(0, MAX_TOKENS)) {
      const row = await this.#find(value, ca);
      const request = row && requestOfSigner(signedData, [queued(row)]);
      if (row === undefined || request === undefined) continue;
      if (await isSignedBy(signedData, signer, request.publicKey))
        return { id: row.id, requester: row.requester, requesterId: row.requester_id };
    }
    return undefined;
  }

  async #find(token: Buffer, ca: Ca): Promise<RequestRow | undefined> {
    const id = token.toString('latin1');
    const row = UUID.test(id) ? await this.#store.getRequest(id) : undefined;
    return row?.ca === ca.label && row.operation === OPERATION ? row : undefined;
  }

  /**
   * The state of a queued request: pending, its certificate, or a rejection. Issues an approved one.
   * @throws CmcRefusal 400 badRequest for an unknown token or a failed or expired request; 403 for another requester's
   * or a rejected one; EstuaryError
   */
  async query(bodyPartID: BodyPartID, token: Buffer, sender: Sender, base: RequestBase): Promise<PartOutcome> {
    const row = await this.#find(token, base.ca);
    if (row === undefined) throw badMessage(bodyPartID, 'There is no request with this pendToken.');
    if (!mayQuery(sender, row))
      throw notAllowed(bodyPartID, 'The request with this pendToken belongs to another requester.');
    switch (stateOf(row)) {
      case 'pending':
        return { kind: 'pending', bodyPart: bodyPartID, requestId: row.id };
      // A remote CA may have decided meanwhile.
      case 'pending at the CA':
      case 'approved':
        return this.#issue(bodyPartID, row, sender, base);
      case 'issued':
        return done(bodyPartID, { certificates: [await this.#certificate(row)] });
      case 'rejected':
        throw new CmcRefusal('forbidden', 'badRequest', [bodyPartID], row.reason ?? 'The request was rejected.');
      case 'failed':
      case 'expired':
        throw badMessage(bodyPartID, row.reason ?? 'The request was not decided or collected in time.');
    }
  }

  async #issue(bodyPartID: BodyPartID, row: RequestRow, sender: Sender, base: RequestBase): Promise<PartOutcome> {
    const poll = Authenticated.bySender({ ...base, linking: { kind: 'carried' } }, sender.identity, NOTHING_NEW);
    const outcome = await this.#enrollment.resume(poll, row);
    return outcome.status === 'pending'
      ? { kind: 'pending', bodyPart: bodyPartID, requestId: row.id }
      : done(bodyPartID, { certificates: [outcome.certificate] });
  }

  async #certificate({ id, serial, ca }: RequestRow): Promise<Buffer> {
    const certificate = await this.#store.findCertificateByRequest(id);
    if (certificate === undefined)
      throw failed('CERTIFICATE_MISSING', 'The certificate of this request cannot be found.', {
        detail: `request ${id}: certificate ${ca} ${serial}`,
      });
    return certificate.der;
  }
}

/** The stored request; it was checked and its proof verified before it was queued. */
function queued({ format, csr }: RequestRow): CmcCertificateRequest {
  return parseCertificateRequest({ kind: format === 'crmf' ? 'crm' : 'tcr', bodyPartID: 1, der: csr });
}

function mayQuery(sender: Sender, row: RequestRow): boolean {
  const { limitedTo } = sender;
  if (limitedTo === 'shared-secret revocation') return false;
  if (limitedTo !== undefined) return limitedTo.queuedRequest === row.id;
  return isRa(sender) || row.requester_id === sender.identity.requester;
}
