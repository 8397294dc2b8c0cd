/**
 * The interface of a certificate authority. `chain` and `issue` are mandatory; everything else is a capability. Callers
 * check for a capability, never for a driver.
 *
 * Errors are {@link EstuaryError}s: 400/403 rejected by the CA, 503 (with retryAfter) temporarily down, 500 failed.
 */
import { type EstuaryError, unavailable } from '../errors.ts';
import type { CaMaterial } from '../config/material/material.ts';
import type { ProfileConfig } from '../config/schema/profile.ts';
import type { CmsSigner } from '../pki/cms/cms.ts';
import type { VerifiedCsr } from '../pki/pkcs10/csr.ts';
import type { Certificate, IssuedContent } from '../pki/x509/certificate.ts';
import type { Extension } from '../pki/x509/extensions.ts';
import type { GeneralName } from '../pki/x509/general-name.ts';
import type { Name } from '../pki/x509/name.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { MakeMutex } from '../process/fair-limiter.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import type { AcmeAccountStore } from '../store/acme-account-store.ts';
import type { IntermediateStore } from '../store/intermediate-store.ts';
import type { RequestFormat } from '../store/request-store.ts';
import type { PublicationUrls } from './local/tbs.ts';
import type { Finding, Problem } from '../config/problem.ts';
import type { Key } from '../config/keys.ts';
import type { MaterialReader } from '../config/material/reader.ts';
import type { CaTable } from '../config/schema/label.ts';

export interface HealthReport {
  readonly health: 'ok' | 'degraded' | 'down';
  /** For the log and `/readyz`. */
  readonly detail?: string;
}

/** What to issue, after authentication, authorization and policy. */
export interface IssuanceRequest {
  readonly request_id: string;
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** DER SubjectPublicKeyInfo to certify. */
  readonly spki: Buffer;
  /** The parsed key, if available, to avoid parsing it again. */
  readonly publicKey?: PublicKeyInfo | undefined;
  /** All requested extensions; the profile decides which to copy. */
  readonly extensions?: readonly Extension[];
  /**
   * The PKCS #10 as received, with verified proof of possession, for CAs that need it. `subject` differs if a Kerberos
   * principal sets it. undefined if a ChangeSubjectName sets the names.
   */
  readonly csr: VerifiedCsr | undefined;
  /** Requested validity within the profile; by default the profile's. */
  readonly validityDays?: number | undefined;
  /** Set if it came in a full CMC message, for a CA with its own CMC service. */
  readonly forwarded?: ForwardedRequest | undefined;
  /** DER of the submitted PKCS#10; for a pending request, its proof was verified before. */
  readonly pkcs10?: Buffer | undefined;
  /** The requester and operation in the audit log's terms. */
  readonly requester?: string;
  readonly operation?: string;
}

export type ServerCertificateRequest = Pick<IssuanceRequest, 'subject' | 'subjectAltNames' | 'spki'>;

/** A request of a full CMC message, with the names to certify. */
export interface ForwardedRequest {
  readonly format: RequestFormat;
  /** DER CertificationRequest or CertReqMsg. */
  readonly der: Buffer;
}

export type IssuanceResult =
  | {
      readonly status: 'issued';
      readonly certificate: Buffer;
      /** Parsed content, if the driver read the bytes that it signed. */
      readonly content?: IssuedContent;
    }
  /** Queued at the CA; `reference` is the argument of `poll`. */
  | {
      readonly status: 'pending';
      readonly reference: string;
      /** What it waits for, for administrators; absent: nothing new. */
      readonly reason?: string;
      /** Seconds until the CA may know more. */
      readonly retryAfter?: number | undefined;
    }
  /** Final rejection by the CA; the reason is for the client. */
  | { readonly status: 'rejected'; readonly reason: string }
  | { readonly status: 'canceled' };

/** A request that passed all checks before signing (like Boulder's prepare step). */
export interface PreparedIssuance {
  /** The certificate's serial number; null if the CA chooses it. */
  readonly serial: string | null;
  /** Absent if the CA decides. */
  readonly notAfter?: Date;
  /** DER TBSCertificate, if it is known. */
  readonly tbs?: Buffer;
  /** As {@link CaDriver.issue}. */
  issue(waits?: boolean): Promise<IssuanceResult>;
}

/** The submission may have reached the CA and its outcome is unknown. Do not repeat it. */
export class SubmissionUnanswered extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'SubmissionUnanswered';
  }
}

/** `unknown`: the CA works but does not know the request. */
export type PollResult = IssuanceResult | { readonly status: 'unknown' };

/** A submission without a response. Times are from our clock. */
export interface SoughtRequest
  extends
    Pick<IssuanceRequest, 'request_id' | 'subject' | 'spki' | 'pkcs10' | 'requester' | 'operation'>,
    Partial<Pick<IssuanceRequest, 'subjectAltNames'>> {
  /** Time of submission, and latest time of issuance. */
  readonly from: number;
  readonly until: number;
}

