/** Checks on directories, identity providers and mutually exclusive methods. */
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';
import type { Finding } from '../findings.ts';
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
      yield {
        key: `auth.ldap.url[${index}]`,
        message: isTls
          ? `"${url}" is an ldaps:// URL, and starttls is true (one of the two)`
          : `"${url}" sends passwords unprotected (an ldaps:// URL, or starttls = true)`,
        about: ['auth.ldap.starttls'],
      };
  }
  if ((ldap.user_dn === undefined) === (ldap.search_base === undefined))
    yield {
      key: 'auth.ldap.user_dn',
      message: `${ldap.user_dn === undefined ? 'is missing, and so is' : 'is given, and so is'} search_base (one of the two)`,
      about: ['auth.ldap.search_base'],
    };
  if ((ldap.bind_dn === undefined) !== (ldap.bind_password === undefined))
    yield {
      key: 'auth.ldap.bind_dn',
      message: 'and bind_password go together (both, or neither)',
      about: ['auth.ldap.bind_password'],
    };
  if (ldap.bind_password?.length === 0)
    yield { key: 'auth.ldap.bind_password', message: 'is empty (the password of bind_dn)' };
  if (ldap.user_dn !== undefined && ldap.bind_dn !== undefined)
    yield {
      key: 'auth.ldap.bind_dn',
      message: 'is given, and user_dn needs no search (search_base instead of user_dn, or no bind_dn)',
      about: ['auth.ldap.user_dn'],
    };
  if (!config.otp.enabled) return;
  for (const { key, table } of labelsOf(config))
    if (countsAt(table, 'otp') && countsAt(table, 'ldap'))
      yield {
        key: `${key}.auth.methods`,
        message: `${table.auth.methods === undefined ? 'is missing, which enables' : 'contains'} "otp" and "ldap" at "${table.label}": both use Basic credentials (a list with one of the two)`,
        about: ['otp.enabled', 'auth.ldap'],
      };
}

function* jwtChecks({ auth: { jwt } }: Config): Generator<Finding> {
  if (jwt === undefined) return;
  if ((jwt.jwks_url === undefined) === (jwt.jwks_file === undefined))
    yield {
      key: 'auth.jwt.jwks_url',
      message: `${jwt.jwks_url === undefined ? 'is missing, and so is' : 'is given, and so is'} jwks_file (one of the two)`,
      about: ['auth.jwt.jwks_file'],
    };
}
