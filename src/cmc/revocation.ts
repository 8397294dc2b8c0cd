/** revokeRequest (RFC 5272 §6.11) and confirmCertAcceptance (§6.14). */
import { alreadyRevoked, checkOrder, revoke, type RevocationContext } from '../administration/revoke.ts';
import { isOfHolder } from '../auth/certificate-holder.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { Ca } from '../ca/router.ts';
import { countsAt } from '../config/rules/names.ts';
import { type RequestBase, eventBase } from '../enrollment/request.ts';
import { auditedCertificate } from '../audit/applied-events.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { isOfIssuer, type CertificateRow, type CertificateStore } from '../store/certificate-store.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import type { CertificateId, RevokeRequest } from '../pki/cmc/controls.ts';
import { sameSecret } from '../pki/cmc/identity-proof.ts';
import { done, notAllowed, type PartOutcome, unauthenticated, unknownCertificate } from './refusal.ts';
import { isRa, secretIdentity, type Sender } from './sender.ts';
import type { SharedSecrets } from './shared-secrets.ts';

export interface CertificateActionsOptions extends RevocationContext {
  readonly store: AuditStore & CertificateStore;
  readonly secrets: SharedSecrets;
  readonly otp: Pick<OtpService, 'verifySecret'>;
  readonly now: () => number;
}

const IDENTIFICATION = 'identification:';

export class CertificateActions {
  readonly #options: CertificateActionsOptions;

  constructor(options: CertificateActionsOptions) {
    this.#options = options;
  }

  /**
   * Revokes a certificate of the addressed label for its holder, an RA, or a sender that knows the shared secret it was
   * issued with or its revocationChallenge (RFC 7894 §3.2).
   * @param identification of the message, for the shared secret
   * @throws CmcRefusal 400 badCertId, badRequest (already revoked, invalid reason or date); 401 and 403 badIdentity;
   * EstuaryError
   */
  async revoke(
    bodyPartID: BodyPartID,
    request: RevokeRequest,
    identification: string | undefined,
    sender: Sender,
    base: RequestBase,
  ): Promise<PartOutcome> {
    const { reason, invalidityDate } = request;
    const order = { reason, invalidity_date: invalidityDate?.getTime() ?? null, revoked_at: this.#options.now() };
    checkOrder(order);
    const row = await this.#find(request, base.ca);
    const by = await this.#revoker(bodyPartID, request, identification ?? identificationOf(row), row, sender, base);
    if (row === undefined) throw unknownCertificate(bodyPartID);
    const result = await revoke(this.#options, row, order, { ...eventBase(base), subject: by });
    if (result !== 'revoked') throw alreadyRevoked();
    return done(bodyPartID);
  }

  /** Records that the holder accepts a certificate. @throws CmcRefusal 400 badCertId; 403 badIdentity */
  async confirm(bodyPartID: BodyPartID, id: CertificateId, sender: Sender, base: RequestBase): Promise<PartOutcome> {
    const row = await this.#find(id, base.ca);
    if (row === undefined) throw unknownCertificate(bodyPartID);
    if (!(await isHolder(sender, row))) throw notAllowed(bodyPartID, 'The certificate belongs to another requester.');
    await this.#options.store.audit([
      {
        ...eventBase(base),
        ...auditedCertificate(row),
        type: 'certificate.accepted',
        outcome: 'success',
        detail: row.subject,
      },
    ]);
    return done(bodyPartID);
  }

  async #find({ issuer, serialNumber }: CertificateId, ca: Ca): Promise<CertificateRow | undefined> {
    for (const row of await this.#options.store.getCertificates(serialNumber, ca.issuer.label))
      if (ca.hasIssued(row) && isOfIssuer(row, issuer)) return row;
    return undefined;
  }

  /** The revoking party, for the audit log. @throws CmcRefusal 401 or 403 badIdentity; EstuaryError 401 `LOCKED_OUT` */
  async #revoker(
    bodyPartID: BodyPartID,
    request: RevokeRequest,
    identification: string | undefined,
    row: CertificateRow | undefined,
    sender: Sender,
    { address, ca }: RequestBase,
  ): Promise<string> {
    const sharedSecret = countsAt(ca.config, 'cmc') ? request.sharedSecret : undefined;
    if (isRa(sender) || (row !== undefined && (await isHolder(sender, row)))) return sender.identity.display;
    if (sharedSecret === undefined) {
      if (sender.limitedTo !== undefined)
        throw unauthenticated(bodyPartID, 'The request has neither a valid signature nor a shared secret.');
      if (row === undefined) throw unknownCertificate(bodyPartID);
      throw notAllowed(
        bodyPartID,
        'The certificate belongs to another requester, and the request has no shared secret.',
      );
    }
    const attempt = { address, caLabel: ca.label, now: this.#options.now(), bodyPart: bodyPartID };
    const { secrets, otp } = this.#options;
    const challenge = row?.revocation_challenge;
    if (row !== undefined && identification === undefined && typeof challenge === 'string') {
      const holder = `revocation challenge of ${row.serial}`;
      const check = (): Promise<boolean> => otp.verifySecret(challenge, sharedSecret.toString('utf8'));
      await secrets.guard(holder, attempt, 'wrong revocation challenge', check);
      return holder;
    }
    const shared = await secrets.verify(identification, attempt, ({ secret }) => sameSecret(sharedSecret, secret));
    const { display } = secretIdentity(shared.identification ?? '');
    if (row === undefined || (row.method === 'cmc' && row.requester === display)) return display;
    throw notAllowed(bodyPartID, 'The certificate was not issued with this shared secret.');
  }
}

/** The identification of a certificate issued with a shared secret. */
function identificationOf(row: CertificateRow | undefined): string | undefined {
  return row?.method === 'cmc' && row.requester.startsWith(IDENTIFICATION)
    ? row.requester.slice(IDENTIFICATION.length)
    : undefined;
}

/** RFC 5272 §6.11: the signing certificate, one with the same names, or one obtained with the shown secret. */
async function isHolder(
  { certificate, issuer, secret, identity, limitedTo }: Sender,
  row: CertificateRow,
): Promise<boolean> {
  if (limitedTo !== undefined) return false;
  if (certificate !== undefined && issuer !== undefined && row.der.length > 0) {
    if (await isOfHolder({ certificate, issuer }, parseCertificate(row.der))) return true;
  }
  return secret !== undefined && row.method === 'cmc' && row.requester === identity.display;
}
