import { authChecks } from './auth.ts';
import { adminChecks, adminWarnings } from './admin.ts';
import { caChecks } from './ca.ts';
import type { CrossChecks, Finding } from '../findings.ts';
import { complianceChecks } from './compliance.ts';
import { nameWarnings } from './names.ts';
import { retentionChecks, serverCertificateChecks, storeChecks } from './server.ts';
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';

/** Checks that concern more than one key. Reads no file. */
export function crossChecks(config: Config): CrossChecks {
  const compliance = complianceChecks(config);
  const admin = config.admin.tls;
  return {
    problems: [
      ...serverChecks(config),
      ...serverCertificateChecks(config),
      ...clientAuthChecks(config),
      ...adminChecks(config),
      ...pair('admin.tls.certificate', admin.certificate, 'admin.tls.private_key', admin.private_key),
      ...otpChecks(config),
      ...gssapiChecks(config),
      ...authChecks(config),
      ...serverKeyGenChecks(config),
      ...cmcChecks(config),
      ...publicationChecks(config),
      ...caChecks(config),
      ...popLinkingChecks(config),
      ...forwardingChecks(config),
      ...retentionChecks(config),
      ...storeChecks(config),
      ...pair(
        'store.tls.client_certificate',
        config.store.tls?.client_certificate,
        'store.tls.client_key',
        config.store.tls?.client_key,
      ),
      ...compliance.problems,
    ],
    warnings: [...adminWarnings(config), ...compliance.warnings, ...nameWarnings(config)],
  };
}

function* serverChecks({ server, est, admin, publication }: Config): Generator<Finding> {
  if (server.headers_timeout > server.request_timeout)
    yield {
      key: 'server.headers_timeout',
      message: `is longer than server.request_timeout (at most ${server.request_timeout})`,
      about: ['server.request_timeout'],
    };
  const listeners = [
    { name: 'est', ...est },
    { name: 'admin', ...admin },
    ...(publication.enabled ? [{ name: 'publication', ...publication }] : []),
  ];
  for (const [index, one] of listeners.entries())
    for (const other of listeners.slice(0, index))
      if (
        one.port !== 0 &&
        one.port === other.port &&
        (one.host === other.host || isAny(one.host) || isAny(other.host))
      )
        yield {
          key: `${one.name}.port`,
          message: `${one.port} is the port of ${other.name} too (a port for each listener)`,
          about: [`${other.name}.port`, `${one.name}.host`, `${other.name}.host`],
        };
}

const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::';

function* clientAuthChecks({ tls, est }: Config): Generator<Finding> {
  const { mode, trust_anchors } = tls.client_auth;
  if (mode !== 'none' && trust_anchors === undefined)
    yield {
      key: 'tls.client_auth.trust_anchors',
      message: `is missing, and tls.client_auth.mode is "${mode}" (a path, relative to the configuration file, or mode = "none")`,
      about: ['tls.client_auth.mode'],
    };
  if (mode === 'none' && est.csrattrs_require_mtls)
    yield {
      key: 'est.csrattrs_require_mtls',
      message: 'cannot be met while tls.client_auth.mode is "none" (false, or another mode)',
      about: ['tls.client_auth.mode'],
    };
}

/** A certificate and a private key must be given together. */
function* pair(
  certificateKey: string,
  certificate: string | undefined,
  privateKey: string,
  key: string | undefined,
): Generator<Finding> {
  if (certificate === undefined && key !== undefined)
    yield { key: certificateKey, message: `is missing, and ${privateKey} is given (both or neither)` };
  if (certificate !== undefined && key === undefined)
    yield { key: privateKey, message: `is missing, and ${certificateKey} is given (both or neither)` };
}

/** bcrypt ignores bytes after the 72nd. */
const BCRYPT_LIMIT = 72;
const KEY_MINIMUM = 32;

function* otpChecks({ otp }: Config): Generator<Finding> {
  const about = ['otp.hash_algorithm'];
  if (otp.hash_algorithm === 'bcrypt' && otp.token_length > BCRYPT_LIMIT)
    yield {
      key: 'otp.token_length',
      message: `${otp.token_length} is too long for bcrypt (at most ${BCRYPT_LIMIT} with hash_algorithm = "bcrypt")`,
      about,
    };
  if (otp.hash_algorithm === 'sha256-hmac' && otp.hmac_key === undefined)
    yield {
      key: 'otp.hmac_key',
      message:
        'is missing, and otp.hash_algorithm is "sha256-hmac" (hmac_key_file = "path" or hmac_key_env = "VARIABLE", 32 bytes or more)',
      about,
    };
  if (otp.hmac_key !== undefined && otp.hmac_key.length < KEY_MINIMUM)
    yield { key: 'otp.hmac_key', message: `has ${otp.hmac_key.length} bytes (${KEY_MINIMUM} bytes or more)` };
  if (otp.lookup_key !== undefined && otp.lookup_key.length < KEY_MINIMUM)
    yield { key: 'otp.lookup_key', message: `has ${otp.lookup_key.length} bytes (${KEY_MINIMUM} bytes or more)` };
  if (otp.argon2.memory_kib < 8 * otp.argon2.parallelism)
    yield {
      key: 'otp.argon2.memory_kib',
      message: `is too small for ${otp.argon2.parallelism} lanes (at least 8 KiB a lane)`,
      about: ['otp.argon2.parallelism'],
    };
}

