import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configFolder, toml } from './support.ts';
import type { ConfigFolder } from './support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

describe('what the configuration gives', () => {
  test('the smallest configuration is accepted, without a warning', async () => {
    const { warnings } = await folder.load(toml());
    expect(warnings).toEqual([]);
  });

  test('an argument of a program may be empty', async () => {
    const ca = `[[ca]]\nlabel = "devices"\ndefault = true\ndriver = "command"\nupstream_trust_anchors = "ca/root.pem"
[ca.command]\nissue = ["/bin/true", ""]`;
    const { config } = await folder.load(toml('', { ca }));
    expect(config.ca).toMatchObject([{ command: { issue: ['/bin/true', ''] } }]);
  });

  test.each([
    ['[store]\npath = "~/est.db"', 'store.path'],
    ['[store]\npath = "/srv/$NAME/est.db"', 'store.path'],
    ['[audit]\nfile = "logs/${NAME}.log"', 'audit.file'],
  ])('a path that a shell would expand is a warning: %s', async (text, key) => {
    const { warnings } = await folder.load(toml(text));
    expect(warnings).toEqual([{ key, message: expect.stringContaining('~ and $ are not expanded') as string }]);
    expect((await folder.load(toml(text.replace('~', 'a~').replaceAll('$', '')))).warnings).toEqual([]);
  });

  test('what is left out has its documented default', async () => {
    const { config } = await folder.load(toml());
    expect(config).toMatchObject({
      server: { shutdown_grace: 8, body_limit: 65536 },
      est: {
        host: '::',
        port: 9443,
        retry_after: 30,
        csrattrs_require_mtls: false,
        fullcmc_require_mtls: true,
        require_pop_linking: false,
        challenge_password: 'binding',
      },
      tls: { min_version: 'TLSv1.2', client_auth: { mode: 'optional' } },
      admin: { host: '127.0.0.1', port: 9444, public_metrics: false, bearer_token: { enabled: false, tokens: [] } },
      otp: {
        hash_algorithm: 'argon2id',
        token_length: 20,
        max_uses: 1,
        max_failures: 5,
        failure_window: 300,
        lockout_duration: 900,
        default_ttl: 86400,
        lockout_scope: 'address',
        bind_client_id: 'off',
        argon2: { memory_kib: 19456, iterations: 2, parallelism: 1 },
      },
      gssapi: { enabled: false, gssproxy: false, require_crypto_verification: true, principal_mapping: {} },
      serverkeygen: { encryption: 'password', keys: [] },
      publication: { enabled: false, host: '::', port: 8080, crl_interval: 3600 },
      log: { level: 'info' },
      ca: [
        {
          approval: 'auto',
          client_issuers: ['own', 'anchors'],
          auth: {},
          profile: {
            validity_days: 397,
            max_validity_days: 825,
            key_types: ['ec:P-256', 'ec:P-384', 'rsa:2048', 'rsa:3072', 'rsa:4096', 'ed25519'],
            key_usage: ['digitalSignature'],
            extended_key_usage: ['clientAuth'],
            allow_subject_change: false,
            renewal_grace_days: 0,
            mtls_subject: 'auto',
          },
        },
      ],
    });
    expect(config.est).not.toHaveProperty('base64_line_length');
    expect(config.ca[0]).not.toHaveProperty('csrattrs');
  });

  test('fullcmc and serverkeygen are on by default', async () => {
    const { config } = await folder.load(toml());
    expect(config.est.fullcmc).toBe(true);
    expect(config.est.serverkeygen).toBe(true);
  });

  test('paths are relative to the folder of the configuration file, and absolute afterwards', async () => {
    const { config } = await folder.load(toml('[audit]\nfile = "/var/log/audit.log"\n'));
    expect(config.tls.certificate).toBe(join(folder.path, 'tls/server.pem'));
    expect(config.store.path).toBe(join(folder.path, 'data/est.db'));
    expect(config.audit.file).toBe('/var/log/audit.log');
  });

  test('it is frozen, down to the last list', async () => {
    const { config } = await folder.load(toml());
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(frozen(config)).toBe(true);
  });

  test.each([
    ['required where trust anchors are given without a mode', '[admin.tls]\ntrust_anchors = "a.pem"', 'required'],
    ['what is said', '[admin.tls]\ntrust_anchors = "a.pem"\nmode = "optional"', 'optional'],
    [
      'none without trust anchors',
      `[admin.bearer_token]\nenabled = true\ntokens = [{ token_hash = "sha256:${'0'.repeat(64)}", description = "x" }]`,
      'none',
    ],
  ])('admin.tls.mode is %s', async (_, admin, mode) => {
    const { config } = await folder.load(toml('', { admin }));
    expect(config.admin.tls.mode).toBe(mode);
  });

  test('a whole subject and SAN policy', async () => {
    const { config } = await folder.load(
      toml(`[ca.profile]
subject = { required = ["CN"], allowed = ["CN", "O", "2.5.4.97"], patterns = { CN = "dev-[0-9]+" } }
san = { allowed = ["dns", "ip"], required = ["dns"], dns = ['[a-z]+\\.example\\.com'], ip = ["10.0.0.0/8", "2001:db8::/32"], max = 4 }
`),
    );
    expect(config.ca[0]?.profile).toMatchObject({
      subject: { required: ['CN'], allowed: ['CN', 'O', '2.5.4.97'], patterns: { CN: 'dev-[0-9]+' } },
      san: { allowed: ['dns', 'ip'], required: ['dns'], ip: ['10.0.0.0/8', '2001:db8::/32'], wildcards: false, max: 4 },
    });
  });
});

