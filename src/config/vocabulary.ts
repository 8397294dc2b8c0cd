/** The roles of administrators (docs/reference/admin-api.md, "Roles"). Each call of the admin API names the roles that may make it. */
export const ADMIN_ROLES = ['admin', 'ra', 'auditor', 'operator'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

/** Default roles of an entry. */
export const DEFAULT_ROLES: readonly AdminRole[] = ['admin'];

/** The six operations of RFC 7030 §3.2.2 those of RFC 8295 §4 and that of draft-ietf-lamps-est-renewal-info, which are reserved as labels. */
export const OPERATION_NAMES = [
  'cacerts',
  'simpleenroll',
  'simplereenroll',
  'fullcmc',
  'serverkeygen',
  'csrattrs',
  'crls',
  'renewal-info',
] as const;

/** Events that receivers of notifications select. */
export const NOTIFICATION_EVENTS = [
  'certificate.expiring',
  'certificate.issued',
  'certificate.revoked',
  'request.queued',
  'request.decided',
  'authentication.locked',
  'ca.expiring',
  'crl.overdue',
  'client_crl.expired',
  'ca.unavailable',
  'upstream.unavailable',
  'renewal.overdue',
  'holder.expired',
  'holder.failing',
  'holder.stuck',
  'holder.late',
] as const;

export type NotificationEvent = (typeof NOTIFICATION_EVENTS)[number];