/** A possible outcome: a pending request, or a DER certificate for its key. */
export type Found = { readonly reference: string } | { readonly certificate: Buffer };

/** Capability: a remote CA that may queue requests and whose responses may get lost. */
export interface RemoteQueue {
  /** Milliseconds after which an unanswered submission is no longer in progress. */
  readonly settled: number;
  /** Milliseconds for which the CA may not know a submitted request, before it counts as lost. */
  readonly lostAfter: number;
  /**
   * Poll a pending submission at once, and then also without a request of its client: its first response only returns
   * the ID, and each poll advances it.
   */
  readonly continuesAtOnce?: boolean;
  /** A failed poll is answered with its error, not with 202. */
  readonly showsFailures?: boolean;
  /** false: the CA cannot find unanswered submissions. */
  readonly canFind?: boolean;
  /**
   * Whether the CA decides in the response to a submission; otherwise a generated key could get lost.
   * @throws EstuaryError 500 if the CA does not say; 503
   */
  issuesAtOnce(): Promise<boolean>;
  /** @throws EstuaryError 503 if the CA is unavailable; 500 if it issued something else */
  poll(reference: string, request: IssuanceRequest): Promise<PollResult>;
  /** @throws EstuaryError 503; 500 if the CA cannot be searched */
  find(sought: SoughtRequest): Promise<readonly Found[]>;
  /** @throws EstuaryError 500 if the certificate does not match the request */
  verify(certificate: Buffer, request: IssuanceRequest): Promise<void>;
}

/** @throws EstuaryError if the CA would not sign */
export const prepareAt = async (driver: CaDriver, request: IssuanceRequest): Promise<PreparedIssuance> =>
  driver.prepare?.(request) ?? { serial: null, issue: (waits) => driver.issue(request, waits) };

export interface RevocationRequest {
  readonly serial: string;
  readonly reason: string;
  /** DER, if stored. */
  readonly certificate?: Buffer;
}

/** A generated private key, encrypted for the archive. */
export interface SealedKey {
  /** In the archive's format. */
  readonly parts: Readonly<Record<string, string>>;
}

export interface KeyArchive {
  /** @param pkcs8 DER PrivateKeyInfo; not retained. @throws EstuaryError 500 or 503 */
  seal(pkcs8: Buffer): Promise<SealedKey>;
  /**
   * Stores a key. Call it once, after the intent has been committed.
   * @returns the archive's key ID, once the archive has confirmed storage
   * @throws EstuaryError 500 or 503; the key may then not be archived
   */
  archive(key: SealedKey, request_id: string): Promise<string>;
}

/** Signs CRLs and OCSP responses. */
export interface StatusSigner {
  readonly signatureAlgorithm: Buffer;
  /** DER SEQUENCE of `tbs`, algorithm and signature. @throws EstuaryError 500 or 503 */
  sign(tbs: Buffer): Promise<Buffer>;
  /** Concurrent signatures of the key, including those for certificates; default 1. */
  readonly concurrency?: number | undefined;
  /** Signs OCSP responses instead of the CA while its certificate is valid. */
  readonly delegate?: OcspDelegate | undefined;
}

/** A delegated OCSP responder (RFC 6960 §2.6). */
export interface OcspDelegate {
  /** Issued by the CA with id-kp-OCSPSigning. */
  readonly certificate: Certificate;
  /** Signs DER ResponseData; returns DER BasicOCSPResponse with the certificate. @throws EstuaryError 500 or 503 */
  sign(responseData: Buffer): Promise<Buffer>;
}

/** A CA's external dependency, by its name in metrics. */
export interface CaDependency {
  readonly name: string;
  health(): Promise<HealthReport>;
}

export interface CaDriver {
  /** DER certificates for /cacerts: the issuing CA, those above it up to the root, then rollover certificates. */
  chain(): readonly Buffer[];
  /**
   * Trust anchors below which its unknown certificate may be, until the CA itself has confirmed {@link chain}. Absent: it
   * is known
   */
  unconfirmed?(): readonly Certificate[];
  /**
   * Signs or submits. It is called once, after the intent has been committed.
   * @param waits a pending result will be stored and polled
   * @throws EstuaryError; SubmissionUnanswered
   */
  issue(request: IssuanceRequest, waits?: boolean): Promise<IssuanceResult>;

  /**
   * Opens external resources (a token, connections). Call it once, before anything else; {@link close} also cleans up
   * after a failed start.
   * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem
   */
  start?(): Promise<void>;
  close?(): Promise<void>;
  /** Absent: always `ok`. */
  health?(): Promise<HealthReport>;
  readonly dependency?: CaDependency;
  /**
   * The external backend, which {@link start} opens and {@link close} closes. Drivers before and after a reload may
   * share it. Default: the driver.
   */
  readonly backend?: object;

