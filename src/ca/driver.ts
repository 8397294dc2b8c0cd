/**
 * What a certificate authority is to the rest of Estuary: a small core, and capabilities that some drivers add.
 * Callers ask for the capability, never for a driver's name.
 *
 * Errors are {@link EstuaryError}s: 400/403 refused by the CA, 503 (with retryAfter) known to be down for now, 500 failed.
 */
import type { ProfileConfig } from '../config/schema.ts';
import type { CmsSigner } from '../pki/cms/signed-data.ts';
import type { VerifiedCsr } from '../pki/pkcs10/csr.ts';
import type { Certificate, IssuedContent } from '../pki/x509/certificate.ts';
import type { Extension } from '../pki/x509/extensions.ts';
import type { GeneralName } from '../pki/x509/general-name.ts';
import type { Name } from '../pki/x509/name.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import type { RequestFormat } from '../store/request-store.ts';

type Health = 'ok' | 'degraded' | 'down';

export interface HealthReport {
  readonly health: Health;
  /** For the log and `/readyz`: why it is not ok. */
  readonly detail?: string;
}

/** What the requester may have, after authentication, authorization and policy. */
export interface IssuanceRequest {
  readonly request_id: string;
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** DER SubjectPublicKeyInfo to certify. */
  readonly spki: Buffer;
  /** The same as it was read, where it was: what has been made of it is not made again. */
  readonly publicKey?: PublicKeyInfo | undefined;
  /** Those that the request asks for, all of them: a profile says which it copies. */
  readonly extensions?: readonly Extension[];
  /**
   * The request as it came, for a CA that takes PKCS#10; its proof of possession has been verified. Its subject is another one
   * where a Kerberos principal's goes before it; undefined where a ChangeSubjectName does.
   */
  readonly csr: VerifiedCsr | undefined;
  /** How long the certificate is valid, within the profile; absent: as the profile says. */
  readonly validityDays?: number | undefined;
  /** Present where it came in a full CMC message, for a CA with a CMC service of its own. */
  readonly forwarded?: ForwardedRequest | undefined;
  /** DER of the PKCS#10 that was submitted: of a request that waits, whose proof was verified before. */
  readonly pkcs10?: Buffer | undefined;
  /** Who asks, and by which operation, as the audit log names them. */
  readonly requester?: string;
  readonly operation?: string;
}

/** What a certificate of this service itself is for. */
export type ServerCertificateRequest = Pick<IssuanceRequest, 'subject' | 'subjectAltNames' | 'spki'>;

/** A request of a full CMC message, with the names that are to be certified. */
export interface ForwardedRequest {
  readonly format: RequestFormat;
  /** DER CertificationRequest or CertReqMsg. */
  readonly der: Buffer;
}

export type IssuanceResult =
  | {
      readonly status: 'issued';
      readonly certificate: Buffer;
      /** What stands in it, where the driver has read the bytes that it signed. */
      readonly content?: IssuedContent;
    }
  /** Queued at the CA; `reference` is what `poll` takes. */
  | { readonly status: 'pending'; readonly reference: string }
  /** Decided at the CA, for good; the reason is for the client. */
  | { readonly status: 'rejected'; readonly reason: string }
  | { readonly status: 'canceled' };

/** A request that passed everything the CA can check before its key is used (boulder's Prepare). */
export interface PreparedIssuance {
  /** The serial that the certificate will carry, or null where the CA chooses it. */
  readonly serial: string | null;
  /** When the certificate will end; absent where the CA decides. */
  readonly notAfter?: Date;
  /**
   * Signs or submits; called once, after the intent has been committed.
   *
   * @param waits a pending answer is stored, and polled later
   * @throws EstuaryError; SubmissionUnanswered
   */
  issue(waits?: boolean): Promise<IssuanceResult>;
}

/** A submission that may have reached the CA, and of which no answer tells what became. It must not be made again. */
export class SubmissionUnanswered extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'SubmissionUnanswered';
  }
}

