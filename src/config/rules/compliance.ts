import type { AdminRole } from '../vocabulary.ts';
import { roleLists } from './admin.ts';
import { labelsOf } from '../labels.ts';
import { isLocalHost, parsePostgresUrl } from '../postgres-url.ts';
import type { Secret } from '../secret.ts';
import type { CrossChecks, Finding } from '../problem.ts';
import type { Config } from '../schema.ts';

/** NIAP's minimum token length; RFC 5272 §6.2.1 requires the same of shared secrets. */
const NIAP_TOKEN_LENGTH = 16;

/** A setting that is unsafe in any environment: a warning, with `profile = "niap"` a problem. */
interface UnsafeSetting {
  readonly key: string;
  /** The risk, as a clause. */
  readonly message: string;
  /** A safe value. */
  readonly safe: string;
  /** The other keys involved. */
  readonly about: readonly string[];
}

const unsafe = (key: string, message: string, safe: string, ...about: readonly string[]): UnsafeSetting => ({
  key,
  message,
  safe,
  about,
});

/** Warnings about unsafe settings; with `profile = "niap"` these and NIAP's own requirements are problems. */
export function complianceChecks(config: Config): CrossChecks {
  const found = [...unsafeSettings(config)];
  if (config.profile !== 'niap')
    return {
      problems: [],
      warnings: found.map(({ key, message, safe }) => ({ key, message: `${message} (${safe})` })),
    };
  const problems = [...found, ...niapPoints(config), ...separationOfRoles(config)].map(
    ({ key, message, safe, about }): Finding => ({
      key,
      message: `${message}, which profile = "niap" refuses (${safe})`,
      about: [...about, 'profile'],
    }),
  );
  return { problems, warnings: [] };
}

function* unsafeSettings({ tls, otp, gssapi, admin, est, cmc, serverkeygen, store }: Config): Generator<UnsafeSetting> {
  if (tls.client_auth.mode === 'none')
    yield unsafe(
      'tls.client_auth.mode',
      'is "none": client certificates are not verified, and nobody can re-enroll',
      '"required", "optional" or "required_for_reenroll"',
    );
  if (gssapi.enabled && !gssapi.require_crypto_verification)
    yield unsafe(
      'gssapi.require_crypto_verification',
      'is false: Kerberos tickets are NOT VERIFIED, so anybody can enroll with a forged one',
      'true',
      'gssapi.enabled',
    );
  if (est.challenge_password === 'ignore')
    yield unsafe('est.challenge_password', 'is "ignore": the channel binding of a CSR is not checked', '"binding"');
  if (est.serverkeygen && serverkeygen.encryption === 'optional')
    yield unsafe(
      'serverkeygen.encryption',
      'is "optional": TLS alone protects generated private keys',
      '"password" or "required", or est.serverkeygen = false',
      'est.serverkeygen',
    );
  if (admin.public_metrics) yield unsafe('admin.public_metrics', 'is true: anybody may read the metrics', 'false');
  const roles = admin.tls.default_roles ?? [];
  if (admin.tls.mode !== 'none' && admin.clients.length > 0 && roles.length > 0)
    yield unsafe(
      'admin.tls.default_roles',
      `gives ${roles.map((role) => `"${role}"`).join(', ')} to every certificate that no entry of admin.clients names`,
      'remove the key',
      'admin.clients',
    );
  if (store.driver === 'postgres' && store.tls === undefined && store.url !== undefined && isOpenDatabase(store.url))
    yield unsafe(
      'store.tls',
      'is missing: traffic to the database can be read and changed in transit',
      '[store.tls] with trust_anchors, or sslmode=verify-full in the URL',
      'store.driver',
      'store.url',
    );
  for (const [index, { secret }] of cmc.shared_secrets.entries())
    if (secret.length < NIAP_TOKEN_LENGTH)
      yield unsafe(
        `cmc.shared_secrets[${index}].secret`,
        `has ${secret.length} bytes: such secrets are short enough to be guessed`,
        `${NIAP_TOKEN_LENGTH} or more`,
      );
  if (otp.lockout_duration === 0 && (otp.enabled || cmc.shared_secrets.length > 0))
    yield unsafe(
      'otp.lockout_duration',
      'is 0: guessing tokens and shared secrets is not rate limited',
      '1 or more',
      'otp.enabled',
      'cmc.shared_secrets',
    );
  if (!otp.enabled) return;
  if (otp.token_length < NIAP_TOKEN_LENGTH)
    yield unsafe(
      'otp.token_length',
      `is ${otp.token_length}: such tokens are short enough to be guessed`,
      `${NIAP_TOKEN_LENGTH} or more, better 20`,
      'otp.enabled',
    );
  const { memory_kib, iterations } = otp.argon2;
  // OWASP's equivalent settings trade memory for passes; their product is at least 7168 × 5.
  if (otp.hash_algorithm === 'argon2id' && memory_kib * iterations < 35840)
    yield unsafe(
      'otp.argon2',
      "is weaker than OWASP's minimum",
      'memory_kib = 19456 with iterations = 2, or more',
      'otp.enabled',
    );
}

/** Whether a database is on another machine, and its URL does not demand TLS. */
function isOpenDatabase(text: Secret): boolean {
  const url = parsePostgresUrl(text.reveal().toString('utf8'));
  return url?.sslmode === 'disable' && url.hosts.some(({ host }) => !isLocalHost(host));
}

function* niapPoints(config: Config): Generator<UnsafeSetting> {
  const { otp, est, admin } = config;
  if (otp.enabled && otp.hash_algorithm !== 'argon2id')
    yield unsafe('otp.hash_algorithm', `is "${otp.hash_algorithm}"`, '"argon2id"', 'otp.enabled');
  if (admin.oidc !== undefined)
    yield unsafe(
      'admin.oidc',
      'is set: administrators would sign in at an OpenID provider',
      'client certificates or bearer tokens',
    );
  if (est.fullcmc && !est.fullcmc_require_mtls)
    yield unsafe(
      'est.fullcmc_require_mtls',
      'is false: the server accepts CMC requests without a client certificate',
      'true, or est.fullcmc = false',
      'est.fullcmc',
    );
  for (const {
    key,
    table: { profile },
  } of labelsOf(config))
    if (profile.backdate_seconds !== undefined && profile.backdate_seconds > 0)
      yield unsafe(
        `${key}.profile.backdate_seconds`,
        `is ${profile.backdate_seconds}: certificates would be valid from before they were issued`,
        '0',
      );
}

/** FMT_SMR.2: roles are assigned explicitly, and auditors have no other role. Entries with one name count together. */
function* separationOfRoles(config: Config): Generator<UnsafeSetting> {
  const rolesOf = new Map<string, Set<AdminRole>>();
  for (const { key, roles, who, administrator } of roleLists(config)) {
    if (roles === undefined) {
      yield unsafe(key, `is missing: ${who} may do everything`, 'a list of roles', 'admin.tls.mode');
      continue;
    }
    const before = rolesOf.get(administrator) ?? new Set();
    const all = new Set([...before, ...roles]);
    rolesOf.set(administrator, all);
    const mixedHere = isMixed(new Set(roles));
    if (!mixedHere && (isMixed(before) || !isMixed(all))) continue;
    yield unsafe(
      key,
      mixedHere
        ? 'has "auditor" together with "admin" or "ra": nobody would review what they do'
        : `gives ${who} "auditor" together with "admin" or "ra", because another entry has the same name`,
      'another administrator for "auditor"',
    );
  }
}

const isMixed = (roles: ReadonlySet<AdminRole>): boolean =>
  roles.has('auditor') && (roles.has('admin') || roles.has('ra'));