  /**
   * Checks what the CA would sign, before the intent is recorded, and fixes the serial number. The result issues in place
   * of {@link issue}. @throws EstuaryError if it would not sign
   */
  prepare?(request: IssuanceRequest): Promise<PreparedIssuance>;
  /** The same CA with another profile, for a further label. It starts and closes with this one. */
  withProfile?(profile: ProfileConfig): CaDriver;
  /** Certificates for Estuary's own listeners, outside the profile. @throws as {@link prepare} */
  prepareServerCertificate?(request: ServerCertificateRequest): Promise<PreparedIssuance>;
  /** Absent: `issue` decides immediately. */
  readonly remoteQueue?: RemoteQueue;
  /** The CA takes only PKCS#10, so Estuary must create one for a server-generated key. */
  readonly takesCsr?: true;
  /** DER CsrAttrs of the CA, which replace the label's. @throws EstuaryError 500 or 503 */
  csrAttributes?(): Promise<Buffer | undefined>;
  readonly keyArchive?: KeyArchive;

  /** Reports a revocation to the CA. Absent: the store is authoritative. */
  revoke?(request: RevocationRequest): Promise<void>;
  /** Revocations are final at the CA, which cannot end a hold. */
  readonly cannotHold?: true | undefined;
  /** Absent if the CA itself publishes its CRLs and answers OCSP. */
  readonly statusSigner?: StatusSigner;
  /** Signs CMC responses for the CA. */
  readonly cmsSigner?: CmsSigner;
  /** DER certificates that verify that signature, in addition to the chain. */
  readonly cmsCertificates?: readonly Buffer[];
}

/** What a driver's folder gets to create a CA. */
export interface DriverContext {
  readonly now: () => number;
  /** The environment, which PKCS#11 modules read for their configuration. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  readonly makeMutex: MakeMutex;
  /** Also keeps the chains of remote CAs. */
  readonly store: Pick<IntermediateStore, 'rememberIntermediates' | 'recallIntermediates'> & AcmeAccountStore;
  /** Seconds: `est.retry_after`. */
  readonly retryAfter: number;
  /** Written into every certificate. */
  readonly publication?: PublicationUrls | undefined;
}

/** The CA of the same label before a reload. A driver keeps what did not change, such as an open token. */
export interface Predecessor<Material extends CaMaterial = CaMaterial> {
  readonly driver: CaDriver;
  readonly material: Material;
}

/** A CA key in any key store (file, HSM …). */
export interface Signer {
  readonly spki: Buffer;
  /** Signs `tbs` with {@link signatureAlgorithm}; returns the signature in X.509 form (DER for ECDSA). */
  sign(tbs: Buffer): Promise<Buffer>;
  readonly signatureAlgorithm: Buffer;
  /** @throws EstuaryError 503 if it cannot sign now. Absent: it always can */
  requireUp?(): void;
  /** Concurrent signatures; default 1. */
  readonly concurrency?: number;
  /** The external key store, if any. */
  readonly dependency?: CaDependency;
  close?(): Promise<void>;
}

/** 503 until an operator, the clock or the server's own attempt ends it. @param detail for the log */
export const caOutOfService = (label: string, detail: string): EstuaryError =>
  unavailable('CA_UNAVAILABLE', `The CA "${label}" is not available.`, { detail });

export function labeledLog(log: IsolatedLog, ca: string): IsolatedLog {
  return {
    info: (fields, message) => log.info({ ca, ...fields }, message),
    warn: (fields, message) => log.warn({ ca, ...fields }, message),
    error: (fields, message) => log.error({ ca, ...fields }, message),
  };
}

/** For a check without a start. */
export type CheckContext = Pick<DriverContext, 'env' | 'now' | 'retryAfter' | 'log'>;

/**
 * What the folder of a driver defines; `drivers.ts` lists the drivers. Only {@link keys}, {@link load} and {@link create}
 * are mandatory. Each driver gets its own tables and material.
 */
export interface DriverDefinition<Table extends CaTable = CaTable, Material extends CaMaterial = CaMaterial> {
  /** The `[[ca]]` table: types, defaults, and the text of the configuration reference. */
  readonly keys: Key<Table>;
  readonly name: Table['driver'];
  /** As in messages, for a CA elsewhere, which certifies the CSR as the device signed it. */
  readonly remote?: string;
  /** As in metrics: what its CAs depend on. */
  readonly dependency?: string;
  /**
   * Reads the files of a table. @param key such as `ca[0]` @returns undefined if one is missing, which has been reported
   */
  load(reader: MaterialReader, table: Table, key: string): Promise<Material | undefined>;
  /** Checks across keys. @param isFree whether a requester may ask for names that it is not bound to */
  checks?(table: Table, key: string, isFree: () => boolean): Iterable<Finding>;
  /** A CA, not started. @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem */
  create(material: Material, context: DriverContext, before?: Predecessor<Material>): CaDriver;
  /** Problems that only a start shows; `--check` reports them too. @param key such as `ca[0]` */
  startProblems?(material: Material, key: string, context: CheckContext): Promise<readonly Problem[]>;
  /** Called before each reload, which may repeat what failed for good. */
  reloading?(): void;
  archivesKeys?(table: Table): boolean;
  /** Where the key is, for the list of what a backup does not contain. */
  keyPlace?(table: Table): string;
}
