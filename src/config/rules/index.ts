import { authChecks } from './auth.ts';
import { adminChecks, adminWarnings } from './admin.ts';
import { caChecks } from './ca.ts';
import { finding, type CrossChecks, type Finding, type Warning } from '../problem.ts';
import { complianceChecks } from './compliance.ts';
import { nameWarnings } from './names.ts';
import { retentionChecks, serverCertificateChecks, storeChecks } from './server.ts';
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';

/** Checks that concern more than one key. Reads no file. */
export function crossChecks(config: Config): CrossChecks {
  const compliance = complianceChecks(config);
  return {
    problems: [
      ...serverChecks(config),
      ...serverCertificateChecks(config),
      ...clientAuthChecks(config),
      ...adminChecks(config),
      ...pair('admin.tls', config.admin.tls, 'certificate', 'private_key'),
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
      ...pair('store.tls', config.store.tls ?? {}, 'client_certificate', 'client_key'),
      ...compliance.problems,
    ],
    warnings: [...adminWarnings(config), ...gssapiWarnings(config), ...compliance.warnings, ...nameWarnings(config)],
  };
}

function* serverChecks({ server, est, admin, publication }: Config): Generator<Finding> {
  if (server.headers_timeout > server.request_timeout)
    yield finding(
      'server.headers_timeout',
      `is longer than server.request_timeout (at most ${server.request_timeout})`,
      'server.request_timeout',
    );
  const listeners = [
    { name: 'est', ...est },
    { name: 'admin', ...admin },
    ...(publication.enabled ? [{ name: 'publication', ...publication }] : []),
  ];
  const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::';
  for (const [index, { name, host, port }] of listeners.entries())
    for (const other of listeners.slice(0, index))
      if (port !== 0 && port === other.port && (host === other.host || isAny(host) || isAny(other.host)))
        yield finding(
          `${name}.port`,
          `${port} is the port of ${other.name} too (a port for each listener)`,
          `${other.name}.port`,
          `${name}.host`,
          `${other.name}.host`,
        );
}

function* clientAuthChecks({ tls, est }: Config): Generator<Finding> {
  const { mode, trust_anchors } = tls.client_auth;
  if (mode !== 'none' && trust_anchors === undefined)
    yield finding(
      'tls.client_auth.trust_anchors',
      `is missing, and tls.client_auth.mode is "${mode}" (a path, relative to the configuration file, or mode = "none")`,
      'tls.client_auth.mode',
    );
  if (mode === 'none' && est.csrattrs_require_mtls)
    yield finding(
      'est.csrattrs_require_mtls',
      'cannot be met while tls.client_auth.mode is "none" (false, or another mode)',
      'tls.client_auth.mode',
    );
}

/** A certificate and a private key must be given together. */
function* pair<Key extends string>(
  section: string,
  table: Readonly<Partial<Record<Key, unknown>>>,
  certificate: Key,
  key: Key,
): Generator<Finding> {
  const missing = table[certificate] === undefined ? certificate : key;
  const given = missing === key ? certificate : key;
  if (table[missing] === undefined && table[given] !== undefined)
    yield finding(`${section}.${missing}`, `is missing, and ${section}.${given} is given (both or neither)`);
}

/** bcrypt ignores bytes after the 72nd. */
const BCRYPT_LIMIT = 72;

function* otpChecks({ otp, store }: Config): Generator<Finding> {
  const about = ['otp.hash_algorithm'];
  if (otp.hash_algorithm === 'bcrypt' && otp.token_length > BCRYPT_LIMIT)
    yield finding(
      'otp.token_length',
      `${otp.token_length} is too long for bcrypt (at most ${BCRYPT_LIMIT} with hash_algorithm = "bcrypt")`,
      ...about,
    );
  if (otp.hash_algorithm === 'sha256-hmac' && otp.hmac_key === undefined && store.driver === 'postgres')
    yield finding(
      'otp.hmac_key',
      'is missing, otp.hash_algorithm is "sha256-hmac", and store.driver is "postgres" (hmac_key_file = "path" or hmac_key_env = "VARIABLE", 32 bytes or more, the same key on every server of the database)',
      ...about,
    );
  if (otp.argon2.memory_kib < 8 * otp.argon2.parallelism)
    yield finding(
      'otp.argon2.memory_kib',
      `is too small for ${otp.argon2.parallelism} lanes (at least 8 KiB a lane)`,
      'otp.argon2.parallelism',
    );
}

