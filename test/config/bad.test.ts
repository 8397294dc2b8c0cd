/**
 * Configurations that are refused, each with its messages.
 *
 * Longer than other files: the problems are one table.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configFolder, PARTS, toml } from './support.ts';
import type { ConfigFolder } from './support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
  await folder.write('k32', Buffer.alloc(32, 1));
});
afterAll(() => folder.remove());

const TOKEN = `{ token_hash = "sha256:${'0'.repeat(64)}", description = "ops" }`;
const BEARER = (rest: string): string => `[admin.bearer_token]\n${rest}`;
const CA = (rest: string): string => `${PARTS.ca}\n${rest}`;

type Row = readonly [name: string, text: string, ...problems: string[]];

async function expectRow(text: string, problems: readonly string[]): Promise<void> {
  expect(await folder.problems(text)).toEqual(problems.map((problem) => `est.toml: ${problem}`));
}

describe('a refused configuration prints FILE: KEY: what is wrong (what is allowed)', () => {
  const AUTOMATIC = (rest: string): string => `[tls]\nautomatic = { ca = "devices", names = ["est.example"] }\n${rest}`;
  const rows: Row[] = [
    [
      'an automatic certificate of an unknown CA',
      toml('', { tls: '[tls]\nautomatic = { ca = "other", names = ["est.example"] }' }),
      'tls.automatic.ca: "other" is not a CA of this server (the label of a CA whose key is here, with approval = "auto")',
    ],
    [
      'an automatic certificate of a CA with manual approval',
      toml('', { tls: AUTOMATIC(''), ca: PARTS.ca.replace('driver = "file"', 'driver = "file"\napproval = "manual"') }),
      'tls.automatic.ca: "devices" has manual approval (the label of a CA whose key is here, with approval = "auto")',
    ],
    [
      'an automatic certificate and one in a file',
      toml('', { tls: AUTOMATIC('certificate = "a.pem"\nprivate_key = "a.key"') }),
      'tls.certificate: is given, and so is tls.automatic (one of the two)',
      'tls.private_key: is given, and so is tls.automatic (one of the two)',
    ],
    [
      'an automatic certificate without a name',
      toml('', { tls: '[tls]\nautomatic = { ca = "devices", names = [] }' }),
      'tls.automatic.names: is empty (a DNS name or an IP address, at least one)',
    ],
    [
      'an automatic certificate for an invalid name',
      toml('', { tls: '[tls]\nautomatic = { ca = "devices", names = ["a b"] }' }),
      'tls.automatic.names[0]: "a b" is neither a DNS name nor an IP address (a DNS name or an IP address)',
    ],
    [
      'audit records that would leave the store for nowhere',
      toml('[retention]\naudit = 365'),
      'audit.archive: is missing, and retention.audit is given (the folder where audit records go before they leave the store)',
    ],
    [
      'checkpoints without a key',
      toml('[audit]\ncheckpoint_interval = 60'),
      'audit.checkpoint_key: is missing, and audit.checkpoint_interval is given (a PEM file with a private key)',
    ],
    [
      'certificates that would be forgotten while they may be renewed',
      toml('[retention]\ncertificates = 29', { ca: CA('[ca.profile]\nrenewal_grace_days = 30') }),
      'retention.certificates: 29 is less than ca[devices].profile.renewal_grace_days: the store would delete certificates that can still be renewed (0, or at least 30)',
    ],
    [
      'a missing required key',
      toml('', { tls: '[tls]\ncertificate = "a.pem"' }),
      'tls.private_key: is missing (a path, relative to the configuration file)',
    ],
    [
      'a text for a number',
      toml('[est]\nport = "9443"'),
      'est.port: "9443" is a text (a whole number from 0 to 65535)',
    ],
    [
      'a fraction for a whole number',
      toml('[est]\nport = 9443.0'),
      'est.port: is a number with a fraction (a whole number from 0 to 65535)',
    ],
    [
      'a number out of range',
      toml('[est]\nport = 65536'),
      'est.port: 65536 is out of range (a whole number from 0 to 65535)',
    ],
    [
      'a huge number',
      toml('[otp]\nmax_uses = 99999999999999999'),
      'otp.max_uses: 99999999999999999 is out of range (a whole number from 1 to 1000000)',
    ],
    [
      'a negative number',
      toml('[server]\nshutdown_grace = -1'),
      'server.shutdown_grace: -1 is out of range (a whole number of seconds from 0 to 3600)',
    ],
    ['a number for a boolean', toml('[otp]\nenabled = 1'), 'otp.enabled: is a whole number (true or false)'],
    ['a text for a boolean', toml('[otp]\nenabled = "yes"'), 'otp.enabled: "yes" is a text (true or false)'],
    [
      'a boolean for a choice',
      toml('[otp]\nbind_client_id = false'),
      'otp.bind_client_id: is a boolean ("off", "cn", "san")',
    ],
    [
      'a date for a number',
      toml('[otp]\ndefault_ttl = 2026-01-01'),
      'otp.default_ttl: is a date (a whole number of seconds from 1 to 315360000)',
    ],
    [
      'an unknown choice',
      toml('[otp]\nhash_algorithm = "md5"'),
      'otp.hash_algorithm: "md5" is not known ("argon2id", "bcrypt", "sha256-hmac")',
    ],
    ['a list for a table', `admin = []\n${toml('', { admin: '' })}`, 'admin: is a list (a table)'],
    [
      'a table for a list',
      toml('[admin.bearer_token.tokens]\nx = 1'),
      'admin.bearer_token.tokens: is a table (a list)',
    ],
    [
      'a number for a path',
      toml('[audit]\nfile = 1'),
      'audit.file: is a whole number (a path, relative to the configuration file)',
    ],
    [
      'an empty path',
      toml('[audit]\nfile = ""'),
      'audit.file: is empty or not a path (a path, relative to the configuration file)',
    ],
    ['no CA', toml('', { ca: '' }), 'ca: is missing (a list with at least one item)'],
    [
      'TLS 1.1',
      toml('', { tls: `${PARTS.tls}\nmin_version = "TLSv1.1"` }),
      'tls.min_version: "TLSv1.1" is not known ("TLSv1.2", "TLSv1.3")',
    ],
    [
      'a token length below 8',
      toml('[otp]\ntoken_length = 7'),
      'otp.token_length: 7 is out of range (a whole number from 8 to 128)',
    ],
    [
      'a line length that splits base64',
      toml('[est]\nbase64_line_length = 63'),
      'est.base64_line_length: 63 is out of range (a whole number from 0 to 1024, a multiple of 4)',
    ],
    [
      'a host with a port',
      toml('[est]\nhost = "0.0.0.0:9443"'),
      'est.host: "0.0.0.0:9443" is neither an IP address nor a host name (an IP address or a host name)',
    ],
    [
      'another database',
      toml('[store]\ndriver = "mysql"'),
      'store.driver: "mysql" is not known ("sqlite", "postgres")',
    ],
    [
      'another log level',
      toml('[log]\nlevel = "loud"'),
      'log.level: "loud" is not known ("fatal", "error", "warn", "info", "debug", "trace", "silent")',
    ],
    ['another profile', `profile = "fips"\n${toml()}`, 'profile: "fips" is not known ("niap")'],
    [
      'a token_hash of another hash',
      toml(BEARER(`enabled = true\ntokens = [{ token_hash = "md5:00", description = "x" }]`)),
      'admin.bearer_token.tokens[0].token_hash: the value has the wrong form (sha256: followed by 64 hex digits, the SHA-256 of the token)',
    ],
    [
      'a token without a description',
      toml(BEARER(`enabled = true\ntokens = [{ token_hash = "sha256:${'a'.repeat(64)}" }]`)),
      'admin.bearer_token.tokens[0].description: is missing (a name of 1 to 200 characters)',
    ],
  ];
  test.each(rows)('%s', (_, text, ...problems) => expectRow(text, problems));
});

describe('an unknown key is refused and names the nearest known one', () => {
  const rows: Row[] = [
    [
      'a mistyped key',
      toml('[otp]\ntoken_lenght = 20'),
      'otp.token_lenght: unknown key (the nearest known one is "otp.token_length")',
    ],
    ['a mistyped section', toml('[opt]\nenabled = true'), 'opt: unknown key (the nearest known one is "otp")'],
    [
      'a key of another section',
      toml('[est]\ntoken_length = 20'),
      'est.token_length: unknown key (the nearest known one is "otp.token_length")',
    ],
    [
      'a key outside of its section',
      `token_length = 20\n${toml()}`,
      'token_length: unknown key (the nearest known one is "otp.token_length")',
    ],
    [
      'a key deep down',
      toml(CA('[ca.profile.san]\nalowed = []').slice(PARTS.ca.length)),
      'ca[devices].profile.san.alowed: unknown key (the nearest known one is "ca[devices].profile.san.allowed")',
    ],
    [
      'a key in a list of tables',
      toml(
        BEARER(
          `enabled = true\ntokens = [{ token_hash = "sha256:${'0'.repeat(64)}", descripton = "x", description = "x" }]`,
        ),
      ),
      'admin.bearer_token.tokens[0].descripton: unknown key (the nearest known one is "admin.bearer_token.tokens[0].description")',
    ],
    [
      'nothing like any key',
      toml('[log]\nzzzzzzzz = 1'),
      'log.zzzzzzzz: unknown key (the nearest known one is "log.level")',
    ],
    [
      'a key that a former version had, with its replacement',
      toml('[server]\nworkers = 1'),
      'server.workers: removed in version 0.2: a server is one process (for several processes, run several nodes with store.driver = "postgres", ' +
        'on one host with server.reuse_port = true: docs/guides/nodes-on-one-host.md)',
    ],
    ['upper case', toml('[est]\nPort = 1'), 'est.Port: unknown key (the nearest known one is "est.port")'],
    [
      'a key in the table of another driver',
      toml(`[ca.pkcs11]\nmodule = "x"`),
      'ca[devices].pkcs11: requires driver = "pkcs11" (driver is "file")',
    ],
  ];
  test.each(rows)('%s', (_, text, ...problems) => expectRow(text, problems));
});

test('a refused configuration is an error of the one family', async () => {
  await expect(folder.load('[est]\nport = "x"')).rejects.toMatchObject({
    name: 'EstuaryError',
    code: 'CONFIG_INVALID',
    kind: 'failure',
  });
});

test('every problem is printed, also those of different kinds', async () => {
  const text = `color = "red"
[est]
port = "x"
[otp]
token_length = 4
[admin.bearer_token]
enabled = true
tokens = [${TOKEN}, { token_hash = "x", description = "" }]
[[ca]]
label = "fullcmc"
driver = "file"
[ca.file]
pin = "1234"
`;
  expect(await folder.problems(text)).toEqual([
    'est.toml: color: unknown key (the nearest known one is "log")',
    'est.toml: est.port: "x" is a text (a whole number from 0 to 65535)',
    'est.toml: admin.bearer_token.tokens[1].token_hash: the value has the wrong form (sha256: followed by 64 hex digits, the SHA-256 of the token)',
    'est.toml: admin.bearer_token.tokens[1].description: "" has the wrong form (a name of 1 to 200 characters)',
    'est.toml: otp.token_length: 4 is out of range (a whole number from 8 to 128)',
    'est.toml: ca[fullcmc].certificate: is missing (a path, relative to the configuration file)',
    'est.toml: ca[fullcmc].file.pin: unknown key, and a secret must not be in the configuration file: secrets are given as *_file or *_env (the nearest known one is "ca.pkcs11.pin")',
    'est.toml: ca[fullcmc].file.private_key: is missing (a path, relative to the configuration file)',
    'est.toml: tls.certificate: is missing (a path, relative to the configuration file)',
    'est.toml: tls.private_key: is missing (a path, relative to the configuration file)',
    'est.toml: tls.client_auth.trust_anchors: is missing, and tls.client_auth.mode is "optional" (a path, relative to the configuration file, or mode = "none")',
    'est.toml: ca: no CA is the default (default = true in exactly one)',
    'est.toml: ca[fullcmc].label: "fullcmc" is the name of an operation (another label)',
  ]);
});

describe('what the TOML parser refuses names its line, the key and what to write', () => {
  test.each([
    [
      'a word for true',
      '[otp]\nenabled = yes\n',
      '2: otp.enabled: yes is not a value of TOML at column 11 (true or false)',
    ],
    [
      'an open string',
      '[est]\nhost = "x\n',
      '2: est.host: the text has no closing quotation mark at column 10 ("text" in one line)',
    ],
    ['no quotation marks', '[est]\nhost = a.example\n', '2: est.host: the text has no quotation marks at column 8'],
    [
      'typographic quotation marks',
      '[est]\nhost = “a”\n',
      '2: est.host: the quotation marks are typographic at column 8',
    ],
    ['a unit', '[otp]\nfailure_window = 5m\n', '2: otp.failure_window: the value is not a number at column 19'],
    [
      'a backslash',
      '[store]\npath = "C:\\store"\n',
      String.raw`2: store.path: unrecognised escape sequence: a backslash`,
    ],
    [
      'a comment of C',
      '[otp]\nmax_uses = 1 // one\n',
      '2: otp.max_uses: the value is followed by something else at column 14',
    ],
    [
      'a key twice',
      '[est]\nport = 1\nport = 2\n',
      '3: est.port: the key occurs twice at column 1 (each key once in a table)',
    ],
    [
      'a section twice',
      '[est]\n\n[est]\n',
      '3: the table [est] occurs twice at column 2 (one table [est], or [[est]] for',
    ],
    ['no value', '\n\nport =\n', '3: port: the value is missing at column 7 (KEY = VALUE)'],
    ['a colon', '[est]\nport: 1\n', '2: this line is not KEY = VALUE at column 5'],
    ['an open table', '[est\nport = 1\n', '1: the name of a table has no closing bracket at column 5 ([NAME])'],
    ['a prototype key', '__proto__ = 1\n', '1: __proto__: '],
  ])('%s', async (_, text, expected) => {
    const lines = await folder.problems(text);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`est.toml:${expected}`);
  });

  test('a value is never shown', async () => {
    expect((await folder.problems('[ca.file]\npin = s3cret\n')).join()).not.toContain('s3cret');
  });

  test('a text with half a surrogate pair', async () => {
    expect(
      await folder.problems(toml('[cmc]\nshared_secrets = [{ identification = "\\ud800", secret_file = "k32" }]')),
    ).toEqual([expect.stringContaining('invalid unicode escape')]);
  });

  test('a file that is not UTF-8', async () => {
    await folder.write('latin1.toml', Buffer.from('# ä\n#\xe9', 'latin1'));
    await folder.write('utf16.toml', Buffer.from('\ufeff[est]\n', 'utf16le'));
    const { loadConfig } = await import('../../src/config/load.ts');
    await expect(loadConfig(`${folder.path}/latin1.toml`, {})).rejects.toThrow(
      'latin1.toml:1: this line is not UTF-8: save the file as UTF-8 (a TOML document)',
    );
    await expect(loadConfig(`${folder.path}/utf16.toml`, {})).rejects.toThrow(
      'utf16.toml: is UTF-16: save it as UTF-8 (a TOML document)',
    );
  });

  test('no file', async () => {
    const { loadConfig } = await import('../../src/config/load.ts');
    await expect(loadConfig(`${folder.path}/absent.toml`, {})).rejects.toThrow(
      'absent.toml: cannot be read: there is no such file (a TOML document)',
    );
  });
});
