/** The entries of `admin.clients` and `admin.bearer_token.tokens`: whom each one means (docs/admin-api.md, "Roles"). */
import { parseDistinguishedName, type Name } from '../pki/x509/name.ts';
import { foldedName } from '../pki/x509/name-matching.ts';
import { type AdminRole, UNSAID_ROLES } from './vocabulary.ts';

export interface AdminToken {
  readonly token_hash: string;
  readonly description: string;
  /** The description when absent. */
  readonly name?: string;
  /** `["admin"]` when absent. */
  readonly roles?: readonly AdminRole[];
  /** ISO 8601. */
  readonly not_after?: string;
}

/** By `subject` and `issuer`, by `fingerprint`, or by `spki_sha256`. */
export interface AdminClient {
  readonly name?: string;
  readonly subject?: string;
  readonly issuer?: string;
  readonly fingerprint?: string;
  readonly spki_sha256?: string;
  /** `["admin"]` when absent. */
  readonly roles?: readonly AdminRole[];
}

/** Which certificates an entry means: the same text for entries that mean the same. @throws InputError an invalid name */
export function clientMatch({ subject = '', issuer = '', fingerprint, spki_sha256 }: AdminClient): string {
  if (fingerprint !== undefined) return fingerprint.toLowerCase();
  if (spki_sha256 !== undefined) return spkiMatch(spki_sha256.toLowerCase());
  return namesMatch(parseDistinguishedName(subject), parseDistinguishedName(issuer));
}

export const spkiMatch = (hex: string): string => `spki:${hex}`;
export const namesMatch = (subject: Name, issuer: Name): string => `names:${foldedName(subject)} ${foldedName(issuer)}`;

/** The administrator who holds a token: entries with equal names are one, also across methods. */
export const tokenHolder = ({ name, description }: Pick<AdminToken, 'name' | 'description'>): string =>
  `name:${name ?? description}`;

/** Likewise, of an entry of `admin.clients`; one without a name is its own administrator. */
export const clientHolder = (client: AdminClient): string =>
  client.name === undefined ? `entry:${clientMatch(client)}` : `name:${client.name}`;

/** The roles of certificates that no entry means. */
export function defaultRoles(
  configured: readonly AdminRole[] | undefined,
  clients: readonly AdminClient[],
): readonly AdminRole[] {
  return configured ?? (clients.length === 0 ? UNSAID_ROLES : []);
}
