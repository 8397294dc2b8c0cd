/** The roles of administrators (docs/admin-api.md, "Roles"). Each call of the admin API names the roles that may make it. */
export const ADMIN_ROLES = ['admin', 'ra', 'auditor', 'operator'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Without `roles` in an entry. */
export const UNSAID_ROLES: readonly AdminRole[] = ['admin'];

/** The six operations of RFC 7030 §3.2.2, and RFC 8295 §4's: no CA's label may be one of them. */
export const OPERATION_NAMES = [
  'cacerts',
  'simpleenroll',
  'simplereenroll',
  'fullcmc',
  'serverkeygen',
  'csrattrs',
  'crls',
] as const;