/** `unknown`: the CA works, and does not know the request. */
export type PollResult = IssuanceResult | { readonly status: 'unknown' };

/** A request whose submission was not answered. Times are milliseconds since the epoch, of our clock. */
export interface SoughtRequest {
  readonly request_id: string;
  readonly subject: Name;
  readonly subjectAltNames?: readonly GeneralName[];
  readonly spki: Buffer;
  readonly pkcs10?: Buffer | undefined;
  readonly requester?: string;
  readonly operation?: string;
  /** When it was submitted, and until when it may have been issued. */
  readonly from: number;
  readonly until: number;
}

/** What may have become of it: a request that waits, or a certificate of its key, DER. */
export type Found = { readonly reference: string } | { readonly certificate: Buffer };

/** Capability: a CA elsewhere, where a request may wait for a decision and an answer may get lost. */
export interface RemoteQueue {
  /** Milliseconds after which a submission that was not answered is not under way any more. */
  readonly settled: number;
  /** Milliseconds for which the CA may not know a request that it has taken before it counts as lost. */
  readonly lostAfter: number;
  /** A submission that is pending is polled at once: its first answer only names it. */
  readonly continuesAtOnce?: boolean;
  /** false: nothing can be found out about a submission without an answer. */
  readonly canFind?: boolean;
  /**
   * Whether a request is decided in the answer to its submission, so that a key that is generated for it does not get lost.
   * @throws EstuaryError 500 when the CA does not tell; 503
   */
  issuesAtOnce(): Promise<boolean>;
  /** @throws EstuaryError 503 when the CA cannot be asked; 500 when it issued something else than was asked for */
  poll(reference: string, request: IssuanceRequest): Promise<PollResult>;
  /** @throws EstuaryError 503; 500 when the CA cannot be searched */
  find(sought: SoughtRequest): Promise<readonly Found[]>;
  /** Whether a certificate is what was asked for. @throws EstuaryError 500 when it is not */
  verify(certificate: Buffer, request: IssuanceRequest): Promise<void>;
}

export interface RevocationRequest {
  readonly serial: string;
  /** RFC 5280 CRLReason name. */
  readonly reason: string;
  /** DER, if the store has it. */
  readonly certificate?: Buffer;
}

/** A generated private key, encrypted so that only the archive can read it. */
export interface SealedKey {
  /** In the archive's own words. */
  readonly parts: Readonly<Record<string, string>>;
}

/** Keeps copies of the private keys that the server generates for clients (key escrow). */
export interface KeyArchive {
  /** @param pkcs8 DER PrivateKeyInfo; not kept. @throws EstuaryError 500 or 503 */
  seal(pkcs8: Buffer): Promise<SealedKey>;
  /**
   * Stores a key; called once, after the intent has been committed.
   *
   * @returns the archive's identifier of the key, once the archive has said that it holds it
   * @throws EstuaryError 500 or 503; then nobody may rely on the archive having it
   */
  archive(key: SealedKey, request_id: string): Promise<string>;
}

/** Signs what a CA says about its certificates: CRLs and OCSP responses. */
export interface StatusSigner {
  /** DER AlgorithmIdentifier of the signatures. */
  readonly signatureAlgorithm: Buffer;
  /** DER SEQUENCE of `tbs`, the algorithm and the signature. @throws EstuaryError 500 or 503 */
  sign(tbs: Buffer): Promise<Buffer>;
  /** How many signatures its key makes at a time, those for certificates included; absent: one. */
  readonly concurrency?: number | undefined;
  /** Answers OCSP in the CA's place while its certificate is valid. */
  readonly delegate?: OcspDelegate | undefined;
}

