/** What the parts of an enrolment hand each other. */
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { Identity } from '../auth/identity.ts';
import type { SealedKey } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
import type { CsrContent, RequestKey, VerifiedCsr } from '../pki/pkcs10/csr.ts';
import type { Name } from '../pki/x509/name.ts';
import { OID } from '../pki/der/oids.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { RequestFormat } from '../store/store.ts';
import type { GeneratedKey } from './key-generation.ts';

/** What every authorised request says of its sender and its aim. */
export interface RequestBase {
  readonly requestId: string;
  readonly operation: string;
  readonly ca: Ca;
  readonly identity: Identity;
  readonly address: string;
  /** Of the authentication, committed with the intent. */
  readonly events: readonly AuditEvent[];
  /** What may tie the requested key to the sender (RFC 7030 §3.5). */
  readonly linking: PopLinking;
}

/** An authorised request for one certificate of the requester's own key. */
export interface EnrollmentRequest extends RequestBase {
  readonly csr: VerifiedCsr;
}

/** An authorised request for one certificate of a key that we generate; the CSR's own key says nothing but its kind. */
export interface ServerKeyRequest extends RequestBase {
  readonly csr: CsrContent;
  /** Called at most once: when policy has passed, before an OTP use is taken, and after an administrator's approval. */
  generateKey<T>(keyType: string, use: (key: GeneratedKey) => Promise<T>): Promise<T>;
}

/** A request with the key that is to be certified. */
export interface KeyedRequest extends RequestBase {
  readonly csr: CsrContent;
  readonly publicKey: PublicKeyInfo;
  /** The CSR where it proves possession of that key, and asks for the names that the certificate gets. */
  readonly proof: VerifiedCsr | undefined;
  /** What csrattrs may ask of the request's own key and signature; undefined: the key is one that we generate. */
  readonly own: RequestKey | undefined;
  /** Of the CSR's DER. */
  readonly format: RequestFormat;
  /** A generated private key for the CA's archive, where it has one. */
  readonly sealed?: SealedKey | undefined;
}

/** A request whose CSR holds, and proves, the key to certify. */
export function keyed(request: EnrollmentRequest): KeyedRequest {
  const { csr } = request;
  const { publicKey, signatureAlgorithm } = csr;
  return {
    ...request,
    publicKey,
    proof: csr.renamed === true ? undefined : csr,
    own: { keyType: publicKey.keyType, signatureAlgorithm },
    format: 'pkcs10',
  };
}

/** What polls at once make of an approved request: one issues, for the others this is thrown. */
export class RequestTaken extends Error {}

export type EnrollmentOutcome =
  | { readonly status: 'issued'; /** DER */ readonly certificate: Buffer }
  | { readonly status: 'pending'; /** Of the queued request. */ readonly requestId: string };

/** What a queued request is recognised by, of its CSR. */
export interface RecognisedCsr extends Pick<CsrContent, 'subject' | 'subjectAltNames'> {
  /** The requester's own key, or the form in which it wants the key that we generate. */
  readonly key: string;
}

/** A request for a certificate of its own key is recognised by that key. */
export function recogniseOwnKey(csr: CsrContent): RecognisedCsr {
  return { ...csr, key: spkiHash(csr) };
}

/**
 * A request for a generated key is not recognised by the CSR's own key, which may change from poll to poll; but a
 * request for an encrypted key is another one than a request for a plain one, so that approval of the first never yields
 * the second.
 */
export function recogniseServerKey(csr: CsrContent): RecognisedCsr {
  const has = (type: string): boolean => csr.attributes.some(({ oid }) => oid === type);
  if (has(OID.decryptKeyIdentifier)) return { ...csr, key: 'generated, symmetric' };
  return { ...csr, key: has(OID.asymmetricDecryptKeyIdentifier) ? 'generated, asymmetric' : 'generated' };
}

/** Hex SHA-256 of the public key that is asked for. */
export function spkiHash({ publicKey }: Pick<CsrContent, 'publicKey'>): string {
  return createHash('sha256').update(publicKey.spki).digest('hex');
}

/** The subject that the certificate gets: a Kerberos principal's mapped one, else the CSR's. */
export function subjectFor(identity: Identity, csr: Pick<CsrContent, 'subject'>): Name {
  return identity.method === 'gssapi' ? identity.subject : csr.subject;
}

/** The lockout keys that the acceptance of a request clears: those of whom it costs a use of a password (contract §9). */
export function clearedBy({ identity }: RequestBase): readonly string[] {
  return identity.method === 'otp' ? identity.lockoutKeys : [];
}

/** What the audit log says of the use of a password that an accepted request takes; nothing for other methods. */
export function useEvents(request: RequestBase): readonly AuditEvent[] {
  const { identity } = request;
  if (identity.method !== 'otp') return [];
  return [{ ...eventBase(request), type: 'otp.used', outcome: 'success', detail: `token ${identity.otp_id}` }];
}

/** What the audit events of a request have in common. */
export function eventBase(request: RequestBase): Pick<AuditEvent, 'subject' | 'address' | 'ca' | 'request_id'> {
  return {
    subject: request.identity.display,
    address: request.address,
    ca: request.ca.label,
    request_id: request.requestId,
  };
}
