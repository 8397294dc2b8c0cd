import { boolean, choice, integer, list, optional, path, seconds, table, text } from '../keys.ts';
import { checkCidr, checkHost, checkServerName, HOST_ALLOWED } from './formats.ts';

export const server = table('The process and what all its listeners share.', {
  shutdown_grace: seconds(0, 3600, {
    description:
      'How long requests in flight may take to finish after SIGTERM or SIGINT. `docker stop` kills after 10 seconds.',
    default: 8,
  }),
  body_limit: integer(1024, 16777216, {
    description: 'The largest request body; a larger one is answered 413.',
    default: 65536,
    unit: 'bytes',
  }),
  reuse_port: boolean({
    description:
      'Whether several nodes on this host share the ports of the EST and publication listeners (SO_REUSEPORT). Needs `store.driver = "postgres"`.',
    default: false,
  }),
  max_connections: integer(1, 1000000, {
    description:
      'The most connections of each listener. Beyond it, the server closes new connections, or for an address with few connections the oldest silent one of the address with the most. A low limit of open files lowers it.',
    default: 4096,
  }),
  max_connections_per_address: integer(1, 1000000, {
    description: 'How many of them may come from one address (for IPv6, one /64).',
    default: 1024,
  }),
  handshake_timeout: seconds(1, 600, {
    description: 'How long a TLS handshake may take before the connection is closed.',
    default: 10,
  }),
  headers_timeout: seconds(1, 600, {
    description: "How long a client may take to send a request's header.",
    default: 10,
  }),
  request_timeout: seconds(1, 3600, {
    description:
      'How long a client may take to send a whole request, header and body; 408 after it. So long, too, a repeat waits for the first of the same requests (`otp.retry_window`); 503 after it.',
    default: 30,
  }),
  keep_alive_timeout: seconds(1, 3600, {
    description: 'How long an idle connection is kept for the next request.',
    default: 30,
  }),
});

export const est = table('The EST listener and its operations.', {
  host: text({
    description:
      'The address the EST listener binds to. `::` is IPv6 and IPv4, and IPv4 alone on a machine without IPv6.',
    default: '::',
    allowed: HOST_ALLOWED,
    check: checkHost,
  }),
  port: integer(0, 65535, { description: 'The TCP port of the EST listener; 0 takes a free one.', default: 9443 }),
  proxy_protocol: list(
    text({ description: 'An address block.', allowed: 'an address block such as 10.0.0.7/32', check: checkCidr }),
    {
      description:
        "Balancers that tell each client's address in a PROXY protocol header (version 1 or 2) before TLS; they must send one, and from elsewhere it is refused. List balancers only: a listed host can claim any address (docs/guides/load-balancer.md).",
      default: [],
    },
  ),
  retry_after: seconds(1, 86400, { description: 'The Retry-After of 202 and 503 answers.', default: 30 }),
  fullcmc: boolean({ description: 'Serves /fullcmc (RFC 7030 §4.3). Off, it is answered 501.', default: true }),
  serverkeygen: boolean({
    description: 'Serves /serverkeygen (RFC 7030 §4.4). Off, it is answered 501.',
    default: true,
  }),
  csrattrs_require_mtls: boolean({
    description: 'Asks for a valid client certificate before answering /csrattrs.',
    default: false,
  }),
  fullcmc_require_mtls: boolean({
    description: 'Asks for a valid client certificate on /fullcmc, in addition to the signature of the CMC request.',
    default: true,
  }),
  require_pop_linking: boolean({
    description:
      'Refuses a CSR that does not link its proof of possession to the TLS connection by an estIdentityLinking (RFC 7894) or a challengePassword (RFC 7030 §3.5), and lists both in /csrattrs.',
    default: false,
  }),
  challenge_password: choice(['binding', 'ignore'], {
    description:
      "What a CSR's challengePassword is taken for: the base64 channel binding, which then has to match, or nothing, for fleets that put something else there.",
    default: 'binding',
  }),
  client_certificate_header: optional.table(
    'Client certificates that a TLS-terminating proxy forwards in `Client-Cert` and `Client-Cert-Chain` (RFC 9440; [guides/client-certificate-header.md](../guides/client-certificate-header.md)).',
    {
      proxy_certificates: path({
        description: "PEM file with the proxies' own certificates. Only they may send the headers.",
        live: true,
      }),
      intermediates: optional.path({
        description: 'PEM file with intermediate CA certificates of the clients, for proxies that forward no chain.',
        live: true,
      }),
      client_address: optional.choice(['x-forwarded-for', 'proxy-protocol'], {
        description:
          'Where the proxies forward the address of the client, for lockouts, limits and records: the last entry of `X-Forwarded-For`, or the PROXY protocol (`proxy_protocol`).',
        defaultText: 'the address of the proxy counts',
      }),
    },
  ),
  base64_line_length: optional.integer(0, 1024, {
    description:
      'Columns of the base64 in answers; 0 is one line. Unset, answers are one line with a newline, and lines of 64 for libest.',
    defaultText: 'as the client needs it',
    multipleOf: 4,
  }),
});

/** TLS key exchange groups by OpenSSL's names. */
const TLS_GROUPS = [
  'X25519MLKEM768',
  'SecP256r1MLKEM768',
  'SecP384r1MLKEM1024',
  'X25519',
  'X448',
  'P-256',
  'P-384',
  'P-521',
] as const;

export const tls = table('TLS of the EST listener, and of the admin listener unless that has its own certificate.', {
  certificate: optional.path({
    description:
      'PEM file with the server certificate first, then its intermediates. Needed unless `automatic` is given.',
    live: true,
  }),
  private_key: optional.path({
    description: 'PEM file with the private key of the server certificate. Needed unless `automatic` is given.',
    live: true,
  }),
  automatic: optional.table(
    'In place of `certificate` and `private_key`: the server gets its certificate from a CA of this server, without its profile, and renews it (docs/guides/server-certificate.md).',
    {
      ca: text({
        description: 'The label of the CA that issues it: not one behind Dogtag or with manual approval.',
        allowed: 'the label of a CA',
      }),
      names: list(
        text({ description: 'A name of this server.', allowed: 'a DNS name or an IP address', check: checkServerName }),
        { description: 'Its names; the first is the common name too. At least one.' },
      ),
    },
  ),
  min_version: choice(['TLSv1.2', 'TLSv1.3'], {
    description: 'The oldest TLS version that the EST and admin listeners speak.',
    default: 'TLSv1.2',
  }),
  groups: list(choice(TLS_GROUPS, { description: 'A key exchange, by its name in TLS.' }), {
    description:
      'The key exchanges that the EST and admin listeners offer, the preferred first. The first two are hybrids of ML-KEM and an elliptic curve: what is recorded today cannot be read by a quantum computer later.',
    default: ['X25519MLKEM768', 'SecP256r1MLKEM768', 'X25519', 'P-256', 'P-384', 'P-521'],
  }),
  client_auth: table('Client certificates on the EST listener.', {
    mode: choice(['required', 'optional', 'required_for_reenroll', 'none'], {
      description:
        'Whether EST clients present a certificate: `required` in every handshake; `optional` verifies one that is presented; `required_for_reenroll` asks for one on /simplereenroll only; `none` verifies none and is unsafe in production.',
      default: 'optional',
    }),
    trust_anchors: optional.path({
      description: 'PEM file with the CA certificates that issue client certificates. Needed unless mode is `none`.',
      live: true,
    }),
    crl: optional.path({
      description:
        'CRLs of foreign client CAs: a PEM or DER file, or a folder of such files. A certificate that one of them revokes does not authenticate.',
      live: true,
    }),
  }),
});
