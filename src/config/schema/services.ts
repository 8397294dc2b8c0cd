import { boolean, choice, integer, list, ofBytes, optional, path, seconds, secret, table, text } from '../keys.ts';
import { postgresUrlProblem } from '../postgres-url.ts';
import { checkHost, urlCheck, trustAnchors } from './formats.ts';

export const serverkeygen = table('Server-side key generation (RFC 7030 §4.4).', {
  encryption: choice(['password', 'required', 'optional'], {
    description:
      'How a generated key is encrypted if the CSR names no key for it: `password` uses the one-time password of the request, otherwise the pre-shared secret; `required` rejects the request; `optional` sends the key protected by TLS alone, for clients that cannot open an encrypted PKCS #8 ([serverkeygen.md](../guides/serverkeygen.md)).',
    default: 'password',
    live: true,
  }),
  password: optional.secret({
    description: 'The pre-shared secret for `encryption = "password"`, for requests without a one-time password.',
    live: true,
  }),
  ml_dsa_key: choice(['seed', 'expanded', 'both'], {
    description:
      'The form of a generated ML-DSA private key (RFC 9881 §6): `seed` is the recommended one; `expanded` and `both` are for devices whose library reads nothing else.',
    default: 'seed',
  }),
  keys: list(
    table('One key: `symmetric_key_file` or `certificate`.', {
      id: text({
        description: "The hex of the key identifier's OCTET STRING.",
        allowed: 'hex digits, two a byte',
        pattern: /^([0-9a-fA-F]{2})+$/,
      }),
      symmetric_key: optional.secret({
        description: 'An AES key-encryption key: 16, 24 or 32 raw bytes.',
        raw: true,
        fits: ({ length }) =>
          [16, 24, 32].includes(length) ? undefined : `has ${length} bytes (16, 24 or 32 raw bytes)`,
      }),
      certificate: optional.path({ description: 'For the asymmetric form: PEM file with an RSA or EC certificate.' }),
    }),
    { description: "What a CSR's key identifier may name.", default: [], live: true },
  ),
});

export const cmc = table('Full CMC (RFC 5272); `est.fullcmc` turns it on.', {
  shared_secrets: list(
    table('One shared secret.', {
      identification: text({
        description: 'Whom the secret belongs to.',
        allowed: 'text of 1 to 200 characters',
        pattern: /^.{1,200}$/su,
      }),
      secret: secret({ description: 'The shared secret.' }),
      ca: optional.list(text({ description: 'A label.', allowed: 'a label', pattern: /^.+$/su }), {
        description: 'The labels at which the secret works.',
        minItems: 1,
        defaultText: 'every label',
      }),
    }),
    { description: 'Shared secrets for identityProofV2 (RFC 5272 §6.2).', default: [], live: true },
  ),
  certificate: optional.path({
    description: 'PEM file with the certificate that signs responses.',
    defaultText: "the CA's own",
    live: true,
  }),
  private_key: optional.path({
    description: 'PEM file with the private key of `cmc.certificate`.',
    defaultText: "the CA's own",
    live: true,
  }),
  ra_certificates: list(path({ description: 'A PEM file.' }), {
    description: 'PEM files with certificates of registration authorities, who may ask for the names of others.',
    default: [],
    live: true,
  }),
});

export const publication = table('The plain-HTTP listener for relying parties.', {
  enabled: boolean({ description: 'Serves CRLs, OCSP and CA certificates over plain HTTP.', default: false }),
  host: text({
    description: 'The address the publication listener binds to, as in `[est]`.',
    default: '::',
    allowed: 'an IP address or a host name',
    check: checkHost,
  }),
  port: integer(0, 65535, {
    description: 'The TCP port of the publication listener; 0 takes a free one.',
    default: 8080,
  }),
  base_url: optional.text({
    description: 'The URL under which relying parties reach the listener; it goes into issued certificates.',
    allowed: 'an http URL such as "http://pki.example.com"',
    check: urlCheck('http'),
  }),
  crl_interval: seconds(10, 2592000, {
    description:
      'How long a CRL is valid, and so how long a revocation may take to be in it everywhere. A new one is signed when half of this has passed.',
    default: 3600,
  }),
  crl_after_revocation: seconds(0, 2592000, {
    description:
      'How long after a revocation or the end of a hold a new CRL is signed. Revocations within this time share a CRL. 0: they wait for the next regular one.',
    default: 10,
  }),
});

