/** The certificate that signed a message: lookup, verification and acceptance. */
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import { holderOf } from '../auth/certificate-holder.ts';
import { unlessAwaited, validateClientCertificate, type ValidatedClientCertificate } from '../auth/mtls/mtls.ts';
import { checkDeviceCas, checkNotRevokedHere, isRecorded } from '../auth/mtls/revocation-lists.ts';
import { isValidAt } from '../auth/mtls/path-validation.ts';
import { namesMatch } from '../pki/x509/name.ts';
import {
  isIssuedBy,
  isSameCertificate,
  parseCertificate,
  readableCertificates,
  type Certificate,
} from '../pki/x509/certificate.ts';
import { EstuaryError, isUnauthenticated } from '../errors.ts';
import { verifySignerInfo, type SignedData, type SignerIdentifier, type SignerInfo } from '../pki/cms/cms.ts';
import { DerError } from '../pki/der/der.ts';
import { OID } from '../pki/der/oids.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { IssuedCertificate, CertificateStore } from '../store/certificate-store.ts';
import type { Envelope } from './message.ts';
import type { CmcParties, Origin, Role } from './sender.ts';
import { notAllowed, unauthenticated } from './refusal.ts';

interface SignersOptions {
  readonly store: CertificateStore;
  /** The snapshot in force; undefined: no client certificate is trusted. */
  readonly trust: () => ClientTrust | undefined;
  readonly parties: () => Pick<CmcParties, 'raCertificates'>;
}

/** Maximum certificates read from a message. */
const MAX_CERTIFICATES = 16;
/** Maximum keys tried per signature, for certificates that share an identifier. */
const MAX_ATTEMPTS = 4;
/** Accepted purposes of a signer's certificate, if it names any. */
const PURPOSES: readonly string[] = [OID.clientAuth, OID.cmcRA];

export class Signers {
  readonly #options: SignersOptions;

  constructor(options: SignersOptions) {
    this.#options = options;
  }

