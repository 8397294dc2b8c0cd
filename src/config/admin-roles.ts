/** The roles of administrators (docs/admin-api.md, "Roles"). Each call of the admin API names the roles that may make it. */
export const ADMIN_ROLES = ['admin', 'ra', 'auditor', 'operator'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Without `roles` in an entry. */
export const UNSAID_ROLES: readonly AdminRole[] = ['admin'];
