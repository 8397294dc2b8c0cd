/** Checks on directories, identity providers and mutually exclusive methods. */
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';
import { bothOrNeither, finding, type Finding } from '../problem.ts';
import { countsAt } from './names.ts';

export function* authChecks(config: Config): Generator<Finding> {
  yield* ldapChecks(config);
  yield* jwtChecks(config);
}

function* ldapChecks(config: Config): Generator<Finding> {
  const { ldap } = config.auth;
  if (ldap === undefined) return;
  for (const [index, url] of ldap.url.entries()) {
    const isTls = url.startsWith('ldaps:');
    if (isTls === ldap.starttls)
      yield finding(
        `auth.ldap.url[${index}]`,
        isTls
          ? `"${url}" is an ldaps:// URL, and starttls is true (one of the two)`
          : `"${url}" sends passwords unprotected (an ldaps:// URL, or starttls = true)`,
        'auth.ldap.starttls',
      );
  }
  yield* oneOfTwo('auth.ldap', ldap, 'user_dn', 'search_base');
  const { bind_dn, bind_password } = ldap;
  yield* bothOrNeither('auth.ldap', { bind_dn, bind_password });
  if (bind_password?.length === 0) yield finding('auth.ldap.bind_password', 'is empty (the password of bind_dn)');
  if (ldap.user_dn !== undefined && bind_dn !== undefined)
    yield finding(
      'auth.ldap.bind_dn',
      'is given, and user_dn needs no search (search_base instead of user_dn, or no bind_dn)',
      'auth.ldap.user_dn',
    );
  if (!config.otp.enabled) return;
  for (const { key, table } of labelsOf(config))
    if (countsAt(table, 'otp') && countsAt(table, 'ldap'))
      yield finding(
        `${key}.auth.methods`,
        `${table.auth.methods === undefined ? 'is missing, which enables' : 'contains'} "otp" and "ldap" at "${table.label}": both use Basic credentials (a list with one of the two)`,
        'otp.enabled',
        'auth.ldap',
      );
}

function* jwtChecks({ auth: { jwt } }: Config): Generator<Finding> {
  if (jwt === undefined) return;
  yield* oneOfTwo('auth.jwt', jwt, 'jwks_url', 'jwks_file');
  if (jwt.jwks_token_file !== undefined && jwt.jwks_url === undefined)
    yield finding('auth.jwt.jwks_token_file', 'is given without jwks_url (both, or neither)', 'auth.jwt.jwks_url');
}

function* oneOfTwo<K extends string>(
  section: string,
  table: Readonly<Partial<Record<K, unknown>>>,
  key: K,
  other: K,
): Generator<Finding> {
  if ((table[key] === undefined) !== (table[other] === undefined)) return;
  const both = table[key] === undefined ? 'is missing, and so is' : 'is given, and so is';
  yield finding(`${section}.${key}`, `${both} ${other} (one of the two)`, `${section}.${other}`);
}
