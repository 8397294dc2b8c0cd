import type { ErrorTable } from './table.ts';

/** What the store, the audit log, the start or a reload fails at. */
export const SERVICE_ERRORS = {
  ADMIN_ANCHOR_OWN: {
    status: 500,
    cause: 'admin.tls.trust_anchors holds a CA that issues to devices here, so each device would be an administrator.',
    remedy: 'Give administrators a CA of their own.',
  },
  AUDIT_TAMPERED: {
    status: 503,
    cause: 'The end of the audit log is not what the store remembers of it, so nothing more is written.',
    remedy: 'Run "estuary audit verify", find out what happened, and restore the log.',
  },
  AUDIT_TOO_OLD: {
    status: 500,
    cause: 'A version before 0.2 wrote the audit file. Its records cannot be applied to a store.',
    remedy: 'Move the file away to restore without it.',
  },
  AUDIT_UNAVAILABLE: {
    status: 503,
    cause: 'The audit log cannot be written, so nothing is issued.',
    remedy: "Make room on the disk, or restore the file's permissions.",
  },
  BACKUP_DAMAGED: {
    status: 500,
    cause: 'The folder given to "estuary restore" holds no backup, an unfinished one, or one whose files were changed.',
    remedy: 'Take another backup; nothing was changed.',
  },
  BACKUP_EXISTS: {
    status: 500,
    cause: 'The folder given to "estuary backup" holds something already.',
    remedy: 'Name a folder that is not there; one for each backup.',
  },
  CMC_MESSAGE_NOT_CLAIMED: {
    status: 500,
    cause: "The answer to a CMC message was to be kept for a message that is not the server's own.",
    remedy: 'Send the message again; look whether two services use one store.',
  },
  CONFIG_INVALID: {
    status: 500,
    cause:
      'The configuration file has a problem; at start it ends the server with exit code 2, at a reload the old one stays in force.',
    remedy: 'Correct what each line names; docs/configuration.md lists every key.',
    text: '`FILE: KEY: what is wrong (what is allowed)`, a line for each problem',
  },
  CONFIG_RELOAD: {
    status: 500,
    cause: 'A key was changed that a reload cannot take over.',
    remedy: 'Restart the server, or undo the change.',
  },
  CRL_INVALID: {
    status: 500,
    cause: 'A CRL of the configuration cannot be used for client certificates.',
    remedy: 'Replace the file by a current CRL of a trusted CA; the message says what is wrong.',
  },
  FILE_INVALID: {
    status: 500,
    cause: 'A file that the configuration names cannot be read or does not hold what it should.',
    remedy: 'Correct the file or the path; "estuary --check" finds all of them.',
    text: 'what is wrong with the file',
  },
  LOOKUP_KEY_DAMAGED: {
    status: 500,
    cause: 'The file with the key that finds one-time passwords does not hold one.',
    remedy: 'Restore the file.',
  },
  LOOKUP_KEY_MISSING: {
    status: 500,
    cause: 'The key that finds one-time passwords is gone while some are alive.',
    remedy: 'Restore the key, or revoke those passwords with otp.enabled = false.',
    text: 'the key that finds one-time passwords is not the one of this store',
  },
  LOOKUP_KEY_OTHER: {
    status: 500,
    cause: 'The key that finds one-time passwords is another than that of the store.',
    remedy: 'Restore the former key, or revoke those passwords with otp.enabled = false.',
    text: 'the key that finds one-time passwords is not the one of this store',
  },
  LOOKUP_KEY_UNAVAILABLE: {
    status: 503,
    cause: 'The file with the key that finds one-time passwords cannot be read or written.',
    remedy: 'Restore its permissions.',
  },
  MATERIAL_UNUSABLE: {
    status: 500,
    cause: 'A certificate, key or CRL that the configuration in force names could not be read when a reload needed it.',
    remedy: 'Correct the file that the message names.',
  },
  NODE_LEASE_LOST: {
    status: 503,
    cause:
      'The other nodes of the database may take this one for dead, because it could not say that it lives; it begins nothing until it can.',
    remedy: 'None where the database was away; otherwise look in the log for a second node of this name.',
  },
  NODE_NAME_IN_USE: {
    status: 500,
    cause: 'A node of the same store.node_name uses the database.',
    remedy: 'Give each node a name of its own.',
  },
  RESERVATION_NOT_OPEN: {
    status: 500,
    cause: 'A certificate was signed for a reservation that the store does not hold open, so it is not handed out.',
    remedy: 'Look whether two services use one store.',
  },
  REHEARSAL: {
    status: 500,
    cause:
      'A request that an administrator only asked about came to where it would have had effects, which no code path should allow.',
    remedy: 'Report it; nothing was issued.',
  },
  SERIAL_TAKEN: {
    status: 500,
    cause: 'The serial number of a signed certificate is in the store already, so the certificate is not handed out.',
    remedy: "Look whether two services use one store, or the CA's serial numbers began anew.",
  },
  SERVER_CERTIFICATE_MISSING: {
    status: 500,
    cause: 'The server has not got the certificate from its CA yet that tls.automatic asks for.',
    remedy: 'Look for the reason in the log: the CA cannot sign.',
  },
  STORE_BEHIND: {
    status: 500,
    cause:
      'The database is older than the audit file of this node: a snapshot was restored, or the node reached an old primary after a failover. The detail names the missing records.',
    remedy:
      'Connect to the current database. If it is lost, stop every node and run "estuary store accept-older-database" (docs/disaster-recovery.md).',
  },
  STORE_FAILED: {
    status: 500,
    cause: 'The store answered with an error that will not pass by itself.',
    remedy: 'Look for the SQLite code in the log; check the database.',
  },
  STORE_FOREIGN: {
    status: 500,
    cause: 'The file that the configuration names as the store belongs to another program.',
    remedy: 'Correct store.path.',
  },
  STORE_IN_USE: {
    status: 500,
    cause: 'Another service holds the store.',
    remedy: 'Stop that service, or give this one a store of its own.',
  },
  STORE_NOT_EMPTY: {
    status: 500,
    cause: 'The command "store copy" copies into a new store, and there is one already.',
    remedy: 'Give it an empty database, or another file.',
  },
  STORE_NOT_A_FILE: {
    status: 500,
    cause: 'The commands "backup" and "restore" copy the file of a SQLite store, and store.driver is "postgres".',
    remedy:
      "Use PostgreSQL's own means: continuous archiving with point-in-time recovery, or pg_dump (docs/postgresql.md).",
  },
  STORE_TOO_NEW: {
    status: 500,
    cause: 'A newer version of Estuary made the store.',
    remedy: 'Run that version, or restore the backup of before the update.',
  },
  STORE_TOO_OLD: {
    status: 500,
    cause: 'Estuary 0.1 made the store.',
    remedy: 'Start with a new store and import the certificates with "estuary admin cert import" (docs/install.md).',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    cause: 'The store cannot be opened, read or written at present.',
    remedy: 'Make room on the disk, or restore permissions; look for the SQLite code in the log.',
  },
} as const satisfies ErrorTable;
