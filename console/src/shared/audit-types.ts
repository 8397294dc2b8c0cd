/** The event types of the audit log, from the server. */
export { AUDIT_TYPES } from '../../../src/audit/event.ts';
