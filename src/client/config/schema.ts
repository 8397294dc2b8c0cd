/** The keys of `client.toml`: the one source of what it may say, and of docs/reference/client-configuration.md. */
import { basename } from 'node:path';
import { oidByName } from '../../pki/der/oids.ts';
import { InputError } from '../../pki/input-error.ts';
import { ipAddress } from '../../pki/x509/general-name.ts';
import { GENERATED_KEY_TYPES } from '../../pki/x509/key-pair.ts';
import { parseDistinguishedName } from '../../pki/x509/name.ts';
import { proxyProblem } from '../../proxy-url.ts';
import { ClientError } from '../client-error.ts';
import { estBase, labelProblem } from '../http/urls.ts';
import { FORMATS } from '../keep/formats.ts';
import { idOfKeyUri, isKeyUri } from '../token/key-uri.ts';
import { readFingerprint } from '../trust/path.ts';
import { boolean, choice, integer, list, oneOrMore, optional, path, table, text, type Key } from './words.ts';

const TLS_VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

const server = table(
  {
    url: oneOrMore(
      text({
        description:
          'The URL of the EST server, to which the client appends `/.well-known/est`. Of several servers, the client uses the first one that works.',
        allowed: 'an https URL, such as https://est.example.com:8443',
        check: failing((value) => estBase(value, undefined)),
      }),
    ),
    tls_server_name: optional(
      text({
        description:
          "The name that the server's certificate must have and that the client sends (SNI), for a URL with an address or another name.",
        allowed: 'a host name',
        check: (value) => (/^[\w.:-]+$/.test(value) ? undefined : `"${value}" is not a host name`),
      }),
      'the host in the URL',
    ),
    proxy: optional(
      text({
        description: 'The HTTP proxy to connect through, with its user. `none` ignores the environment.',
        allowed: 'an http or https URL, such as http://user@proxy.example.com:3128, or "none"',
        check: proxyProblem,
      }),
      'the environment variable HTTPS_PROXY, unless NO_PROXY excepts the server',
    ),
    proxy_password_file: optional(path({ description: "A file with the password of the proxy's user." })),
    trust_anchors: optional(
      path({
        description: 'The trusted CAs: a file (PEM or DER), or a folder of such files. The client never removes them.',
      }),
    ),
    ca_fingerprint: optional(
      text({
        description:
          'The fingerprint of a CA certificate that the server lists, for the first contact. From then on, the client follows rollovers.',
        allowed: 'SHA-256 or SHA-512 in hex, with colons or without',
        check: (value) => (readFingerprint(value) === undefined ? `"${value}" is not a fingerprint` : undefined),
      }),
    ),
    system_trust_anchors: boolean({
      description:
        "Whether the client also trusts the operating system's CAs for the server certificate (RFC 7030's Implicit TA database).",
      default: false,
    }),
    accept_cmc_ra: boolean({
      description:
        'Whether the client accepts a server certificate for another host name if it has the extended key usage id-kp-cmcRA (RFC 7030 §3.6.1). Every holder of such a certificate can then act as the server, so your CA must issue id-kp-cmcRA to EST servers only. By default, the client always checks the host name (RFC 6125).',
      default: false,
    }),
    min_version: choice(TLS_VERSIONS, {
      description: 'The oldest TLS version that the client uses.',
      default: 'TLSv1.2',
    }),
    max_version: choice(TLS_VERSIONS, {
      description: 'The newest TLS version that the client uses.',
      default: 'TLSv1.3',
    }),
    timeout: integer({
      description: 'The timeout of a connection, and of each response.',
      default: 30,
      minimum: 1,
      maximum: 600,
      unit: 'seconds',
    }),
  },
  { description: 'The EST server.' },
);

const token = table(
  {
    module: path({ description: "The token's PKCS#11 library, such as libtpm2_pkcs11.so.1 of a TPM." }),
    label: text({ description: 'The label of the token.', allowed: 'a text' }),
    pin_file: optional(path({ description: "The user's PIN: a file of one line." })),
    pin_env: optional(
      text({ description: 'An environment variable with that PIN.', allowed: 'the name of a variable' }),
    ),
    engine: optional(
      path({
        description:
          "libp11's engine for OpenSSL 3, by which TLS signs with the key (Debian: libengine-pkcs11-openssl).",
      }),
      'where distributions have it',
    ),
  },
  {
    description:
      'A PKCS#11 token: a TPM, a smart card or an HSM, for keys with `key_store = "token"`, or for an IDevID.',
  },
);

