/** Options shared by the `estuary client` commands, and their client.toml equivalent. */
import { resolve } from 'node:path';
import { GENERATED_KEY_TYPES } from '../../../pki/x509/key-pair.ts';
import { flag, required, value, type Options, type Values } from '../command.ts';

const CONNECTION = {
  url: value('URL', 'the EST server, or several, separated by commas, which are tried in order'),
  label: value('LABEL', "the CA's label on the server"),
  'ca-fingerprint': value('HEX', 'SHA-256 or SHA-512 of a CA certificate that the server lists'),
  ca: value('FILE', 'the trusted CAs (PEM or DER), instead of a fingerprint'),
  'tls-server-name': value('NAME', "the name in the server's certificate, for a URL with another host or address"),
  proxy: value('URL', 'an HTTP proxy, or "none" (default: HTTPS_PROXY, unless NO_PROXY excepts the server)'),
  'proxy-password-file': value('FILE', "the password of the proxy's user"),
  'accept-cmc-ra': flag('accept a server certificate for another host name if it has id-kp-cmcRA (RFC 7030 §3.6.1)'),
};

const CREDENTIALS = {
  username: value('NAME', 'the user name for the password'),
  'otp-file': value('FILE', 'the one-time password'),
  'otp-env': value('VARIABLE', 'the environment variable with it; without either, the client asks on a terminal'),
  'token-file': value('FILE', 'a bearer token, such as a JWT'),
  kerberos: flag('authenticate with a Kerberos ticket'),
  cert: value('FILE', 'PEM of a certificate to authenticate with, such as an IDevID, then its intermediates'),
  key: value('FILE', 'PEM of its private key, or the URI of one in the token'),
};

const TOKEN = {
  'pkcs11-module': value('FILE', 'the PKCS#11 library of a token or TPM, in which the key is made and stays'),
  token: value('LABEL', 'the label of the token'),
  'pin-file': value('FILE', "the token's PIN"),
  'pin-env': value('VARIABLE', 'the environment variable with it'),
};

const NAMES = {
  subject: value('DN', 'the requested name, such as CN=dev-1'),
  dns: value('NAMES', 'DNS names of the subjectAltName, separated by commas'),
  ip: value('ADDRESSES', 'IP addresses of the subjectAltName'),
};

const KEY_TYPE = value('TYPE', `${GENERATED_KEY_TYPES.join(', ')} (default: what the CA requires, otherwise ec:P-256)`);

const WAIT = value(
  'SECONDS',
  'how long to wait for an approval (202) or after a temporary failure such as 429 or 503 (default 0)',
);

/** Output of a single operation. */
const OUTPUT = {
  out: value('FILE', 'the file for the result (default: standard output)'),
  stdout: flag('write the result to standard output'),
  der: flag('DER instead of PEM'),
  json: flag('JSON, also for an error'),
  force: flag('overwrite files'),
};

/** Reads settings from a file instead of options. */
const FROM_CONFIG = {
  config: value('FILE', 'client.toml, for the server and the credentials, instead of options'),
  name: value('NAME', 'the certificate in client.toml (default: the first one)'),
};

const CSR = value('FILE', 'a request that was made elsewhere: PEM, base64 or DER');

/** For a command that only reads. */
export const QUERY = { ...FROM_CONFIG, ...CONNECTION, ...CREDENTIALS, ...OUTPUT };

export const ENROLL = {
  config: value('FILE', 'client.toml, which replaces the settings among the options below'),
  name: value('NAMES', 'only these certificates, separated by commas (default: all)'),
  wait: WAIT,
  out: value('DIR', 'the folder for key and certificate; with --csr, a file for the certificate'),
  csr: value('FILE', 'a request that was made elsewhere (PEM, base64 or DER): get one certificate and keep nothing'),
  ...CONNECTION,
  ...NAMES,
  'key-type': KEY_TYPE,
  ...CREDENTIALS,
  key: value('FILE', "PEM of --cert's private key, or the URI of one in the token; without --cert, the key to certify"),
  'cert-key': value('FILE', 'the same for --cert if --key is the key to certify'),
  ...TOKEN,
  reload: value('COMMAND', 'what to run after each change, such as "systemctl reload nginx"'),
  stdout: flag('with --csr or --key: write the certificate to standard output and keep nothing'),
  der: OUTPUT.der,
  json: OUTPUT.json,
  force: flag('also replace a valid certificate, with the first credentials and the configured names'),
};

