/** The entries of `admin.clients` and `admin.bearer_token.tokens` (docs/reference/admin-api.md, "Roles"). */
import { parseDistinguishedName, type Name, foldedName } from '../pki/x509/name.ts';
import type { Config } from './schema.ts';
import { type AdminRole, DEFAULT_ROLES } from './vocabulary.ts';

/** What an administrator may do, and at which labels. */
export interface Grant {
  readonly roles: readonly AdminRole[];
  /** The labels to whose records the roles are limited; undefined: no limit. */
  readonly labels?: readonly string[] | undefined;
}

/** Its name defaults to the description, and its roles to `["admin"]`. */
export type AdminToken = Config['admin']['bearer_token']['tokens'][number];

/** Matches by `subject` and `issuer`, by `fingerprint`, or by `spki_sha256`. Its roles default to `["admin"]`. */
export type AdminClient = Config['admin']['clients'][number];

/**
 * Identifies the certificates that an entry matches; equal for equivalent entries. @throws InputError for an invalid
 * name
 */
export function clientMatch({ subject = '', issuer = '', fingerprint, spki_sha256 }: AdminClient): string {
  if (fingerprint !== undefined) return fingerprint.toLowerCase();
  if (spki_sha256 !== undefined) return spkiMatch(spki_sha256.toLowerCase());
  return namesMatch(parseDistinguishedName(subject), parseDistinguishedName(issuer));
}

export const spkiMatch = (hex: string): string => `spki:${hex}`;
export const namesMatch = (subject: Name, issuer: Name): string => `names:${foldedName(subject)} ${foldedName(issuer)}`;

/** The administrator of a token. Entries with equal names are one administrator, also across methods. */
export const tokenHolder = ({ name, description }: Pick<AdminToken, 'name' | 'description'>): string =>
  `name:${name ?? description}`;

/** The same for an entry of `admin.clients`; one without a name is its own administrator. */
export const clientHolder = (client: AdminClient): string =>
  client.name === undefined ? `entry:${clientMatch(client)}` : `name:${client.name}`;

/** The roles of certificates without an entry. */
export function defaultRoles(
  configured: readonly AdminRole[] | undefined,
  clients: readonly AdminClient[],
): readonly AdminRole[] {
  return configured ?? (clients.length === 0 ? DEFAULT_ROLES : []);
}