const COMMAND_LINE = 'a command line';

const certificate = table(
  {
    name: optional(
      text({
        description: 'The name in logs, metrics and on the command line.',
        allowed: 'letters, digits, ".", "_" and "-"',
        check: (value) => (/^[\w.-]{1,64}$/.test(value) ? undefined : `"${value}" is not a name`),
      }),
      "the folder's name",
    ),
    folder: path({
      description:
        'Where key and certificate are kept: `live/key.pem`, `live/fullchain.pem` and so on, `ca.pem`. It belongs to this certificate alone.',
    }),
    label: optional(
      text({
        description: "The CA's label on the server (RFC 7030 §3.2.2).",
        allowed: 'a path segment',
        check: labelProblem,
      }),
      "the server's default CA",
    ),
    subject: text({
      description: 'The requested subject (RFC 4514). A renewal keeps the names of the certificate.',
      allowed: 'a distinguished name such as CN=web.example.com',
      default: '',
      check: failing(parseDistinguishedName),
    }),
    dns_names: list(text({ description: 'A DNS name.', allowed: 'a DNS name' }), {
      description: 'DNS names of the subjectAltName.',
    }),
    ip_addresses: list(text({ description: 'An IP address.', allowed: 'an IP address', check: failing(ipAddress) }), {
      description: 'IP addresses of the subjectAltName.',
    }),
    emails: list(text({ description: 'An address.', allowed: 'an email address' }), {
      description: 'Email addresses of the subjectAltName.',
    }),
    uris: list(text({ description: 'A URI.', allowed: 'a URI' }), { description: 'URIs of the subjectAltName.' }),
    ext_key_usage: list(
      text({
        description: 'A purpose.',
        allowed: 'serverAuth, clientAuth … or a dotted OID',
        check: (value) => (oidByName(value) === undefined ? `unknown purpose "${value}"` : undefined),
      }),
      { description: 'The requested extended key usages. Most CAs ignore them.' },
    ),
    key_type: optional(
      choice(GENERATED_KEY_TYPES, { description: 'The key type.' }),
      'what the CA requires, otherwise `"ec:P-256"`',
    ),
    key_store: choice(['file', 'token'], {
      description:
        'Where the key is made and stays: `live/key.pem`, or the token of `[token]`; `live/key.uri` then names it (RFC 7512).',
      default: 'file',
    }),
    key_file: optional(
      path({ description: 'PEM of an existing private key. The client requests every certificate for this key.' }),
      'a new key for each certificate',
    ),
    new_key: boolean({ description: 'Whether a renewal has a new key.', default: true }),
    channel_binding: choice(['when-asked', 'always', 'never'], {
      description:
        'Whether the request is bound to its TLS connection (RFC 7030 §3.5): where /csrattrs asks for it, always, or never.',
      default: 'when-asked',
    }),
    username: text({ description: 'Sent with the password.', allowed: 'a text', default: '' }),
    otp_file: optional(
      path({ description: 'A file of one line with the password or one-time password of the first enrollment.' }),
    ),
    otp_env: optional(
      text({ description: 'An environment variable with that password.', allowed: 'the name of a variable' }),
    ),
    otp_reusable: boolean({
      description:
        'Whether the password can get more than one certificate. By default, the client does not send a password again after it got a certificate: the server rejects a used one-time password, and rejections lock out the address.',
      default: false,
    }),
    token_file: optional(
      path({ description: 'A file with a bearer token, such as a JWT, that authenticates the first enrollment.' }),
    ),
    kerberos: boolean({
      description: 'Whether a Kerberos ticket authenticates the first enrollment (needs the npm package `kerberos`).',
      default: false,
    }),
    certificate: optional(
      path({
        description:
          'PEM of the certificate to begin with, such as an IDevID, then its intermediates. It authenticates the first enrollment, and an enrollment after the certificate has expired.',
      }),
    ),
    private_key: optional(
      text({
        description: 'Its key: a PEM file, or the URI of one in the token (RFC 7512), without a PIN.',
        allowed: 'a path, or pkcs11:token=…;id=…',
        check: (value) =>
          isKeyUri(value) && (value.includes('pin-') || idOfKeyUri(value) === undefined)
            ? 'is not the URI of a key with an id, or contains a PIN, which belongs into [token]'
            : undefined,
      }),
    ),
    renew_at: integer({
      description: 'When the client renews it, varied by 5 % of the lifetime, unless the server suggests a time.',
      default: 67,
      minimum: 5,
      maximum: 95,
      unit: 'percent of the lifetime',
    }),
    formats: list(choice(FORMATS, { description: 'A format.' }), {
      description:
        'In addition to the PEM files: `combined` (`combined.pem`: chain and key, for HAProxy), `pkcs12` (`bundle.p12`).',
    }),
    pkcs12_password_file: optional(path({ description: 'The password of `bundle.p12`.' }), 'an empty password'),
    owner: optional(
      text({ description: 'The owner of the files.', allowed: 'a user or its number' }),
      'the user of the client',
    ),
    group: optional(text({ description: 'Their group.', allowed: 'a group or its number' }), 'the group of the client'),
    mode: text({
      description: 'The mode of the files that hold the private key.',
      allowed: 'such as "0600" or "0640"; nothing for others',
      default: '0600',
      check: (value) =>
        /^0?[46][04]0$/.test(value) ? undefined : `"${value}" gives access to others, or is not a mode`,
    }),
    before: optional(
      text({
        description: 'Runs before each attempt. If it fails, the client sends nothing and tries again later.',
        allowed: COMMAND_LINE,
      }),
    ),
    reload: optional(
      text({
        description: 'The deploy hook: runs after each change, and again until it succeeds.',
        allowed: 'a command line, such as "systemctl reload nginx"',
      }),
    ),
    after: optional(text({ description: 'Runs after each attempt, whatever its result.', allowed: COMMAND_LINE })),
    failure: optional(
      text({ description: 'Runs after an attempt, or a deploy hook, that failed.', allowed: COMMAND_LINE }),
    ),
    hook_timeout: integer({
      description: 'How long each hook may take. Then it is killed, with its child processes.',
      default: 60,
      minimum: 1,
      maximum: 3600,
      unit: 'seconds',
    }),
  },
  { description: 'A certificate. Repeat the table for more.' },
);

