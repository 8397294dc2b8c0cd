/** The counters of the hours are written once for all records of a transaction (audit-log.ts), not by a trigger for each. */
export const countedRecords = 'DROP TRIGGER audit_counted;';