  /** The signer's certificate, from the message, the TLS connection or the configuration. */
  presented(signedData: SignedData, signer: SignerInfo, origin: Origin): Promise<FoundSigner | undefined> {
    const sent = signedData.certificates.slice(0, MAX_CERTIFICATES);
    const known = [...readableCertificates([...sent, ...origin.presented]), ...this.#options.parties().raCertificates];
    const named = known.filter((certificate) => isNamedBy(signer.sid, certificate));
    return firstOf(named, signedData, signer);
  }

  async stored(signedData: SignedData, signer: SignerInfo, now: number): Promise<FoundSigner | undefined> {
    return firstOf(await this.#fromStore(signer.sid, now), signedData, signer);
  }

  /** A key identifier finds only certificates in force: a key without one may belong to a new request. */
  async #fromStore(sid: SignerIdentifier, now: number): Promise<Certificate[]> {
    const { store } = this.#options;
    const rows =
      sid.kind === 'subjectKeyIdentifier'
        ? (await store.findCertificatesByKey(sid.keyIdentifier.toString('hex'))).filter(
            ({ revoked_at, not_after }) => revoked_at === null && not_after >= now,
          )
        : await store.getCertificates(sid.serialNumber);
    // A restored row may lack its certificate.
    const whole = rows.filter(({ der }) => der.length > 0);
    return whole.map(({ der }) => parseCertificate(der)).filter((certificate) => isNamedBy(sid, certificate));
  }

  /**
   * Decides whether the holder of the signing certificate is accepted, and in which role.
   * @param intermediates DER of the message's other certificates
   * @throws CmcRefusal 401 badIdentity for an unknown issuer, a revoked, expired or unsuitable certificate; 403
   * badIdentity if its issuer is not accepted at this CA; EstuaryError 503
   */
  async accept(
    certificate: Certificate,
    intermediates: readonly Buffer[],
    { ca, now }: Origin,
  ): Promise<AcceptedSigner> {
    if (this.#options.parties().raCertificates.some((authority) => isSameCertificate(authority, certificate))) {
      const issuer = await this.#checkConfigured(certificate, intermediates, now);
      await this.#checkRevocation({ certificate, issuer });
      return { role: 'configured-ra', issuer, issuedHere: false };
    }
    const validated = await this.#checkPath(certificate, intermediates, { ca, now });
    const holder = holderOf(validated);
    const { issuer } = holder;
    await this.#checkRevocation(holder);
    if (!(await ca.clientIssuers.accept(validated.path)))
      throw notAllowed(0, 'client certificate not accepted by this CA');
    const isOfThisServer = (path: readonly Certificate[]): boolean => ca.clientIssuers.isOfThisServer(path);
    await checkDeviceCas(this.#options.store, validated.path, isOfThisServer).catch(throwRefused);
    // What a CA elsewhere certifies gives no rights here: cmc.ra_certificates lists the RAs of its label.
    const isRa =
      !ca.ownIsRecorded &&
      certificate.extKeyUsage?.includes(OID.cmcRA) === true &&
      (await isIssuedBy(certificate, ca.certificate)) &&
      (await ca.counts(certificate, ca.certificate));
    const issuedHere =
      ca.clientIssuers.isOfThisServer(validated.path) || (await isRecorded(this.#options.store, holder));
    return { role: isRa ? 'ra' : 'subscriber', issuer, issuedHere };
  }

  #checkRevocation(presented: IssuedCertificate): Promise<void> {
    return checkNotRevokedHere(this.#options.store, presented).catch(throwRefused);
  }

  /** A configured certificate needs no path; if it has one, its issuer's CRLs still apply. */
  async #checkConfigured(
    certificate: Certificate,
    intermediates: readonly Buffer[],
    now: number,
  ): Promise<Certificate | undefined> {
    if (!isValidAt(certificate, now)) throw refused('it has expired or is not valid yet');
    const trust = this.#options.trust();
    if (trust === undefined) return undefined;
    const options = { purposes: certificate.extKeyUsage ?? [] };
    try {
      return holderOf(await validateClientCertificate(trust, certificate.der, intermediates, now, options)).issuer;
    } catch (error) {
      if (error instanceof EstuaryError && error.code === 'CLIENT_CERTIFICATE_UNTRUSTED') return undefined;
      return throwRefused(error);
    }
  }

  async #checkPath(
    certificate: Certificate,
    intermediates: readonly Buffer[],
    { ca, now }: Pick<Origin, 'ca' | 'now'>,
  ): Promise<ValidatedClientCertificate> {
    const trust = this.#options.trust();
    if (trust === undefined) throw refused('no client certificate is trusted here');
    const options = { purposes: PURPOSES };
    const awaiting = { caLabel: ca.label, awaitsChain: ca.awaitsChain.bind(ca), now };
    return validateClientCertificate(trust, certificate.der, intermediates, now, options)
      .catch(unlessAwaited(awaiting, () => certificate))
      .catch(throwRefused);
  }
}

/** The role of a certificate's holder. */
interface AcceptedSigner {
  readonly role: Role;
  /** From the validated path; undefined for a configured RA certificate without one. */
  readonly issuer: Certificate | undefined;
  /** As in {@link MtlsIdentity}. */
  readonly issuedHere: boolean;
}

interface FoundSigner {
  readonly certificate: Certificate;
  /** Whether its key verifies the signature. */
  readonly verified: boolean;
}

/** The candidate whose key verifies the signature; otherwise the first. */
async function firstOf(
  candidates: readonly Certificate[],
  signedData: SignedData,
  signer: SignerInfo,
): Promise<FoundSigner | undefined> {
  const [first] = candidates;
  if (first === undefined) return undefined;
  for (const certificate of candidates.slice(0, MAX_ATTEMPTS))
    if (await isSignedBy(signedData, signer, certificate.publicKey)) return { certificate, verified: true };
  return { certificate: first, verified: false };
}

const refused = (reason: string, detail?: string) =>
  unauthenticated(0, `The certificate that the message is signed with is not accepted: ${reason}.`, detail);

function throwRefused(error: unknown): never {
  throw isUnauthenticated(error) ? refused(error.message, error.detail) : error;
}

/** Whether the key verifies the signature; false for malformed attributes. */
export async function isSignedBy(
  signedData: SignedData,
  signer: SignerInfo,
  publicKey: PublicKeyInfo,
): Promise<boolean> {
  try {
    return await verifySignerInfo(signedData, signer, publicKey);
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}

function isNamedBy(sid: SignerIdentifier, certificate: Certificate): boolean {
  return sid.kind === 'subjectKeyIdentifier'
    ? certificate.subjectKeyIdentifier?.equals(sid.keyIdentifier) === true
    : sid.serialNumber === certificate.serialNumber && namesMatch(sid.issuer, certificate.issuer);
}

/** The serial number of the certificate that the signer names; undefined if the message does not contain it. */
export function signerSerial(envelope: Envelope): string | undefined {
  if (envelope.kind !== 'signed') return undefined;
  const { sid } = envelope.signer;
  if (sid.kind === 'issuerAndSerialNumber') return sid.serialNumber;
  const sent = readableCertificates(envelope.signedData.certificates.slice(0, MAX_CERTIFICATES));
  return sent.find((certificate) => isNamedBy(sid, certificate))?.serialNumber;
}
