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
  readonly about?: readonly string[];
}

/** Warnings about unsafe settings; with `profile = "niap"` these and NIAP's own requirements are problems. */
export function complianceChecks(config: Config): CrossChecks {
  const unsafe = [...unsafeSettings(config)];
  if (config.profile !== 'niap')
    return {
      problems: [],
      warnings: unsafe.map(({ key, message, safe }) => ({ key, message: `${message} (${safe})` })),
    };
  const problems = [...unsafe, ...niapPoints(config), ...separationOfRoles(config)].map(
    ({ key, message, safe, about = [] }): Finding => ({
      key,
      message: `${message}, which profile = "niap" refuses (${safe})`,
      about: [...about, 'profile'],
    }),
  );
  return { problems, warnings: [] };
}

function* unsafeSettings({ tls, otp, gssapi, admin, est, cmc, serverkeygen, store }: Config): Generator<UnsafeSetting> {
  if (tls.client_auth.mode === 'none')
    yield {
      key: 'tls.client_auth.mode',
      message: 'is "none": client certificates are not verified, and nobody can re-enroll',
      safe: '"required", "optional" or "required_for_reenroll"',
    };
  if (gssapi.enabled && !gssapi.require_crypto_verification)
    yield {
      key: 'gssapi.require_crypto_verification',
      message: 'is false: Kerberos tickets are NOT VERIFIED, so anybody can enroll with a forged one',
      safe: 'true',
      about: ['gssapi.enabled'],
    };
  if (est.challenge_password === 'ignore')
    yield {
      key: 'est.challenge_password',
      message: 'is "ignore": the channel binding of a CSR is not checked',
      safe: '"binding"',
    };
  if (est.serverkeygen && serverkeygen.encryption === 'optional')
    yield {
      key: 'serverkeygen.encryption',
      message: 'is "optional": TLS alone protects generated private keys',
      safe: '"password" or "required", or est.serverkeygen = false',
      about: ['est.serverkeygen'],
    };
  if (admin.public_metrics)
    yield { key: 'admin.public_metrics', message: 'is true: anybody may read the metrics', safe: 'false' };
  const roles = admin.tls.default_roles ?? [];
  if (admin.tls.mode !== 'none' && admin.clients.length > 0 && roles.length > 0)
    yield {
      key: 'admin.tls.default_roles',
      message: `gives ${roles.map((role) => `"${role}"`).join(', ')} to every certificate that no entry of admin.clients names`,
      safe: 'remove the key',
      about: ['admin.clients'],
    };
  if (store.driver === 'postgres' && store.tls === undefined && store.url !== undefined && isOpenDatabase(store.url))
    yield {
      key: 'store.tls',
      message: 'is missing: traffic to the database can be read and changed in transit',
      safe: '[store.tls] with trust_anchors, or sslmode=verify-full in the URL',
      about: ['store.driver', 'store.url'],
    };
  for (const [index, { secret }] of cmc.shared_secrets.entries())
    if (secret.length < NIAP_TOKEN_LENGTH)
      yield {
        key: `cmc.shared_secrets[${index}].secret`,
        message: `has ${secret.length} bytes: such secrets are short enough to be guessed`,
        safe: `${NIAP_TOKEN_LENGTH} or more`,
      };
  if (otp.lockout_duration === 0 && (otp.enabled || cmc.shared_secrets.length > 0))
    yield {
      key: 'otp.lockout_duration',
      message: 'is 0: guessing tokens and shared secrets is not rate limited',
      safe: '1 or more',
      about: ['otp.enabled', 'cmc.shared_secrets'],
    };
  if (!otp.enabled) return;
  const about = ['otp.enabled'];
  if (otp.token_length < NIAP_TOKEN_LENGTH)
    yield {
      key: 'otp.token_length',
      message: `is ${otp.token_length}: such tokens are short enough to be guessed`,
      safe: `${NIAP_TOKEN_LENGTH} or more, better 20`,
      about,
    };
  const { memory_kib, iterations } = otp.argon2;
  // OWASP's equivalent settings trade memory for passes; their product is at least 7168 × 5.
  if (otp.hash_algorithm === 'argon2id' && memory_kib * iterations < 35840)
    yield {
      key: 'otp.argon2',
      message: "is weaker than OWASP's minimum",
      safe: 'memory_kib = 19456 with iterations = 2, or more',
      about,
    };
}

/** Whether a database is on another machine, and its URL does not demand TLS. */
function isOpenDatabase(text: Secret): boolean {
  const url = parsePostgresUrl(text.reveal().toString('utf8'));
  return url?.sslmode === 'disable' && url.hosts.some(({ host }) => !isLocalHost(host));
}

function* niapPoints(config: Config): Generator<UnsafeSetting> {
  const { otp, est, admin } = config;
  if (otp.enabled && otp.hash_algorithm !== 'argon2id')
    yield {
      key: 'otp.hash_algorithm',
      message: `is "${otp.hash_algorithm}"`,
      safe: '"argon2id"',
      about: ['otp.enabled'],
    };
  if (admin.oidc !== undefined)
    yield {
      key: 'admin.oidc',
      message: 'is set: administrators would sign in at an OpenID provider',
      safe: 'client certificates or bearer tokens',
    };
  if (est.fullcmc && !est.fullcmc_require_mtls)
    yield {
      key: 'est.fullcmc_require_mtls',
      message: 'is false: the server accepts CMC requests without a client certificate',
      safe: 'true, or est.fullcmc = false',
      about: ['est.fullcmc'],
    };
  for (const {
    key,
    table: { profile },
  } of labelsOf(config))
    if (profile.backdate_seconds !== undefined && profile.backdate_seconds > 0)
      yield {
        key: `${key}.profile.backdate_seconds`,
        message: `is ${profile.backdate_seconds}: certificates would be valid from before they were issued`,
        safe: '0',
      };
}

/** FMT_SMR.2: roles are assigned explicitly, and auditors have no other role. Entries with one name count together. */
function* separationOfRoles(config: Config): Generator<UnsafeSetting> {
  const rolesOf = new Map<string, Set<AdminRole>>();
  for (const { key, roles, who, administrator } of roleLists(config)) {
    if (roles === undefined) {
      yield {
        key,
        message: `is missing: ${who} may do everything`,
        safe: 'a list of roles',
        about: ['admin.tls.mode'],
      };
      continue;
    }
    const before = rolesOf.get(administrator) ?? new Set();
    const all = new Set([...before, ...roles]);
    rolesOf.set(administrator, all);
    const mixedHere = isMixed(new Set(roles));
    if (!mixedHere && (isMixed(before) || !isMixed(all))) continue;
    yield {
      key,
      message: mixedHere
        ? 'has "auditor" together with "admin" or "ra": nobody would review what they do'
        : `gives ${who} "auditor" together with "admin" or "ra", because another entry has the same name`,
      safe: 'another administrator for "auditor"',
    };
  }
}

const isMixed = (roles: ReadonlySet<AdminRole>): boolean =>
  roles.has('auditor') && (roles.has('admin') || roles.has('ra'));
