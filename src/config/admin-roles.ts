/** What an administrator may be (contract §10). Which calls a role may make stands beside each call. */
export const ADMIN_ROLES = ['admin', 'ra', 'auditor', 'operator'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Of whom the configuration says nothing. */
export const UNSAID_ROLES: readonly AdminRole[] = ['admin'];
