/** The kinds of event that the audit log knows: the server's own list. */
export { AUDIT_TYPES } from '../../src/audit/event.ts';