const config = required('FILE', 'client.toml');

export const RENEW = {
  config,
  name: ENROLL.name,
  force: flag('renew now, due or not'),
  json: flag('print the outcomes as JSON'),
};

export const STATUS = { config, json: flag('JSON, for programs') };

export const RUN = { config };

export const REENROLL = { ...QUERY, csr: CSR, wait: WAIT };

export const SERVERKEYGEN = {
  ...QUERY,
  ...NAMES,
  'key-type': value('TYPE', 'the key type to request (default: what the CA requires)'),
  'key-password-file': value('FILE', 'the password of the encrypted key (default: the one-time password)'),
  'decrypt-key': value('FILE', 'PEM of an RSA or EC key: the server encrypts the new key for it'),
  'decrypt-id': value('HEX', "its AsymmetricDecryptKeyIdentifier (default: the key's SHA-1 identifier)"),
  'kek-file': value('FILE', 'a shared AES key of 16, 24 or 32 octets: the server encrypts the new key with it'),
  'kek-id': value('HEX', 'its DecryptKeyIdentifier'),
  out: value('DIR', 'the folder for key.pem and cert.pem (default: standard output)'),
  wait: WAIT,
};

type Given<O extends Options> = Partial<Values<O>>;
export type SettingOptions = Given<
  typeof CONNECTION & typeof CREDENTIALS & typeof TOKEN & typeof NAMES & { readonly 'key-type': typeof KEY_TYPE }
> & { readonly reload?: string | undefined; readonly 'cert-key'?: string | undefined };

const path = (file: string | undefined): string | undefined => (file === undefined ? undefined : resolve(file));
const list = (text: string | undefined): string[] | undefined => text?.split(',').map((item) => item.trim());

const given = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** A client.toml document with one certificate. A key that no certificate needs is the key to certify. */
export function documentOf(options: SettingOptions, url: string, folder: string): Record<string, unknown> {
  const { cert, key, 'cert-key': certKey } = options;
  const isUri = (text?: string): boolean => text?.startsWith('pkcs11:') === true;
  const isForCert = certKey === undefined && (cert !== undefined || isUri(key));
  const identityKey = isForCert ? key : certKey;
  return {
    server: given({
      url: url.includes(',') ? list(url) : url,
      tls_server_name: options['tls-server-name'],
      proxy: options.proxy,
      proxy_password_file: path(options['proxy-password-file']),
      trust_anchors: path(options.ca),
      ca_fingerprint: options['ca-fingerprint'],
      accept_cmc_ra: options['accept-cmc-ra'] === true ? true : undefined,
    }),
    ...(options['pkcs11-module'] === undefined
      ? {}
      : {
          token: given({
            module: path(options['pkcs11-module']),
            label: options.token,
            pin_file: path(options['pin-file']),
            pin_env: options['pin-env'],
          }),
        }),
    certificate: [
      given({
        folder: resolve(folder),
        label: options.label,
        subject: options.subject,
        dns_names: list(options.dns),
        ip_addresses: list(options.ip),
        key_type: options['key-type'],
        username: options.username,
        otp_file: path(options['otp-file']),
        otp_env: options['otp-env'],
        certificate: path(cert),
        private_key: isUri(identityKey) ? identityKey : path(identityKey),
        key_file: isForCert ? undefined : path(key),
        key_store: options['pkcs11-module'] === undefined ? undefined : 'token',
        token_file: path(options['token-file']),
        kerberos: options.kerberos === true ? true : undefined,
        reload: options.reload,
      }),
    ],
  };
}
