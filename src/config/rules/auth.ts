/** Checks on directories, identity providers and mutually exclusive methods. */
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';
import { finding, type Finding } from '../problem.ts';
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
  if ((ldap.user_dn === undefined) === (ldap.search_base === undefined))
    yield finding(
      'auth.ldap.user_dn',
      `${ldap.user_dn === undefined ? 'is missing, and so is' : 'is given, and so is'} search_base (one of the two)`,
      'auth.ldap.search_base',
    );
  if ((ldap.bind_dn === undefined) !== (ldap.bind_password === undefined))
    yield finding('auth.ldap.bind_dn', 'and bind_password go together (both, or neither)', 'auth.ldap.bind_password');
  if (ldap.bind_password?.length === 0) yield finding('auth.ldap.bind_password', 'is empty (the password of bind_dn)');
  if (ldap.user_dn !== undefined && ldap.bind_dn !== undefined)
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
  if ((jwt.jwks_url === undefined) === (jwt.jwks_file === undefined))
    yield finding(
      'auth.jwt.jwks_url',
      `${jwt.jwks_url === undefined ? 'is missing, and so is' : 'is given, and so is'} jwks_file (one of the two)`,
      'auth.jwt.jwks_file',
    );
}
