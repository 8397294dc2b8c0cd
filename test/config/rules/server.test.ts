/** `[store] driver = "postgres"`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePostgresUrl, postgresUrlProblem } from '../../../src/config/postgres-url.ts';
import { configFolder, type ConfigFolder, toml } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
  await folder.write('k32', Buffer.alloc(32, 1));
  await folder.write('url', 'postgresql://est:s3cr3t@127.0.0.1/est\n');
  await folder.write('far', 'postgresql://est:s3cr3t@db1.example.com,db2.example.com:5433/est');
  await folder.write('no-url', 'host=db1 password=s3cr3t');
});
afterAll(() => folder.remove());

const POSTGRES = (...lines: string[]): string =>
  toml(['[otp]', 'lookup_key_file = "k32"', '[store]', 'driver = "postgres"', ...lines].join('\n'));

describe('[store] driver = "postgres"', () => {
  test('takes its URL from a file or a variable, and shows it to nobody', async () => {
    const { config, warnings } = await folder.load(POSTGRES('url_env = "DB"', 'node_name = "est-1"'), {
      DB: 'postgres://est:s3cr3t@localhost/est',
    });
    expect(config.store).toMatchObject({ driver: 'postgres', pool_size: 10, node_name: 'est-1' });
    expect(JSON.stringify(config)).not.toContain('s3cr3t');
    expect(warnings.filter(({ key }) => key.startsWith('store'))).toEqual([]);
    await expect(folder.load(POSTGRES('url_file = "url"'))).resolves.toBeDefined();
  });

  test('warns where the database is on another machine and TLS is not spoken with it; NIAP refuses it', async () => {
    const { warnings } = await folder.load(POSTGRES('url_file = "far"'));
    expect(warnings).toContainEqual({
      key: 'store.tls',
      message:
        'is missing: traffic to the database can be read and changed in transit ([store.tls] with trust_anchors, or sslmode=verify-full in the URL)',
    });
    const { warnings: none } = await folder.load(POSTGRES('url_file = "far"', '[store.tls]'));
    expect(none.filter(({ key }) => key.startsWith('store'))).toEqual([]);
    expect((await folder.problems(`profile = "niap"\n${POSTGRES('url_file = "far"')}`)).join('\n')).toContain(
      'store.tls: is missing: traffic to the database can be read and changed in transit, which profile = "niap" refuses',
    );
  });

  test.each<[string, string, string]>([
    [
      'no URL',
      POSTGRES(),
      'store.url: is missing, and store.driver is "postgres" (url_file = "path" or url_env = "VARIABLE")',
    ],
    [
      'what is no URL',
      POSTGRES('url_file = "no-url"'),
      'store.url: is not a URL of a PostgreSQL database (postgresql://USER:PASSWORD@HOST/DATABASE, as libpq reads it, with @ in a name or password as %40, / as %2F, % as %25)',
    ],
    [
      'a URL in the file',
      POSTGRES('url = "postgresql://est:s3cr3t@db/est"'),
      'store.url: a secret must not be in the configuration file (url_file = "path" or url_env = "VARIABLE")',
    ],
    [
      'a path',
      POSTGRES('url_file = "url"', 'path = "data/est.db"'),
      'store.path: requires driver = "sqlite" (driver is "postgres")',
    ],
    [
      "a key for tokens on one server's disk",
      toml('[otp]\nenabled = true\n[store]\ndriver = "postgres"\nurl_file = "url"'),
      'otp.lookup_key: is missing, and store.driver is "postgres" (lookup_key_file = "path" or lookup_key_env = "VARIABLE", the same key on every server of the database)',
    ],
    [
      'half a client certificate',
      POSTGRES('url_file = "url"', '[store.tls]', 'client_key = "a.key"'),
      'store.tls.client_certificate: is missing, and store.tls.client_key is given (both or neither)',
    ],
    [
      'a short shared key',
      POSTGRES('url_file = "url"', 'shared_key_env = "S"'),
      'store.shared_key: has 3 bytes (32 bytes or more)',
    ],
    [
      'too few connections',
      POSTGRES('url_file = "url"', 'pool_size = 1'),
      'store.pool_size: 1 is out of range (a whole number from 2 to 1000)',
    ],
    [
      'a URL with sqlite',
      toml('[store]\nurl_file = "url"'),
      'store.url: requires driver = "postgres" (driver is "sqlite")',
    ],
  ])('refuses %s', async (_, text, problem) => {
    const lines = await folder.problems(text, { S: 'abc' });
    expect(lines).toEqual([`est.toml: ${problem}`]);
    expect(lines.join()).not.toContain('s3cr3t');
  });

  test('reads URLs as libpq does', () => {
    expect(parsePostgresUrl('postgresql://a%40b:p%2Fw@db1,db2:5433/est?application_name=x+y')).toEqual({
      user: 'a@b',
      password: 'p/w',
      hosts: [
        { host: 'db1', port: 5432 },
        { host: 'db2', port: 5433 },
      ],
      database: 'est',
      sslmode: 'disable',
      sslrootcert: undefined,
      options: undefined,
      application_name: 'x+y',
      connect_timeout: undefined,
    });
    const all =
      'postgresql://a@b/c?user=d&password=e&dbname=f&options=-csearch_path%3Dpki&sslmode=verify-ca&connect_timeout=9';
    expect(parsePostgresUrl(all)).toMatchObject({
      ...{ user: 'd', password: 'e', database: 'f', options: '-csearch_path=pki' },
      ...{ sslmode: 'verify-ca', connect_timeout: 9 },
    });
    expect(parsePostgresUrl('postgresql://a@b/c?sslrootcert=system')?.sslmode).toBe('verify-full');
    expect(parsePostgresUrl('postgres://[::1]:6000/x')?.hosts).toEqual([{ host: '::1', port: 6000 }]);
    expect(parsePostgresUrl('postgres:///est?host=/run/postgresql')?.hosts).toEqual([
      { host: '/run/postgresql', port: 5432 },
    ]);
    for (const text of ['mysql://a/b', 'postgresql://a:0/b', 'postgresql://a,/b', 'postgresql://%zz/b', 'x'])
      expect(parsePostgresUrl(text)).toBeUndefined();
  });

  test.each([
    ['sslmode=bogus', 'has sslmode=bogus (disable, require, verify-ca, verify-full)'],
    ['sslmode=prefer', 'has sslmode=prefer (disable, require, verify-ca, verify-full)'],
    ['sslmode=allow', 'has sslmode=allow (disable, require, verify-ca, verify-full)'],
    [
      'sslcert=a.pem',
      /^has the parameter "sslcert", which is not supported \(host, .*; \[store\.tls\] names certificates\)$/,
    ],
    ['SSLMODE=require', /^has the parameter "SSLMODE", which is not supported/],
    ['connect_timeout=x', 'has another connect_timeout (1 to 9999)'],
    ['target_session_attrs=standby', 'has another target_session_attrs (any, primary, read-write)'],
    ['target_session_attrs=read-write', undefined],
  ])('a parameter of the URL is honored, or refused by name: %s', (query, problem) => {
    const found = postgresUrlProblem(`postgresql://estuary:s3cr3t@db/est?${query}`);
    if (problem instanceof RegExp) expect(found).toMatch(problem);
    else expect(found).toBe(problem);
  });
});
