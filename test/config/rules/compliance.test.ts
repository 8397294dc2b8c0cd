import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { complianceChecks } from '../../../src/config/rules/compliance.ts';
import type { Config } from '../../../src/config/schema.ts';
import { Secret } from '../../../src/config/secret.ts';
import { ROOT } from '../../support/root.ts';
import { configFolder, toml } from '../support.ts';
import type { ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
let base: Config;
beforeAll(async () => {
  folder = await configFolder();
  ({ config: base } = await folder.load(toml('[otp]\nenabled = true')));
});
afterAll(() => folder.remove());

/** With entries of admin.clients, without default_roles unless told. */
const withAdmin = (config: Config, changes: Partial<Config['admin']>): Config => ({
  ...config,
  admin: { ...config.admin, ...(changes.clients && { tls: { mode: 'required' } }), ...changes },
});
/** One that is as it should be, and one of the test. */
const tokensWith = (token: Pick<Config['admin']['bearer_token']['tokens'][number], 'name' | 'roles'>) => ({
  enabled: true,
  tokens: [
    { token_hash: 'sha256:00', description: 'audit', roles: ['auditor', 'operator'] as const },
    { token_hash: 'sha256:01', description: 'ops', ...token },
  ],
});

/** Unsafe settings, with the key that is named. */
const UNSAFE: [string, (config: Config) => Config, string][] = [
  [
    'no client certificates',
    (c) => ({ ...c, tls: { ...c.tls, client_auth: { mode: 'none' } } }),
    'tls.client_auth.mode',
  ],
  [
    'Kerberos tickets that are not verified',
    (c) => ({ ...c, gssapi: { ...c.gssapi, enabled: true, require_crypto_verification: false } }),
    'gssapi.require_crypto_verification',
  ],
  [
    'channel binding ignored',
    (c) => ({ ...c, est: { ...c.est, challenge_password: 'ignore' } }),
    'est.challenge_password',
  ],
  [
    'roles for certificates without an entry, although there are entries',
    (c) =>
      withAdmin(c, {
        tls: { mode: 'required', default_roles: ['operator'] },
        clients: [{ spki_sha256: '00', roles: ['ra'] }],
      }),
    'admin.tls.default_roles',
  ],
  ['public metrics', (c) => ({ ...c, admin: { ...c.admin, public_metrics: true } }), 'admin.public_metrics'],
  ['short tokens', (c) => ({ ...c, otp: { ...c.otp, token_length: 15 } }), 'otp.token_length'],
  ['no lockout', (c) => ({ ...c, otp: { ...c.otp, lockout_duration: 0 } }), 'otp.lockout_duration'],
  [
    'a short shared secret',
    (c) => ({
      ...c,
      cmc: { ...c.cmc, shared_secrets: [{ identification: 'device 7', secret: new Secret(Buffer.alloc(15)) }] },
    }),
    'cmc.shared_secrets[0].secret',
  ],
  [
    'generated keys that TLS alone protects',
    (c) => ({
      ...c,
      est: { ...c.est, serverkeygen: true },
      serverkeygen: { ...c.serverkeygen, encryption: 'optional' },
    }),
    'serverkeygen.encryption',
  ],
  [
    'a weak argon2id',
    (c) => ({ ...c, otp: { ...c.otp, argon2: { memory_kib: 8192, iterations: 1, parallelism: 1 } } }),
    'otp.argon2',
  ],
];

describe('an unsafe setting starts with a warning that names the key', () => {
  test.each(UNSAFE)('%s', (_, change, key) => {
    const { problems, warnings } = complianceChecks(change(base));
    expect(problems).toEqual([]);
    expect(warnings.map((warning) => warning.key)).toEqual([key]);
  });
});

test('the docs say of unverified tickets what the start and --check say', () => {
  const { warnings } = complianceChecks({
    ...base,
    gssapi: { ...base.gssapi, enabled: true, require_crypto_verification: false },
  });
  expect(warnings[0]?.message).toContain('tickets are NOT VERIFIED');
  expect(warnings[0]?.message).toContain('so anybody can enroll with a forged one');
  for (const page of ['docs/guides/gssapi.md', 'docs/reference/configuration.md'])
    expect(readFileSync(join(ROOT, page), 'utf8')).toMatch(
      /tickets are NOT VERIFIED(?: then)?, so anybody can enroll with a forged one/,
    );
});

describe('profile = "niap" refuses to start', () => {
  test.each([
    ...UNSAFE,
    ['bcrypt', (c: Config): Config => ({ ...c, otp: { ...c.otp, hash_algorithm: 'bcrypt' } }), 'otp.hash_algorithm'],
    ['HMAC', (c: Config): Config => ({ ...c, otp: { ...c.otp, hash_algorithm: 'sha256-hmac' } }), 'otp.hash_algorithm'],
    [
      'CMC requests without a client certificate',
      (c: Config): Config => ({ ...c, est: { ...c.est, fullcmc: true, fullcmc_require_mtls: false } }),
      'est.fullcmc_require_mtls',
    ],
    [
      'backdated certificates',
      (c: Config): Config => ({
        ...c,
        ca: c.ca.map((ca) => ({ ...ca, profile: { ...ca.profile, backdate_seconds: 60 } })),
      }),
      'ca[0].profile.backdate_seconds',
    ],
    [
      'roles of certificates that nobody gave',
      (c: Config): Config => withAdmin(c, { tls: { mode: 'required' } }),
      'admin.tls.default_roles',
    ],
    [
      'a token and a certificate of one name, for auditor and ra',
      (c: Config): Config =>
        withAdmin(c, {
          clients: [{ name: 'ops', fingerprint: 'sha256:00', roles: ['auditor'] }],
          bearer_token: tokensWith({ roles: ['ra'] }),
        }),
      'admin.bearer_token.tokens[1].roles',
    ],
    [
      'two tokens of one name, for auditor and admin',
      (c: Config): Config => withAdmin(c, { bearer_token: tokensWith({ name: 'audit', roles: ['admin'] }) }),
      'admin.bearer_token.tokens[1].roles',
    ],
    [
      'a certificate without its own roles',
      (c: Config): Config => withAdmin(c, { clients: [{ fingerprint: 'sha256:00' }] }),
      'admin.clients[0].roles',
    ],
    [
      'a token without its own roles',
      (c: Config): Config => withAdmin(c, { bearer_token: tokensWith({}) }),
      'admin.bearer_token.tokens[1].roles',
    ],
    ...([['admin'], ['ra'], ['operator', 'ra']] as const).flatMap((others): typeof UNSAFE => [
      [
        `a token for auditor and ${others.join(' and ')}`,
        (c) => withAdmin(c, { bearer_token: tokensWith({ roles: ['auditor', ...others] }) }),
        'admin.bearer_token.tokens[1].roles',
      ],
      [
        `an administrator who is auditor and ${others.join(' and ')}`,
        (c) => withAdmin(c, { clients: [{ fingerprint: 'sha256:00', roles: [...others, 'auditor'] }] }),
        'admin.clients[0].roles',
      ],
      [
        `certificates for auditor and ${others.join(' and ')}`,
        (c) => withAdmin(c, { tls: { mode: 'required', default_roles: ['auditor', ...others] } }),
        'admin.tls.default_roles',
      ],
    ]),
  ] satisfies typeof UNSAFE)('%s', (_, change, key) => {
    const { problems, warnings } = complianceChecks({
      ...change({ ...base, est: { ...base.est, serverkeygen: false } }),
      profile: 'niap',
    });
    expect(problems.map((problem) => problem.key)).toEqual([key]);
    expect(problems[0]?.message).toContain('profile = "niap" refuses');
    expect(warnings).toEqual([]);
  });

  test('16 characters, argon2id and the default lockout are enough', () => {
    const config: Config = {
      ...base,
      profile: 'niap',
      est: { ...base.est, serverkeygen: true },
      serverkeygen: { ...base.serverkeygen, encryption: 'required' },
      otp: { ...base.otp, token_length: 16 },
    };
    expect(complianceChecks(config)).toEqual({ problems: [], warnings: [] });
  });

  test('default_roles may be absent once admin.clients has an entry: it is an empty list then', () => {
    const tls = { mode: 'required' } as const;
    const config = withAdmin({ ...base, profile: 'niap', est: { ...base.est, serverkeygen: false } }, { tls });
    const clients = [{ name: 'Ada', spki_sha256: '00', roles: ['ra'] }] as const;
    expect(complianceChecks(config).problems.map(({ key }) => key)).toEqual(['admin.tls.default_roles']);
    expect(complianceChecks(withAdmin(config, { clients })).problems).toEqual([]);
  });

  test('OTP settings do not matter while OTPs are off', () => {
    const config: Config = {
      ...base,
      profile: 'niap',
      est: { ...base.est, serverkeygen: false },
      otp: { ...base.otp, enabled: false, token_length: 8, hash_algorithm: 'bcrypt', lockout_duration: 0 },
    };
    expect(complianceChecks(config).problems).toEqual([]);
  });

  test('certificates are not backdated where nothing else is said', async () => {
    const text = toml('[otp]\nenabled = false\n[est]\nserverkeygen = false');
    expect((await folder.load(text)).config.ca[0]?.profile.backdate_seconds).toBeUndefined();
    expect((await folder.load(`profile = "niap"\n${text}`)).config.ca[0]?.profile.backdate_seconds).toBe(0);
  });

  test('it is read from the file, and every reason is given at once', async () => {
    const text = `profile = "niap"\n${toml('[otp]\nenabled = true\ntoken_length = 12\nhash_algorithm = "bcrypt"\n[est]\nserverkeygen = false')}`;
    expect(await folder.problems(text)).toEqual([
      'est.toml: otp.token_length: is 12: such tokens are short enough to be guessed, which profile = "niap" refuses (16 or more, better 20)',
      'est.toml: otp.hash_algorithm: is "bcrypt", which profile = "niap" refuses ("argon2id")',
    ]);
  });
});
