/** All `estuary` commands, from which the help is generated. A command's module is loaded on use. */
import { argument, command, EXIT, flag, group, required, type Entry } from './command.ts';
import { AUDIT_EXPORT, AUDIT_VERIFY, CA_INIT, CA_RENEW, CA_SIGN, CHECK, config, SERVE, STORE_COPY } from './options.ts';

/** Text at the end of the help. */
export const NOTES = `"estuary --config FILE [--check]" is "estuary serve". "estuary --version" prints the version.

exit codes: 0 clean stop or no problem found, 1 failed to start, crashed or found a broken audit log,
            2 configuration refused
signals:    SIGTERM, SIGINT stop; SIGHUP reloads the configuration and its files`;

const ADMIN_NOTES = `exit codes:   0 done, 1 rejected by the server or failed, 2 wrong command line or profile,
              3 the server is unreachable or temporarily unavailable
environment:  ESTUARY_ADMIN_URL, ESTUARY_ADMIN_TOKEN_FILE, ESTUARY_ADMIN_TOKEN, ESTUARY_ADMIN_CERT,
              ESTUARY_ADMIN_KEY, ESTUARY_ADMIN_CA, ESTUARY_ADMIN_PROFILE, ESTUARY_EST_URL; NO_COLOR
files:        ~/.config/estuary/admin.toml: [profiles.NAME] with url, token_file, cert, key, ca, est_url`;

export const COMMANDS: readonly Entry[] = [
  command('serve', 'Run the server. This is the default command.', {
    options: SERVE,
    load: async () => (await import('./serve.ts')).serve,
    takesSignals: true,
  }),
  command(
    'check',
    'Check the configuration, its files and certificates, and whether the PostgreSQL database answers.',
    { options: CHECK, load: async () => (await import('./serve.ts')).checkConfiguration },
  ),
  command('audit verify', 'Check the hash chain of the audit log, and its signed checkpoints.', {
    options: AUDIT_VERIFY,
    load: async () => (await import('./audit.ts')).verifyAuditLog,
  }),
  command(
    'doctor',
    'Check the configuration, certificates, keys, CAs, store and audit log. The exit code is 1 if a check fails, 2 if the configuration is refused.',
    {
      options: { config, json: flag('print JSON, for programs') },
      load: async () => (await import('./doctor.ts')).run,
    },
  ),
  command('backup', 'Copy the store of a running server.', {
    options: { config, to: required('DIR', 'a new or empty folder') },
    load: async () => (await import('./backup.ts')).runBackup,
  }),
  command('restore', 'Restore a backup, then replay later events from the audit file.', {
    options: { config, from: required('DIR', 'the folder that "backup" wrote') },
    load: async () => (await import('./backup.ts')).runRestore,
    about: 'Refuses a store in use, and reports what was lost. The former store is kept under another name.',
  }),
  command('store copy', 'Copy a store between SQLite and PostgreSQL, and compare both.', {
    options: STORE_COPY,
    load: async () => (await import('./store-copy.ts')).run,
    about: 'Refuses stores in use and a target that is not empty. The source stays unchanged.',
  }),
  command(
    'store accept-older-database',
    'Accept a database that is older than the audit file, and replay the audit file.',
    {
      options: { config },
      load: async () => (await import('./accept-older-database.ts')).run,
      about:
        'For a restored snapshot or an old primary, if the current database is lost. Stop every node, run it on each node, then start them. Without the audit file, it revokes unused tokens and advances every CRL number by 1,000. It writes the decision to the audit log.',
    },
  ),
  command('audit export', 'Write the audit records of the store to standard output, for other programs.', {
    options: AUDIT_EXPORT,
    load: async () => (await import('./audit.ts')).exportAudit,
  }),
  command('ca init', 'Create the key and the certificate of a CA, or create a root and an issuing CA in two folders.', {
    options: CA_INIT,
    load: async () => (await import('./ca-init.ts')).run,
    about:
      'With --config and --ca: creates the key of that CA (driver = "pkcs11": inside its token; driver = "file": in its file, 0600), and the certificate or a request for one. With --root and --issuing: creates a two-tier PKI.',
    misuse: EXIT.refused,
  }),
  command('ca sign', "Sign the CSR of an issuing CA with a root's key.", {
    options: CA_SIGN,
    load: async () => (await import('./ca-folder.ts')).sign,
    misuse: EXIT.refused,
  }),
  command('ca renew', 'Renew the certificate of an issuing CA that expires.', {
    options: CA_RENEW,
    load: async () => (await import('./ca-folder.ts')).renew,
    misuse: EXIT.refused,
  }),
  command('completion', 'Print a completion script for a shell.', {
    options: { shell: argument('bash, zsh or fish', ['bash', 'zsh', 'fish']) },
    load: async () => (await import('./completion.ts')).completing(COMMANDS),
    about:
      'bash: source <(estuary completion bash); zsh: the same, after compinit; fish: estuary completion fish | source.',
  }),
  group(
    'admin',
    'The admin API of a running server: tokens, requests, certificates, devices, CAs, lockouts, audit.',
    async () => (await import('./admin/table.ts')).ADMIN_COMMANDS,
    { misuse: EXIT.refused, notes: ADMIN_NOTES },
  ),
  group(
    'client',
    'An EST client: get certificates, and keep them renewed.',
    async () => (await import('./client/table.ts')).CLIENT_COMMANDS,
  ),
];