/** An OCSP responder that the CA has delegated (RFC 6960 §2.6). */
export interface OcspDelegate {
  /** Issued by the CA with id-kp-OCSPSigning. */
  readonly certificate: Certificate;
  /** DER BasicOCSPResponse, with the certificate, of DER ResponseData. @throws EstuaryError 500 or 503 */
  sign(responseData: Buffer): Promise<Buffer>;
}

/** What stands behind a CA outside of this process, as the metrics name it. */
export interface CaDependency {
  readonly name: 'hsm' | 'dogtag' | 'est' | 'acme' | 'command';
  health(): Promise<HealthReport>;
}

export interface CaDriver {
  /**
   * Opens what it needs outside this process: a token, connections. To be called once, before anything else is asked of it; absent:
   * it needs nothing. {@link close} also ends what a failed start leaves.
   *
   * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and what is wrong
   */
  start?(): Promise<void>;
  /** Absent where the CA publishes its CRLs and answers OCSP itself. */
  readonly statusSigner?: StatusSigner;
  /** DER certificates, what cacerts answers: the issuing CA first, those above it up to the root, then those of rollovers. */
  chain(): readonly Buffer[];
  /** Builds and lints what would be signed; throws when the CA would not sign it. */
  prepare(request: IssuanceRequest): Promise<PreparedIssuance>;
  /**
   * Capability: the same CA, issuing by another profile, for a further label. It is started and closed with this one, never by itself.
   */
  withProfile?(profile: ProfileConfig): CaDriver;
  /** Capability: certificates for this service's own listeners, outside of the profile. @throws as {@link prepare} */
  prepareServerCertificate?(request: ServerCertificateRequest): Promise<PreparedIssuance>;
  /** Without it, `issue` issues. */
  readonly remoteQueue?: RemoteQueue;
  /** Tells the CA of a revocation; a no-op where our own store is the only authority. */
  revoke(request: RevocationRequest): Promise<void>;
  health(): Promise<HealthReport>;
  /** Absent: it needs nothing outside of this process. */
  readonly dependency?: CaDependency;
  close(): Promise<void>;
  /**
   * What it stands on outside of this process, which {@link start} opens and {@link close} closes. Two drivers may share it, one
   * before a reload and one after it; absent: the driver itself.
   */
  readonly footing?: object;
  /** Capability: DER CsrAttrs that the CA asks for, in place of the label's own. @throws EstuaryError 500 or 503 */
  csrAttributes?(): Promise<Buffer | undefined>;
  /** Capability: a key archive, present where generated keys are to be archived. */
  readonly keyArchive?: KeyArchive;
  /** Requests reach the CA as PKCS#10 only, so that a key which the server generates needs one too. */
  readonly takesCsr?: true;
  /** Capability: signs CMS content with the CA's key, or in its name. */
  readonly cmsSigner?: CmsSigner;
  /** DER of what a client needs to verify that signature, beside the chain. */
  readonly cmsCertificates?: readonly Buffer[];
}

/** A CA key at work: file, HSM … It signs, and nothing else of it is visible. */
export interface Signer {
  readonly spki: Buffer;
  /** Signs `tbs` with the algorithm that {@link signatureAlgorithm} names; the signature as X.509 carries it (DER for ECDSA). */
  sign(tbs: Buffer): Promise<Buffer>;
  /** DER AlgorithmIdentifier of every signature of this signer. */
  readonly signatureAlgorithm: Buffer;
  /** How many signatures it makes at a time; absent: one. */
  readonly concurrency?: number;
  /** What holds the key, where that is outside of this process. */
  readonly dependency?: CaDependency['name'];
  health(): Promise<HealthReport>;
  close(): Promise<void>;
}

/** A log that says of which CA it tells. */
export function labelledLog(log: IsolatedLog, ca: string): IsolatedLog {
  return {
    info: (fields, message) => log.info({ ca, ...fields }, message),
    warn: (fields, message) => log.warn({ ca, ...fields }, message),
    error: (fields, message) => log.error({ ca, ...fields }, message),
  };
}
