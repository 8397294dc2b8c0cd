/** Who the administrators are, and what each of them may do (contract §10). */
import { createHash, timingSafeEqual } from 'node:crypto';
import { UNSAID_ROLES, type AdminRole } from '../config/admin-roles.ts';
import { parseDistinguishedName, type Name } from '../pki/x509/name.ts';
import { foldedName } from '../pki/x509/name-matching.ts';
import { readTimestamp } from '../timestamp.ts';
import { certificateHolder, type CertificateHolder } from './certificate-holder.ts';

export interface AdminToken {
  readonly token_hash: string;
  readonly description: string;
  /** `["admin"]` when absent. */
  readonly roles?: readonly AdminRole[];
  /** ISO 8601. */
  readonly not_after?: string;
}

/** By `subject` and `issuer`, or by `fingerprint`. */
export interface AdminClient {
  readonly subject?: string;
  readonly issuer?: string;
  readonly fingerprint?: string;
  readonly roles: readonly AdminRole[];
}

export interface AdminIdentity {
  readonly method: 'mtls' | 'bearer';
  /** Who, for the audit log. */
  readonly display: string;
  /** The same for the same administrator, who is an entry of the configuration, or an issuer and subject. No secret. */
  readonly key: string;
  readonly roles: readonly AdminRole[];
  /** When the token or the certificate ends, milliseconds since the epoch; undefined: never. */
  readonly notAfter: number | undefined;
}

type HashedToken = AdminToken & { readonly hash: Buffer };

const tokenKey = (hash: Buffer): string => `token:${createHash('sha256').update(hash).digest('hex')}`;

const holderOf = ({ hash, description, roles = UNSAID_ROLES, not_after }: HashedToken): AdminIdentity => ({
  method: 'bearer',
  display: description,
  key: tokenKey(hash),
  roles,
  notAfter: not_after === undefined ? undefined : readTimestamp(not_after),
});

/** The entries of the configuration, ready to be looked up. */
export class Administrators {
  readonly #tokens: readonly HashedToken[];
  /** By fingerprint, or by the names of subject and issuer. */
  readonly #clients: ReadonlyMap<string, AdminClient>;
  readonly #defaultRoles: readonly AdminRole[];

  constructor(
    tokens: readonly AdminToken[],
    clients: readonly AdminClient[] = [],
    defaultRoles: readonly AdminRole[] = UNSAID_ROLES,
  ) {
    this.#tokens = tokens.map((token) => ({
      ...token,
      hash: Buffer.from(token.token_hash.replace(/^sha256:/, ''), 'hex'),
    }));
    this.#clients = new Map(clients.map((client) => [keyOf(client), client]));
    this.#defaultRoles = defaultRoles;
  }

  /** The holder of a bearer token, whether it has ended or not. All hashes are compared, each in constant time. */
  withToken(token: string): AdminIdentity | undefined {
    const presented = createHash('sha256').update(token).digest();
    let found: AdminIdentity | undefined;
    for (const entry of this.#tokens) {
      const { hash } = entry;
      if (hash.length !== presented.length || !timingSafeEqual(hash, presented)) continue;
      found ??= holderOf(entry);
    }
    return found;
  }

  /** The holder of the token with this {@link AdminIdentity.key}, likewise. */
  withTokenKey(key: string): AdminIdentity | undefined {
    const entry = this.#tokens.find(({ hash }) => tokenKey(hash) === key);
    return entry === undefined ? undefined : holderOf(entry);
  }

  /** The holder of a certificate whose path was validated. An entry of its fingerprint goes before one of its names. */
  withCertificate({ certificate, issuer }: CertificateHolder): AdminIdentity {
    const byNames = namesKey(certificate.subject, issuer.subject);
    const keys = [`sha256:${certificate.fingerprint}`, byNames];
    const key = keys.find((one) => this.#clients.has(one)) ?? byNames;
    return {
      method: 'mtls',
      display: certificateHolder(certificate),
      key,
      roles: this.#clients.get(key)?.roles ?? this.#defaultRoles,
      notAfter: certificate.notAfter.getTime(),
    };
  }
}

function keyOf({ subject = '', issuer = '', fingerprint }: AdminClient): string {
  if (fingerprint !== undefined) return fingerprint.toLowerCase();
  return namesKey(parseDistinguishedName(subject), parseDistinguishedName(issuer));
}

const namesKey = (subject: Name, issuer: Name): string => `names:${foldedName(subject)} ${foldedName(issuer)}`;
