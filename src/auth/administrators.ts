/** The administrators and their roles. */
import { createHash, hash, timingSafeEqual } from 'node:crypto';
import {
  clientHolder,
  clientMatch,
  defaultRoles,
  namesMatch,
  spkiMatch,
  tokenHolder,
  type AdminClient,
  type AdminToken,
  type Grant,
} from '../config/admin-entries.ts';
import { type AdminRole, DEFAULT_ROLES } from '../config/vocabulary.ts';
import { type Certificate, fingerprintsOf } from '../pki/x509/certificate.ts';
import { formatName, foldedName } from '../pki/x509/name.ts';
import { readTimestamp } from '../timestamp.ts';
import type { OidcClaims, OidcSettings } from './oidc/oidc-sign-in.ts';
import { certificateHolder, type CertificateHolder } from './certificate-holder.ts';

export type { AdminClient, AdminToken };

export interface AdminIdentity {
  readonly method: 'mtls' | 'bearer' | 'oidc';
  /** For people and the audit log: the configured name, or the certificate's subject. */
  readonly display: string;
  /** For decisions: equal for all credentials of one administrator. Contains no secret. */
  readonly key: string;
  /** The token, or the entry of `admin.clients`; a session belongs to it. Contains no secret. */
  readonly credential: string;
  /** For a certificate: the issuer's subject, RFC 4514. */
  readonly issuer?: string;
  /** false: the certificate has no entry, so it has only `admin.tls.default_roles`. */
  readonly hasEntry: boolean;
  /** All roles, also those that are limited to labels. */
  readonly roles: readonly AdminRole[];
  readonly grants: readonly Grant[];
  /** What the OpenID provider said, with the method `oidc`. */
  readonly claims?: OidcClaims;
  /** Expiry of the token or the certificate; undefined: never. */
  readonly notAfter: number | undefined;
}

/** The roles at a label; undefined: those for records without a label. */
export const rolesAt = ({ grants }: Pick<AdminIdentity, 'grants'>, label: string | undefined): readonly AdminRole[] =>
  grants.flatMap(({ roles, labels }) =>
    labels === undefined || (label !== undefined && labels.includes(label)) ? roles : [],
  );

export interface AdministratorsOptions {
  readonly tokens: readonly AdminToken[];
  readonly clients?: readonly AdminClient[] | undefined;
  readonly default_roles?: readonly AdminRole[] | undefined;
  readonly anchors?: readonly Certificate[] | undefined;
}

type HashedToken = AdminToken & { readonly hash: Buffer };
type MatchedClient = AdminClient & { readonly match: string };

/** undefined: another provider, or no value of its claim has roles. */
export function oidcIdentity({ issuer, roles }: OidcSettings, claims: OidcClaims): AdminIdentity | undefined {
  if (claims.issuer !== issuer) return undefined;
  const mapped = claims.values.flatMap((value) => (Object.hasOwn(roles, value) ? (roles[value] ?? []) : []));
  if (mapped.length === 0) return undefined;
  const grants = mapped.map(({ roles: own = DEFAULT_ROLES, labels }) => ({ roles: own, labels }));
  const display = `${issuer} ${claims.subject}`;
  return {
    method: 'oidc',
    display,
    key: tokenHolder({ description: display }),
    credential: `oidc:${display}`,
    hasEntry: true,
    roles: [...new Set(grants.flatMap((grant) => grant.roles))],
    grants,
    claims,
    notAfter: undefined,
  };
}

const tokenKey = (tokenHash: Buffer): string => `token:${hash('sha256', tokenHash, 'hex')}`;

function holderOf(token: HashedToken): AdminIdentity {
  const { name, description, roles = DEFAULT_ROLES, labels, not_after } = token;
  return {
    method: 'bearer',
    display: name ?? description,
    key: tokenHolder(token),
    credential: tokenKey(token.hash),
    hasEntry: true,
    roles,
    grants: [{ roles, labels }],
    notAfter: not_after === undefined ? undefined : readTimestamp(not_after),
  };
}

/** Looks up the configured entries. */
export class Administrators {
  readonly #tokens: readonly HashedToken[];
  readonly #clients: readonly MatchedClient[];
  readonly #defaultRoles: readonly AdminRole[];
  /** By name. */
  readonly #anchors: ReadonlyMap<string, readonly Certificate[]>;

  constructor({ tokens, clients = [], default_roles, anchors = [] }: AdministratorsOptions) {
    this.#tokens = tokens.map((token) => ({
      ...token,
      hash: Buffer.from(token.token_hash.replace(/^sha256:/, ''), 'hex'),
    }));
    this.#clients = clients.map((client) => ({ ...client, match: clientMatch(client) }));
    this.#defaultRoles = defaultRoles(default_roles, clients);
    this.#anchors = Map.groupBy(anchors, ({ subject }) => foldedName(subject));
  }

  /** The holder of a bearer token, expired or not. Compares all hashes in constant time. */
  withToken(token: string): AdminIdentity | undefined {
    const presented = createHash('sha256').update(token).digest();
    let found: AdminIdentity | undefined;
    for (const entry of this.#tokens) {
      if (timingSafeEqual(entry.hash, presented)) found ??= holderOf(entry);
    }
    return found;
  }

  withTokenKey(key: string): AdminIdentity | undefined {
    const entry = this.#tokens.find((token) => tokenKey(token.hash) === key);
    return entry === undefined ? undefined : holderOf(entry);
  }

  withCertificate(holder: CertificateHolder): AdminIdentity {
    const { certificate, issuer } = holder;
    const entry = this.#entryOf(holder);
    const roles = entry === undefined ? this.#defaultRoles : (entry.roles ?? DEFAULT_ROLES);
    // A renewed certificate without an entry belongs to the same administrator, whatever its serial number and key.
    const unlisted = `unlisted:${namesMatch(certificate.subject, issuer.subject)}`;
    return {
      method: 'mtls',
      display: entry?.name ?? certificateHolder(certificate),
      key: entry === undefined ? unlisted : clientHolder(entry),
      credential: entry === undefined ? unlisted : `entry:${entry.match}`,
      issuer: formatName(issuer.subject),
      hasEntry: entry !== undefined,
      roles,
      grants: [{ roles, labels: entry?.labels }],
      notAfter: certificate.notAfter.getTime(),
    };
  }

  /**
   * The entry of a certificate: by fingerprint, otherwise by key, otherwise by names. The order in the configuration
   * decides between the fingerprints of a certificate and its ECDSA variant, so that both forms have one entry.
   */
  #entryOf({ certificate, issuer }: CertificateHolder): MatchedClient | undefined {
    const fingerprints = fingerprintsOf(certificate).map((fingerprint) => `sha256:${fingerprint}`);
    const key = spkiMatch(hash('sha256', certificate.spki, 'hex'));
    const names = this.#isGenuine(issuer) ? namesMatch(certificate.subject, issuer.subject) : undefined;
    return (
      this.#clients.find(({ match }) => fingerprints.includes(match)) ??
      this.#clients.find(({ match }) => match === key) ??
      this.#clients.find(({ match }) => match === names)
    );
  }

  /** Whether the issuer has the key of the anchor with its name, which a CA below another anchor could also use. */
  #isGenuine({ subject, spki }: Certificate): boolean {
    const anchors = this.#anchors.get(foldedName(subject));
    return anchors === undefined || anchors.some((anchor) => anchor.spki.equals(spki));
  }
}
