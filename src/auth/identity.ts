import { isIPv6 } from 'node:net';
import type { AuditedRequester } from '../audit/event.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName, ipAddress, mappedIPv4 } from '../pki/x509/general-name.ts';
import { formatName, type Name } from '../pki/x509/name.ts';
import type { CertificateRow } from '../store/certificate-store.ts';
import type { CertificateHolder } from './certificate-holder.ts';
import type { ConnectionCertificates } from './mtls/presented-certificates.ts';

interface IdentityBase {
  /**
   * Stable across connections and restarts; a queued request belongs to it: `mtls:` or `cmc:` and the holder's key
   * (issuer, subject, subjectAltName); `otp:<id>`; `gssapi:<principal>`; `ldap:<client_id>`; `jwt:<issuer> <subject>`;
   * `cmc:identification:<identification>`.
   */
  readonly requester: string;
  /** For people: audit and admin API. */
  readonly display: string;
  /** A remark for the audit log, such as that a ticket was not verified. */
  readonly note?: string | undefined;
}

/** A client certificate that passed path validation, purpose, validity and revocation checks. */
export interface MtlsIdentity extends IdentityBase, CertificateHolder {
  readonly method: 'mtls';
  /** A CA of this server issued it, or the store has recorded it. Only enrollments determine this. */
  readonly issuedHere: boolean;
  /** The expired certificate whose pass lets it authenticate. */
  readonly rescued?: Pick<CertificateRow, 'ca' | 'serial'>;
}

/** A one-time password or single-use JWT; a request uses it with its reservation. */
export interface UsedToken {
  readonly otp_id: string;
  /**
   * Whether uses were left when the password was checked. Otherwise the token may only poll the request that it was
   * used for; anything else gets {@link OtpService.refuseUnusable}.
   */
  readonly usable: boolean;
  /** Why an expired or revoked token is dead; then even that request is rejected ({@link OtpService.refuseRepeat}). */
  readonly dead?: string | undefined;
  /** Lockout keys that a failure counts on. */
  readonly lockoutKeys: readonly string[];
}

/** An OTP whose hash matched. */
export interface OtpIdentity extends IdentityBase, UsedToken {
  readonly method: 'otp';
  readonly client_id: string;
  /** The presented password, with which serverkeygen may encrypt. Never logged. */
  readonly password: Buffer;
}

/** A Kerberos principal, with its certificate's subject. */
export interface GssapiIdentity extends IdentityBase {
  readonly method: 'gssapi';
  readonly principal: string;
  /** Short name: the primary of a one-component principal in the service's realm. Default: the whole principal. */
  readonly name?: string;
  readonly subject: Name;
  /** base64 of the mutual-authentication token for `WWW-Authenticate: Negotiate …`, if any. */
  readonly replyToken: string | undefined;
}

/** How a client_id binds the CSR's names (`otp.bind_client_id`, `bind` of LDAP and JWT). */
export type ClientIdBinding = 'off' | 'cn' | 'san';

/** A requester with attributes from a directory or an identity provider. */
interface DescribedIdentity extends IdentityBase {
  readonly client_id: string;
  readonly binding: ClientIdBinding;
  /** Placeholder values; LDAP attribute names are in lower case. */
  readonly attributes: ReadonlyMap<string, readonly string[]>;
}

/** A directory entry proven by a bind. */
export interface LdapIdentity extends DescribedIdentity {
  readonly method: 'ldap';
}

/** The subject of a verified JSON Web Token. */
export interface JwtIdentity extends DescribedIdentity {
  readonly method: 'jwt';
  /** With `single_use`. */
  readonly token: UsedToken | undefined;
}

/** The sender of a CMC message: the holder of the signing certificate or of a shared secret (RFC 5272 §6.2). */
export interface CmcIdentity extends IdentityBase {
  readonly method: 'cmc';
  /** undefined for a shared secret. */
  readonly certificate: Certificate | undefined;
  /** The certificate's issuer; also undefined for a configured RA certificate without a path. */
  readonly issuer: Certificate | undefined;
}

export type Identity = MtlsIdentity | OtpIdentity | GssapiIdentity | LdapIdentity | JwtIdentity | CmcIdentity;

export function tokenOf(identity: Identity): UsedToken | undefined {
  if (identity.method === 'otp') return identity;
  return identity.method === 'jwt' ? identity.token : undefined;
}

/** The method that failed if the identity's token is unusable. */
export const tokenMethod = ({ method }: Identity): 'otp' | 'jwt' => (method === 'jwt' ? 'jwt' : 'otp');

/** HTTP Basic credentials. */
export interface PasswordCredentials {
  readonly username: string;
  readonly password: string;
}

/** The sender's credentials on the EST listener, without HTTP or TLS objects. */
export interface PresentedCredentials extends ConnectionCertificates {
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
  readonly address: string;
  /** A trusted proxy forwarded the certificate. */
  readonly forwarded?: boolean;
  /**
   * A one-time password in the request itself (RFC 7894 §3.1), read only without other credentials.
   * @throws EstuaryError 400 if the request lacks proof of possession
   */
  readonly otpChallenge?: () => Promise<PasswordCredentials | undefined>;
}

type FromCertificate = Required<Pick<AuditedRequester, 'requester_issuer' | 'requester_sans'>>;

/** A certificate occurs in many requests, and each request in several records. */
const known = new WeakMap<Certificate, FromCertificate>();

/** The requester, the method and, for a certificate, what distinguishes it from others with the same subject. */
export function auditedRequester(identity: Identity): AuditedRequester & { readonly subject: string } {
  const { method, display: subject } = identity;
  const certificate = 'certificate' in identity ? identity.certificate : undefined;
  return { subject, method, ...(certificate === undefined ? {} : fromCertificate(certificate)) };
}

function fromCertificate(certificate: Certificate): FromCertificate {
  let names = known.get(certificate);
  if (names === undefined) {
    names = {
      requester_issuer: formatName(certificate.issuer),
      requester_sans: certificate.subjectAltNames.map(formatGeneralName),
    };
    known.set(certificate, names);
  }
  return names;
}

/**
 * The lockout key of a client's address: an IPv4 address (also from its IPv4-mapped form), or the /64 of an IPv6
 * address, because a client usually has the whole prefix. Other texts are unchanged.
 */
export function lockoutAddress(address: string): string {
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return bare;
  const mapped = mappedIPv4(bare);
  if (mapped !== undefined) return mapped;
  const { bytes } = ipAddress(bare);
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${ipAddress(`${groups.join(':')}::`).value}/64`;
}
