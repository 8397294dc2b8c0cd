import { isIPv4, isIPv6 } from 'node:net';
import type { AuditedRequester } from '../audit/event.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName, ipAddress } from '../pki/x509/general-name.ts';
import { formatName, type Name } from '../pki/x509/name.ts';
import type { CertificateHolder } from './certificate-holder.ts';
import type { ConnectionCertificates } from './mtls/presented-certificates.ts';

interface IdentityBase {
  /**
   * Stable across connections and restarts; what a queued request belongs to: `mtls:` or `cmc:` and the holder's key, of
   * issuer, subject and subjectAltName; `otp:<id>`; `gssapi:<principal>`; `ldap:<client_id>`; `jwt:<issuer> <subject>`;
   * `cmc:identification:<a shared secret's>`.
   */
  readonly requester: string;
  /** Who, for people: audit and admin API. */
  readonly display: string;
  /** What the audit log adds on how it was found: e.g. that a ticket was not verified. */
  readonly note?: string | undefined;
}

/** A client certificate that passed path validation, purpose, validity and revocation. */
export interface MtlsIdentity extends IdentityBase, CertificateHolder {
  readonly method: 'mtls';
  /** It is under a CA of this server, or the store has recorded it. Only enrollments find this out. */
  readonly issuedHere: boolean;
}

/** A token of which a request takes a use later, with the reservation: a one-time password, or a JWT that counts once. */
export interface UsedToken {
  readonly otp_id: string;
  /**
   * Whether a use was left when the password was checked. Without one, the token may only ask for what the request that
   * it was used for came to (contract, "OTP and 202", §9); for anything else {@link OtpService.refuseUnusable} is the answer.
   */
  readonly usable: boolean;
  /** Why it is dead, where it has expired or was revoked: then even that request is refused ({@link OtpService.refuseRepeat}). */
  readonly dead?: string | undefined;
  /** What a failure with this token counts on, see {@link OtpService.refuseUnusable}, and what a use of it clears. */
  readonly lockoutKeys: readonly string[];
}

/** An OTP whose hash matched. */
export interface OtpIdentity extends IdentityBase, UsedToken {
  readonly method: 'otp';
  readonly client_id: string;
  /** The presented password: serverkeygen encrypts with it when policy says so. Never logged. */
  readonly password: Buffer;
}

/** A Kerberos principal, with the subject that its certificate gets. */
export interface GssapiIdentity extends IdentityBase {
  readonly method: 'gssapi';
  readonly principal: string;
  /** What it is called here: its primary alone, for a one-component principal of the service's realm; absent: the whole. */
  readonly name?: string;
  readonly subject: Name;
  /** base64 of the mutual-authentication token for `WWW-Authenticate: Negotiate …`, if any. */
  readonly replyToken: string | undefined;
}

/** How a client_id binds the CSR's names (`otp.bind_client_id`, `bind` of LDAP and JWT). */
export type ClientIdBinding = 'off' | 'cn' | 'san';

/** A requester that a directory or an identity provider describes. */
interface DescribedIdentity extends IdentityBase {
  readonly client_id: string;
  readonly binding: ClientIdBinding;
  /** What placeholders take their values from; the names are in lower case for LDAP. */
  readonly attributes: ReadonlyMap<string, readonly string[]>;
}

/** An entry of the directory that a bind has proven. */
export interface LdapIdentity extends DescribedIdentity {
  readonly method: 'ldap';
}

/** The subject of a JSON Web Token that was verified. */
export interface JwtIdentity extends DescribedIdentity {
  readonly method: 'jwt';
  /** With `single_use`. */
  readonly token: UsedToken | undefined;
}

/** Who sent a CMC message: the holder of the certificate that signed it, or of a shared secret (RFC 5272 §6.2). */
export interface CmcIdentity extends IdentityBase {
  readonly method: 'cmc';
  /** undefined: a shared secret proved it. */
  readonly certificate: Certificate | undefined;
  /** The CA that issued the certificate; undefined also for an RA's that the configuration names and no path leads to. */
  readonly issuer: Certificate | undefined;
}

export type Identity = MtlsIdentity | OtpIdentity | GssapiIdentity | LdapIdentity | JwtIdentity | CmcIdentity;

/** The token of which a request of this requester takes a use. */
export function tokenOf(identity: Identity): UsedToken | undefined {
  if (identity.method === 'otp') return identity;
  return identity.method === 'jwt' ? identity.token : undefined;
}

/** The method whose failure it is when the token of this requester cannot be used. */
export const tokenMethod = ({ method }: Identity): 'otp' | 'jwt' => (method === 'jwt' ? 'jwt' : 'otp');

/** A name and a password, as HTTP Basic has them. */
export interface PasswordCredentials {
  readonly username: string;
  readonly password: string;
}

/** What a request on the EST listener shows of its sender; no HTTP or TLS objects. */
export interface PresentedCredentials extends ConnectionCertificates {
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
  readonly address: string;
  /** A trusted proxy shows it for its client. */
  readonly forwarded?: boolean;
  /**
   * A one-time password that came in the request itself (RFC 7894 §3.1), looked for once nothing else is presented.
   *
   * @throws EstuaryError 400: the request proves no possession of its key
   */
  readonly otpChallenge?: () => Promise<PasswordCredentials | undefined>;
}

type FromCertificate = Required<Pick<AuditedRequester, 'requester_issuer' | 'requester_sans'>>;

/** One certificate occurs in many requests, and each request in several records. */
const known = new WeakMap<Certificate, FromCertificate>();

/** Who, by which method and, for a certificate, what distinguishes it from others with the same subject. */
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
 * What stands for a client's address in a lockout: an IPv4 address itself, also where it comes IPv4-mapped; of an IPv6
 * address the /64, because whoever has one address has all of that prefix. Anything else stays as it is.
 */
export function lockoutAddress(address: string): string {
  const bare = address.replace(/%.*$/, '');
  if (isIPv4(bare) || !isIPv6(bare)) return bare;
  const { bytes } = ipAddress(bare);
  const mapped = bytes.subarray(0, 10).every((octet) => octet === 0) && bytes.readUInt16BE(10) === 0xffff;
  if (mapped) return [...bytes.subarray(12)].join('.');
  const groups = [0, 2, 4, 6].map((offset) => bytes.readUInt16BE(offset).toString(16));
  return `${ipAddress(`${groups.join(':')}::`).value}/64`;
}