describe('a secret comes from a file or from the environment', () => {
  const HMAC = (source: string): string => toml(`[otp]\nenabled = true\nhash_algorithm = "sha256-hmac"\n${source}\n`);

  test('a key from a file is taken byte by byte', async () => {
    const key = Buffer.concat([Buffer.alloc(31, 7), Buffer.from('\n')]);
    await folder.write('otp.key', key);
    const { config } = await folder.load(HMAC('hmac_key_file = "otp.key"'));
    expect(config.otp.hmac_key?.reveal()).toEqual(key);
  });

  test('a key from the environment', async () => {
    const { config } = await folder.load(HMAC('hmac_key_env = "OTP_KEY"'), { OTP_KEY: 'k'.repeat(32) });
    expect(config.otp.hmac_key?.reveal().toString()).toBe('k'.repeat(32));
  });

  test('the loaded configuration shows no secret when it is logged', async () => {
    const { config } = await folder.load(HMAC('hmac_key_env = "OTP_KEY"'), { OTP_KEY: 'k'.repeat(32) });
    expect(JSON.stringify(config)).not.toContain('kkk');
    expect(JSON.stringify(config)).toContain('"hmac_key":"[secret]"');
  });

  test.each([
    [
      'a missing file',
      'hmac_key_file = "absent.key"',
      'otp.hmac_key_file: cannot read absent.key: there is no such file (a readable file)',
    ],
    ['a folder', 'hmac_key_file = "."', 'otp.hmac_key_file: cannot read .: it is a folder (a readable file)'],
    [
      'an unset variable',
      'hmac_key_env = "OTP_KEY"',
      'otp.hmac_key_env: the environment variable OTP_KEY is not set (the name of a variable that is set)',
    ],
    [
      'an empty variable',
      'hmac_key_env = "EMPTY"',
      'otp.hmac_key_env: the environment variable EMPTY is empty (the name of a variable that is set)',
    ],
    ['a short key', 'hmac_key_env = "SHORT"', 'otp.hmac_key: has 5 bytes (32 bytes or more)'],
    [
      'both forms',
      'hmac_key_env = "SHORT"\nhmac_key_file = "otp.key"',
      'otp.hmac_key: both hmac_key_file and hmac_key_env are given (one of the two)',
    ],
    [
      'an inline secret',
      `hmac_key = "${'s3cr3t'.repeat(8)}"`,
      'otp.hmac_key: a secret must not be in the configuration file (hmac_key_file = "path" or hmac_key_env = "VARIABLE")',
    ],
    ['a number as the path', 'hmac_key_file = 3', 'otp.hmac_key_file: is a whole number (a path)'],
  ])('%s is refused', async (_, source, problem) => {
    const lines = await folder.problems(HMAC(source), { EMPTY: '', SHORT: 's3cr3' });
    expect(lines).toEqual([`est.toml: ${problem}`]);
    expect(lines.join()).not.toContain('s3cr3t');
  });

  test.each(['password', 'passphrase', 'pin', 'secret', 'db_password', 'token'])(
    'an inline secret under the unknown name %s is refused with the two forms, and not printed',
    async (name) => {
      const [line, ...others] = await folder.problems(toml(`[store]\n${name} = "very-secret"\n`));
      expect(others).toEqual([]);
      expect(line).toContain(
        `est.toml: store.${name}: unknown key, and a secret must not be in the configuration file: secrets are given as *_file or *_env`,
      );
      expect(line).not.toContain('very-secret');
    },
  );

  test('a clear-text token in place of a token_hash is not printed', async () => {
    const admin = `[admin.bearer_token]\nenabled = true\ntokens = [{ token_hash = "very-secret", description = "x" }]`;
    expect(await folder.problems(toml('', { admin }))).toEqual([
      'est.toml: admin.bearer_token.tokens[0].token_hash: the value has the wrong form (sha256: followed by 64 hex digits, the SHA-256 of the token)',
    ]);
  });

  test('a syntax error next to a secret does not print the secret', async () => {
    const lines = await folder.problems('[otp]\npassword = "very-secret" oops\n');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^est\.toml:2: /);
    expect(lines[0]).not.toContain('very-secret');
  });
});