export const requests = table('Requests that were queued with 202.', {
  pending_ttl: seconds(60, 31536000, {
    description: 'How long a queued request waits for a decision before it expires.',
    default: 1209600,
  }),
  retention: seconds(60, 31536000, {
    description: 'How long a decided request is kept; until then its requester may fetch the certificate again.',
    default: 604800,
  }),
});

export const store = table('Where tokens, certificates, requests and the audit log are kept.', {
  driver: choice(['sqlite', 'postgres'], {
    description:
      'The database: `sqlite` in a file of this machine, or a `postgres` that any number of servers share (docs/guides/postgresql.md).',
    default: 'sqlite',
  }),
  path: path({
    description: 'The database file of `sqlite`; its folder is made when it is not there.',
    default: 'data/est.db',
  }),
  url: optional.secret({
    description:
      'Where the database of `postgres` is: a libpq URL such as `postgresql://estuary:PASSWORD@db.example.com/estuary`; of several hosts the one that takes writes is used.',
    fits: (url) => postgresUrlProblem(url.toString('utf8')),
  }),
  pool_size: integer(2, 1000, {
    description: 'How many connections to the database of `postgres` each process of this server has at most.',
    default: 10,
  }),
  tls: optional.table(
    "TLS to the database of `postgres`: its certificate is verified, and so is the host's name in it (`verify-full`), whatever the URL says.",
    {
      trust_anchors: trustAnchors("PEM file with the CA certificates that issue the database's."),
      client_certificate: optional.path({ description: 'PEM file with the certificate that the database is shown.' }),
      client_key: optional.path({ description: 'PEM file with its private key.' }),
    },
  ),
  shared_key: optional.secret({
    description:
      'What the servers that share a `postgres` encrypt with that they hand each other through it (the keys of TLS session tickets), 32 bytes or more and the same on each of them. Without it, a TLS session is resumed on the server that began it.',
    fits: ofBytes(32),
  }),
  node_name: optional.text({
    description:
      "The name of this server in its audit records; the host's name unless given. Each server on a shared `postgres` needs a different one.",
    allowed: '1 to 64 letters, digits, "-", "." or "_"',
    pattern: /^[A-Za-z0-9._-]{1,64}$/,
  }),
});

export const audit = table('The audit log; the store keeps it too.', {
  file: path({
    description:
      'The audit log as JSON lines, each with the hash of the one before; its folder is made when it is not there.',
    default: 'data/audit.log',
  }),
  archive: optional.path({
    description:
      'The folder that audit records are exported to before they leave the store (`retention.audit`); it is made when it is not there.',
  }),
  checkpoint_interval: seconds(0, 86_400, {
    description:
      'How often the end of the chain is signed: into the audit log, and into the log, for somebody else to keep. 0: never.',
    default: 0,
  }),
  checkpoint_key: optional.path({
    description: 'PEM file with the private key of the checkpoints, not that of a CA or of TLS.',
  }),
});

/** Days; 0: never. */
const days = (description: string) => integer(0, 36_500, { description, default: 0, unit: 'days' });

export const retention = table(
  'What leaves the store, and when: looked at when the server starts and every hour (docs/guides/retention.md).',
  {
    certificates: days(
      'How long a certificate is kept after its end; 0: for ever. One that was revoked stays until a CRL issued after its end has had it (RFC 5280 §3.3). Not less than `renewal_grace_days` of any CA.',
    ),
    tokens: days(
      'How long a token is kept after it was used up, revoked or has expired, and at least for `otp.retry_window`; 0: for ever.',
    ),
    requests: days('How long a decided request is kept; 0: for `requests.retention`.'),
    devices: days('How long a registered device is kept after its `not_after`; 0: for ever.'),
    audit: days(
      'How long an audit record is kept in the store, before it is exported to `audit.archive` and leaves it; 0: for ever.',
    ),
  },
);

export const fleet = table('Who is about to lose its certificate (docs/guides/fleet.md).', {
  forget_expired: integer(0, 36_500, {
    description: 'How long a holder whose certificate has expired is listed; 0: for ever.',
    default: 90,
    unit: 'days',
    live: true,
  }),
});

export const log = table('The log on standard output, one JSON object a line.', {
  level: choice(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    description: 'The least severe messages that are logged.',
    default: 'info',
    live: true,
  }),
});