export const CLIENT_SCHEMA = table(
  {
    server,
    token: optional(token),
    certificate: list(certificate, { description: 'The certificates.' }, 1),
    hooks: optional(
      path({
        description:
          'A folder of hooks for all certificates. The client runs the executable files in its folders `before`, `deploy`, `after` and `failure`.',
      }),
      'the folder `hooks` next to `client.toml`',
    ),
    health_file: optional(path({ description: 'A JSON file with the state of each certificate, for monitoring.' })),
    prometheus_file: optional(
      path({
        description: "The same for Prometheus: a `.prom` file in the folder of node_exporter's textfile collector.",
      }),
    ),
  },
  { description: 'The configuration of `estuary client`.' },
);

/** A document without what {@link CertificateConfig} takes from its top level. */
export type ReadDocument = typeof CLIENT_SCHEMA extends Key<infer T> ? T : never;
export type ReadCertificate = ReadDocument['certificate'][number];

/** The content of `client.toml`, checked and with absolute paths. */
export interface ClientConfig extends Omit<ReadDocument, 'certificate' | 'hooks'> {
  readonly certificate: readonly CertificateConfig[];
}

export type ServerConfig = ReadDocument['server'];
export type TokenConfig = NonNullable<ReadDocument['token']>;

export interface CertificateConfig extends ReadCertificate {
  readonly name: string;
  /** From the top level of the document. */
  readonly token: TokenConfig | undefined;
  /** From the top level of the document. */
  readonly hooks: string;
}

/** The message of an error that `read` throws. */
function failing(read: (value: string) => unknown): (value: string) => string | undefined {
  return (value) => {
    try {
      read(value);
      return undefined;
    } catch (error) {
      if (error instanceof InputError || error instanceof ClientError) return error.message;
      throw error;
    }
  };
}

export const nameOf = ({ name, folder }: ReadCertificate): string => name ?? basename(folder);
