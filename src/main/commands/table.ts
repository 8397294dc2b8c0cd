/** All `estuary` commands, from which the help is generated. A command's module is loaded on use. */
import { GENERATED_KEY_TYPES } from '../../pki/x509/key-pair.ts';
import { argument, command, EXIT, flag, group, required, value, values, type Entry } from './command.ts';

const config = required('FILE', 'the configuration');
const offline = flag('check without asking the database');

const subordinateCa = {
  'path-length': value('N', 'number of CAs allowed below the issuing CA (default 0)'),
  'permitted-dns': values('HOST', 'name constraint: the CA may certify this host and the hosts below it; repeatable'),
  'permitted-ip': values('NETWORK', 'name constraint: the CA may certify addresses of this network; repeatable'),
};

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
  command(
    'serve',
    'Run the server. This is the default command.',
    { config, check: flag('check the configuration like "check", and stop'), offline },
    async () => (await import('./serve.ts')).serve,
    { takesSignals: true },
  ),
  command(
    'check',
    'Check the configuration, its files and certificates, and whether the PostgreSQL database answers.',
    { config, offline },
    async () => (await import('./serve.ts')).checkConfiguration,
  ),
  command(
    'audit verify',
    'Check the hash chain of the audit log, and its signed checkpoints.',
    {
      config,
      checkpoint: value(
        'FILE',
        'checkpoints kept elsewhere (lines of the log or of the audit file): the chain must match them',
      ),
      'checkpoint-key': value(
        'FILE',
        'PEM of the public or private key of the checkpoints (default audit.checkpoint_key, if it is readable)',
      ),
    },
    async () => (await import('./audit.ts')).verifyAuditLog,
  ),
  command(
    'doctor',
    'Check the configuration, certificates, keys, CAs, store and audit log. The exit code is 1 if a check fails, 2 if the configuration is refused.',
    { config, json: flag('print JSON, for programs') },
    async () => (await import('./doctor.ts')).run,
  ),
  command(
    'backup',
    'Copy the store of a running server.',
    { config, to: required('DIR', 'a new or empty folder') },
    async () => (await import('./backup.ts')).runBackup,
  ),
  command(
    'restore',
    'Restore a backup, then replay later events from the audit file.',
    { config, from: required('DIR', 'the folder that "backup" wrote') },
    async () => (await import('./backup.ts')).runRestore,
    { about: 'Refuses a store in use, and reports what was lost. The former store is kept under another name.' },
  ),
  command(
    'store copy',
    'Copy a store between SQLite and PostgreSQL, and compare both.',
    {
      config: required('FILE', 'the configuration with store.driver = "postgres"'),
      from: required('DRIVER', 'sqlite or postgres'),
      to: required('DRIVER', 'the other driver'),
      path: value('FILE', 'the SQLite database (default data/est.db next to the configuration)'),
    },
    async () => (await import('./store-copy.ts')).run,
    { about: 'Refuses stores in use and a target that is not empty. The source stays unchanged.' },
  ),
  command(
    'store accept-older-database',
    'Accept a database that is older than the audit file, and replay the audit file.',
    { config },
    async () => (await import('./accept-older-database.ts')).run,
    {
      about:
        'For a restored snapshot or an old primary, if the current database is lost. Stop every node, run it on each node, then start them. Without the audit file, it revokes unused tokens and advances every CRL number by 1,000. It writes the decision to the audit log.',
    },
  ),
  command(
    'audit export',
    'Write the audit records of the store to standard output, for other programs.',
    {
      config,
      format: value('FORMAT', 'json (one record per line, as in the audit file; the default), csv or cef'),
      since: value('TIME', 'records from this time on, ISO 8601'),
      until: value('TIME', 'records up to this time'),
    },
    async () => (await import('./audit.ts')).exportAudit,
  ),
  command(
    'ca init',
    'Create the key and the certificate of a CA, or create a root and an issuing CA in two folders.',
    {
      config: value('FILE', 'the configuration; [ca.file] or [ca.pkcs11] of the CA says where its key is'),
      ca: value('LABEL', "the CA's label"),
      csr: value('FILE', 'write a PKCS #10 request for a CA above to FILE instead of a self-signed root'),
      'use-existing-key': flag('use the existing key that the configuration names'),
      root: value('DIR', 'the folder of a new root: root.key, root.pem'),
      issuing: value('DIR', 'the folder of a new issuing CA that the root signs: issuing.key, issuing.pem, chain.pem'),
      'key-type': value(
        'TYPE',
        `${GENERATED_KEY_TYPES.join(', ')} (default ec:P-256; a token creates RSA, EC and, from PKCS#11 3.2 on, ML-DSA keys)`,
      ),
      subject: value('DN', "the CA's name in RFC 4514 form (default CN=LABEL CA, or CN=Issuing CA)"),
      days: value('N', 'validity of the self-signed root (default 3650), or of the issuing CA (default 1825)'),
      'root-subject': value('DN', "the root's name (default CN=Root CA)"),
      'root-days': value('N', 'validity of the root (default 7300)'),
      ...subordinateCa,
    },
    async () => (await import('./ca-init.ts')).run,
    {
      about:
        'With --config and --ca: creates the key of that CA (driver = "pkcs11": inside its token; driver = "file": in its file, 0600), and the certificate or a request for one. With --root and --issuing: creates a two-tier PKI.',
      misuse: EXIT.refused,
    },
  ),
  command(
    'ca sign',
    "Sign the CSR of an issuing CA with a root's key.",
    {
      issuer: required('DIR', 'the folder of the CA that signs: NAME.key, NAME.pem'),
      csr: required('FILE', 'the PKCS #10 request, for example from "ca init --csr"'),
      out: required('FILE', 'the new certificate'),
      days: value('N', 'validity (default 1825), at most that of the issuer'),
      ...subordinateCa,
    },
    async () => (await import('./ca-folder.ts')).sign,
    { misuse: EXIT.refused },
  ),
  command(
    'ca renew',
    'Renew the certificate of an issuing CA that expires.',
    {
      issuer: required('DIR', 'the folder of the CA that signs'),
      ca: required('DIR', 'the folder of the CA to renew'),
      'new-key': flag('create a new key; the former one is kept under another name'),
      days: value('N', 'validity (default 1825), at most that of the issuer'),
    },
    async () => (await import('./ca-folder.ts')).renew,
    { misuse: EXIT.refused },
  ),
  command(
    'completion',
    'Print a completion script for a shell.',
    { shell: argument('bash, zsh or fish', ['bash', 'zsh', 'fish']) },
    async () => (await import('./completion.ts')).completing(COMMANDS),
    {
      about:
        'bash: source <(estuary completion bash); zsh: the same, after compinit; fish: estuary completion fish | source.',
    },
  ),
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
