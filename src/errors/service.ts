import type { ErrorTable } from './table.ts';

/** Errors of the store, the audit log, the start or a reload. */
export const SERVICE_ERRORS = {
  ADMIN_ANCHOR_OWN: {
    status: 500,
    cause:
      'admin.tls.trust_anchors contains a CA that issues to devices here, so each device would be an administrator.',
    remedy: 'Use a separate CA for administrators.',
  },
  AUDIT_TAMPERED: {
    status: 503,
    cause: 'The end of the audit log differs from what the store recorded, so the server writes nothing more.',
    remedy: 'Run "estuary audit verify", find the cause, and restore the log.',
  },
  AUDIT_TOO_OLD: {
    status: 500,
    cause: 'A version before 0.2 wrote the audit file. Its records cannot be applied to a store.',
    remedy: 'Move the file away to restore without it.',
  },
  AUDIT_UNAVAILABLE: {
    status: 503,
    cause: 'The audit log cannot be written, so nothing is issued.',
    remedy: 'Free disk space, or correct the permissions of the file.',
  },
  BACKUP_DAMAGED: {
    status: 500,
    cause: 'The folder given to "estuary restore" contains no backup, an incomplete one, or changed files.',
    remedy: 'Use another backup. Nothing was changed.',
  },
  BACKUP_EXISTS: {
    status: 500,
    cause: 'The folder given to "estuary backup" is not empty.',
    remedy: 'Use a new folder for each backup.',
  },
  CMC_MESSAGE_NOT_CLAIMED: {
    status: 500,
    cause: 'The store does not hold the claim for the CMC message whose response was to be recorded.',
    remedy: 'Send the message again. Check whether two services use one store.',
  },
  CONFIG_INVALID: {
    status: 500,
    cause:
      'The configuration file is invalid. At startup the server exits with code 2. At a reload the previous configuration stays in force.',
    remedy: 'Correct what each line names. docs/reference/configuration.md lists every key.',
    text: '`FILE: KEY: what is wrong (what is allowed)`, a line for each problem',
  },
  CONFIG_RELOAD: {
    status: 500,
    cause: 'A reload cannot apply the changed key.',
    remedy: 'Restart the server, or undo the change.',
  },
  CRL_INVALID: {
    status: 500,
    cause: 'A CRL in the configuration cannot be used for client certificates.',
    remedy: 'Replace the file with a current CRL of a trusted CA. The message has the reason.',
  },
  FILE_INVALID: {
    status: 500,
    cause: 'A file that the configuration names cannot be read, or has invalid content.',
    remedy: 'Correct the file or the path. "estuary check" lists all of them.',
    text: 'what is wrong with the file',
  },
  LOOKUP_KEY_DAMAGED: {
    status: 500,
    cause: 'The file with the lookup key of one-time passwords is invalid.',
    remedy: 'Restore the file.',
  },
  LOOKUP_KEY_MISSING: {
    status: 500,
    cause: 'The lookup key of one-time passwords is missing while some of them are unused.',
    remedy: 'Restore the key, or revoke these passwords with otp.enabled = false.',
    text: 'the lookup key of one-time passwords is not the one of this store',
  },
  LOOKUP_KEY_OTHER: {
    status: 500,
    cause: 'The lookup key of one-time passwords is not the one of this store.',
    remedy: 'Restore the previous key, or revoke these passwords with otp.enabled = false.',
    text: 'the lookup key of one-time passwords is not the one of this store',
  },
  LOOKUP_KEY_UNAVAILABLE: {
    status: 503,
    cause: 'The file with the lookup key of one-time passwords cannot be read or written.',
    remedy: 'Correct its permissions.',
  },
  MATERIAL_UNUSABLE: {
    status: 500,
    cause: 'A reload could not read a certificate, key or CRL that the configuration in force names.',
    remedy: 'Correct the file that the message names.',
  },
  NODE_LEASE_LOST: {
    status: 503,
    cause:
      'The node could not renew its lease in the database, so other nodes may consider it dead. It issues nothing until it has a lease again.',
    remedy:
      'If the database was unreachable, no action is needed. Otherwise, check the log for a second node with this name.',
  },
  NODE_NAME_IN_USE: {
    status: 500,
    cause: 'Another node with the same store.node_name uses the database.',
    remedy: 'Give each node a different name.',
  },
  RESERVATION_NOT_OPEN: {
    status: 500,
    cause: 'The store holds no open reservation for a signed certificate, so the certificate is not delivered.',
    remedy: 'Check whether two services use one store.',
  },
  DRY_RUN: {
    status: 500,
    cause: 'A dry run reached code that has effects. No code path allows this.',
    remedy: 'Report it; nothing was issued.',
  },
  SERIAL_TAKEN: {
    status: 500,
    cause: 'The store already contains the serial number of a signed certificate, so the certificate is not delivered.',
    remedy: 'Check whether two services use one store, or whether the serial numbers of the CA restarted.',
  },
  SERVER_CERTIFICATE_MISSING: {
    status: 500,
    cause: 'The CA has not yet issued the server certificate that tls.automatic requires.',
    remedy: 'Check the log: the CA cannot sign.',
  },
  STORE_BEHIND: {
    status: 500,
    cause:
      'The database is older than the audit file of this node: a snapshot was restored, or the node reached an old primary after a failover. The detail names the missing records.',
    remedy:
      'Connect to the current database. If it is lost, stop every node and run "estuary store accept-older-database" (docs/guides/disaster-recovery.md).',
  },
  STORE_FAILED: {
    status: 500,
    cause: 'The store returned an error that will not resolve without action.',
    remedy: 'Check the log for the SQLite or PostgreSQL code, and check the database.',
  },
  STORE_FOREIGN: {
    status: 500,
    cause: 'The file that store.path names belongs to another program.',
    remedy: 'Correct store.path.',
  },
  STORE_POOLED: {
    status: 500,
    cause: 'A connection pooler such as PgBouncer shares database sessions between clients (transaction pooling).',
    remedy: 'Set pool_mode = session for the database, or connect to PostgreSQL directly.',
  },
  STORE_IN_USE: {
    status: 500,
    cause: 'Another service uses the store.',
    remedy: 'Stop that service, or configure another store.',
  },
  STORE_NOT_EMPTY: {
    status: 500,
    cause: 'The target of "estuary store copy" is not empty.',
    remedy: 'Use an empty database, or a new file.',
  },
  STORE_NOT_A_FILE: {
    status: 500,
    cause: 'The commands "backup" and "restore" copy the file of a SQLite store, and store.driver is "postgres".',
    remedy:
      "Use PostgreSQL's own means: continuous archiving with point-in-time recovery, or pg_dump (docs/guides/postgresql.md).",
  },
  STORE_TOO_NEW: {
    status: 500,
    cause: 'A newer version of Estuary created the store.',
    remedy: 'Run that version, or restore a backup from before the upgrade.',
  },
  STORE_TOO_OLD: {
    status: 500,
    cause: 'Estuary 0.1 created the store.',
    remedy:
      'Start with a new store and import the certificates with "estuary admin cert import" (docs/get-started/install.md).',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    cause: 'The store cannot be opened, read or written.',
    remedy: 'Free disk space, or correct permissions. Check the log for the SQLite or PostgreSQL code.',
  },
} as const satisfies ErrorTable;