function* gssapiChecks({ gssapi, auth }: Config): Generator<Finding> {
  if (gssapi.gssproxy && gssapi.keytab !== undefined)
    yield finding('gssapi.keytab', 'is given, and gssapi.gssproxy is true (one of the two)', 'gssapi.gssproxy');
  if (!gssapi.enabled) return;
  if (gssapi.require_crypto_verification && !gssapi.gssproxy && gssapi.keytab === undefined)
    yield finding(
      'gssapi.keytab',
      'is missing, and gssapi.enabled is true (a path, relative to the configuration file, or gssproxy = true)',
      'gssapi.gssproxy',
      'gssapi.enabled',
    );
  if (gssapi.require_crypto_verification && gssapi.service_principal === undefined)
    yield finding(
      'gssapi.service_principal',
      'is missing, and gssapi.enabled is true (HTTP/<hostname>@<REALM>)',
      'gssapi.enabled',
    );
  if (gssapi.directory === undefined) return;
  const { ldap } = auth;
  for (const key of ['bind_dn', 'search_base'] as const)
    if (ldap?.[key] === undefined)
      yield finding(
        `auth.ldap.${key}`,
        'is missing, and [gssapi.directory] needs it (as in ldap.md)',
        'gssapi.directory',
      );
  if (!gssapi.require_crypto_verification)
    yield finding(
      'gssapi.directory',
      'is given, and gssapi.require_crypto_verification is false (verified tickets, or no directory)',
      'gssapi.require_crypto_verification',
    );
}

function gssapiWarnings({ gssapi }: Config): readonly Warning[] {
  if (!gssapi.enabled || gssapi.default_template !== undefined || Object.keys(gssapi.principal_mapping).length > 0)
    return [];
  const message = 'is empty, so every principal gets "principal not mapped" (entries, or gssapi.default_template)';
  return [{ key: 'gssapi.principal_mapping', message }];
}

function* serverKeyGenChecks({ serverkeygen }: Config): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, entry] of serverkeygen.keys.entries()) {
    const key = `serverkeygen.keys[${index}]`;
    const { id, symmetric_key, certificate } = entry;
    if ((symmetric_key === undefined) === (certificate === undefined))
      yield finding(
        key,
        `names ${certificate === undefined ? 'no key' : 'two keys'} (one of symmetric_key_file, symmetric_key_env and certificate)`,
        `${key}.symmetric_key`,
        `${key}.certificate`,
      );
    if (seen.has(id.toLowerCase())) yield finding(`${key}.id`, `${id} occurs twice (a different id for each key)`);
    seen.add(id.toLowerCase());
  }
}

function* cmcChecks(config: Config): Generator<Finding> {
  const { cmc } = config;
  yield* pair('cmc', cmc, 'certificate', 'private_key');
  const labels = labelsOf(config).map(({ table }) => table.label);
  const seen = new Set<string>();
  for (const [index, { identification, ca = [] }] of cmc.shared_secrets.entries()) {
    for (const label of ca)
      if (!labels.includes(label))
        yield finding(
          `cmc.shared_secrets[${index}].ca`,
          `"${label}" is not a label (${labels.join(', ')})`,
          'ca',
          'label',
        );
    if (seen.has(identification))
      yield finding(
        `cmc.shared_secrets[${index}].identification`,
        `"${identification}" occurs twice (one secret for each identification)`,
      );
    seen.add(identification);
  }
}

function* publicationChecks({ publication }: Config): Generator<Finding> {
  if (publication.enabled && publication.base_url === undefined)
    yield finding(
      'publication.base_url',
      'is missing, and publication.enabled is true (an http URL such as "http://pki.example.com")',
      'publication.enabled',
    );
}

function* forwardingChecks({ est }: Config): Generator<Finding> {
  const key = 'est.client_certificate_header';
  if (est.client_certificate_header === undefined) return;
  if (est.require_pop_linking)
    yield finding(
      key,
      'is given, and est.require_pop_linking is true: a proxy hides the channel binding (one of the two)',
      'est.require_pop_linking',
    );
  if (est.client_certificate_header.client_address === 'proxy-protocol' && est.proxy_protocol.length === 0)
    yield finding(
      `${key}.client_address`,
      'is "proxy-protocol", and est.proxy_protocol is empty (the addresses of the proxies)',
      'est.proxy_protocol',
    );
}

function* popLinkingChecks({ est }: Config): Generator<Finding> {
  if (est.require_pop_linking && est.challenge_password === 'ignore')
    yield finding(
      'est.challenge_password',
      'is "ignore", and est.require_pop_linking is true ("binding", or require_pop_linking = false)',
      'est.require_pop_linking',
    );
}