function* gssapiChecks({ gssapi }: Config): Generator<Finding> {
  if (gssapi.gssproxy && gssapi.keytab !== undefined)
    yield {
      key: 'gssapi.keytab',
      message: 'is given, and gssapi.gssproxy is true (one of the two)',
      about: ['gssapi.gssproxy'],
    };
  if (!gssapi.enabled) return;
  if (gssapi.require_crypto_verification && !gssapi.gssproxy && gssapi.keytab === undefined)
    yield {
      key: 'gssapi.keytab',
      message:
        'is missing, and gssapi.enabled is true (a path, relative to the configuration file, or gssproxy = true)',
      about: ['gssapi.gssproxy', 'gssapi.enabled'],
    };
  if (gssapi.service_principal === undefined)
    yield {
      key: 'gssapi.service_principal',
      message: 'is missing, and gssapi.enabled is true (HTTP/<hostname>@<REALM>)',
      about: ['gssapi.enabled'],
    };
  if (Object.keys(gssapi.principal_mapping).length === 0 && gssapi.default_template === undefined)
    yield {
      key: 'gssapi.principal_mapping',
      message: 'is empty, so no principal could enroll (entries, or gssapi.default_template)',
      about: ['gssapi.default_template', 'gssapi.enabled'],
    };
}

function* serverKeyGenChecks({ serverkeygen }: Config): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, entry] of serverkeygen.keys.entries()) {
    const key = `serverkeygen.keys[${index}]`;
    const { id, symmetric_key, certificate } = entry;
    if ((symmetric_key === undefined) === (certificate === undefined))
      yield {
        key,
        message: `names ${certificate === undefined ? 'no key' : 'two keys'} (one of symmetric_key_file, symmetric_key_env and certificate)`,
        about: [`${key}.symmetric_key`, `${key}.certificate`],
      };
    if (symmetric_key !== undefined && ![16, 24, 32].includes(symmetric_key.length))
      yield { key: `${key}.symmetric_key`, message: `has ${symmetric_key.length} bytes (16, 24 or 32 raw bytes)` };
    if (seen.has(id.toLowerCase()))
      yield { key: `${key}.id`, message: `${id} occurs twice (a different id for each key)` };
    seen.add(id.toLowerCase());
  }
}

function* cmcChecks(config: Config): Generator<Finding> {
  const { cmc } = config;
  yield* pair('cmc.certificate', cmc.certificate, 'cmc.private_key', cmc.private_key);
  const labels = labelsOf(config).map(({ table }) => table.label);
  const seen = new Set<string>();
  for (const [index, { identification, ca = [] }] of cmc.shared_secrets.entries()) {
    for (const label of ca)
      if (!labels.includes(label))
        yield {
          key: `cmc.shared_secrets[${index}].ca`,
          message: `"${label}" is not a label (${labels.join(', ')})`,
          about: ['ca', 'label'],
        };
    if (seen.has(identification))
      yield {
        key: `cmc.shared_secrets[${index}].identification`,
        message: `"${identification}" occurs twice (one secret for each identification)`,
      };
    seen.add(identification);
  }
}

function* publicationChecks({ publication }: Config): Generator<Finding> {
  if (publication.enabled && publication.base_url === undefined)
    yield {
      key: 'publication.base_url',
      message: 'is missing, and publication.enabled is true (an http URL such as "http://pki.example.com")',
      about: ['publication.enabled'],
    };
}

function* forwardingChecks({ est, tls }: Config): Generator<Finding> {
  const key = 'est.client_certificate_header';
  if (est.client_certificate_header === undefined) return;
  if (tls.client_auth.mode === 'none')
    yield {
      key,
      message:
        'is given, and tls.client_auth.mode is "none": the proxies could not show their certificates (another mode)',
      about: ['tls.client_auth.mode'],
    };
  if (est.require_pop_linking)
    yield {
      key,
      message: 'is given, and est.require_pop_linking is true: a proxy hides the channel binding (one of the two)',
      about: ['est.require_pop_linking'],
    };
  if (est.client_certificate_header.client_address === 'proxy-protocol' && est.proxy_protocol.length === 0)
    yield {
      key: `${key}.client_address`,
      message: 'is "proxy-protocol", and est.proxy_protocol is empty (the addresses of the proxies)',
      about: ['est.proxy_protocol'],
    };
}

function* popLinkingChecks({ est }: Config): Generator<Finding> {
  if (est.require_pop_linking && est.challenge_password === 'ignore')
    yield {
      key: 'est.challenge_password',
      message: 'is "ignore", and est.require_pop_linking is true ("binding", or require_pop_linking = false)',
      about: ['est.require_pop_linking'],
    };
}
