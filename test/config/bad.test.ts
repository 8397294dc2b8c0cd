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
const HEX = 'a1'.repeat(32);
const BEARER = (rest: string): string => `[admin.bearer_token]\n${rest}`;
const CA = (rest: string): string => `${PARTS.ca}\n${rest}`;
const otherCa = (changes: Record<string, string>): string => {
  const keys = { label: '"lab"', driver: '"file"', certificate: '"ca/lab.pem"', ...changes };
  const lines = Object.entries(keys).map(([key, value]) => `${key} = ${value}`);
  return `${PARTS.ca}\n[[ca]]\n${lines.join('\n')}\n[ca.file]\nprivate_key = "ca/lab.key"`;
};

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
    ['a text for a number', toml('[est]\nport = "9443"'), 'est.port: is a text (a whole number from 0 to 65535)'],
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
    ['a text for a boolean', toml('[otp]\nenabled = "yes"'), 'otp.enabled: is a text (true or false)'],
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

describe('what several keys say together', () => {
  const rows: Row[] = [
    [
      'a shared port with a store that serves one node',
      toml('[server]\nreuse_port = true'),
      'server.reuse_port: is true, and a SQLite store serves one node only (false, or store.driver = "postgres")',
    ],
    [
      'no default CA',
      toml('', { ca: PARTS.ca.replace('default = true', '') }),
      'ca: no CA is the default (default = true in exactly one)',
    ],
    [
      'two default CAs',
      toml('', { ca: otherCa({ default: 'true' }) }),
      'ca[lab].default: is true, and so is ca[devices].default (default = true in exactly one)',
    ],
    [
      'a label twice',
      toml('', { ca: otherCa({ label: '"devices"' }) }),
      'ca[1].label: "devices" occurs twice (a different label for each CA)',
    ],
    ...['cacerts', 'simpleenroll', 'simplereenroll', 'fullcmc', 'serverkeygen', 'csrattrs'].map((name): Row => [
      `the label ${name}`,
      toml('', { ca: otherCa({ label: `"${name}"` }) }),
      `ca[${name}].label: "${name}" is the name of an operation (another label)`,
    ]),
    ...['', 'a/b', 'a b', '..', '-a', 'ü', 'x'.repeat(65)].map((name): Row => [
      `the label "${name}"`,
      toml('', { ca: otherCa({ label: `"${name}"` }) }),
      `ca[1].label: "${name}" has the wrong form (1 to 64 letters, digits, "-", "." or "_", beginning with a letter or digit)`,
    ]),
    [
      'an unknown driver',
      toml('', { ca: otherCa({ driver: '"vault"' }) }),
      'ca[lab].driver: "vault" is not known ("file", "pkcs11", "dogtag", "est", "acme", "command")',
    ],
    [
      'no driver',
      toml('', { ca: PARTS.ca.replace('driver = "file"', '') }),
      'ca[devices].driver: is missing ("file", "pkcs11", "dogtag", "est", "acme", "command")',
    ],
    [
      'an external service over plain HTTP',
      toml('', { ca: CA('[ca.authorization]\nurl = "http://inventory.example.com"') }),
      'ca[devices].authorization.url: "http://inventory.example.com" is not an https URL (an https URL such as "https://inventory.example.com/authorize")',
    ],
    [
      'a certificate for the external service without its key',
      toml('', { ca: CA('[ca.authorization]\nurl = "https://a"\nclient_certificate = "a.pem"') }),
      'ca[devices].authorization.client_certificate: is given without client_key (both, or neither)',
    ],
    [
      'escrow without a key recovery authority',
      toml('', { ca: CA('[ca.profile]\nkey_escrow = true') }),
      'ca[devices].profile.key_escrow: is true, and there is no key recovery authority (false, or kra_urls of a CA behind Dogtag PKI)',
    ],
    [
      'a driver without its table',
      toml('', { ca: PARTS.ca.replace(/\[ca\.file\][^]*/, '') }),
      'ca[devices].file.private_key: is missing (a path, relative to the configuration file)',
    ],
    [
      'client certificates without trust anchors',
      toml('', { clientAuth: '[tls.client_auth]\nmode = "required"' }),
      'tls.client_auth.trust_anchors: is missing, and tls.client_auth.mode is "required" (a path, relative to the configuration file, or mode = "none")',
    ],
    [
      'nobody can be administrator',
      toml('', { admin: '' }),
      'admin: nobody could authenticate (admin.tls.mode = "required" or "optional" with trust_anchors, or admin.bearer_token.enabled = true with tokens, or [admin.oidc])',
    ],
    [
      'admin certificates without trust anchors',
      toml('', { admin: '[admin.tls]\nmode = "optional"' }),
      'admin.tls.trust_anchors: is missing, and admin.tls.mode is "optional" (a path, relative to the configuration file)',
    ],
    [
      'bearer tokens on without a token',
      toml(BEARER('enabled = true')),
      'admin.bearer_token.tokens: is empty, and admin.bearer_token.enabled is true (a list with at least one token)',
    ],
    [
      'several approvals where nobody is asked',
      toml('', { ca: PARTS.ca.replace('label', 'approvals = 2\nlabel') }),
      'ca[devices].approvals: is 2, and approval is "auto", so nobody approves (approval = "manual")',
    ],
    [
      'the same token twice',
      toml(BEARER(`enabled = true\ntokens = [${TOKEN}, ${TOKEN.replace('ops', 'audit')}]`)),
      'admin.bearer_token.tokens[1].token_hash: occurs twice (a different token for each entry)',
    ],
    ...(
      [
        ['', 'does not identify a certificate'],
        ['subject = "CN=Ada"', 'has subject'],
        ['issuer = "CN=Admins"', 'has issuer'],
        [`subject = "CN=Ada"\nfingerprint = "sha256:${HEX}"`, 'has subject and fingerprint'],
        [`fingerprint = "sha256:${HEX}"\nspki_sha256 = "${HEX}"`, 'has fingerprint and spki_sha256'],
      ] as const
    ).map(([keys, what]): Row => [
      `an entry of admin.clients that ${what}`,
      toml(`[[admin.clients]]\n${keys}\nroles = ["ra"]`),
      `admin.clients[0]: ${what} (subject with issuer, or fingerprint, or spki_sha256)`,
    ]),
    ...(
      [
        ['subject = "CN=Ada"\nissuer = "CN=Admins"', 'subject = "cn=ADA"\nissuer = "CN=admins"'],
        [`fingerprint = "sha256:${HEX}"`, `fingerprint = "sha256:${HEX.toUpperCase()}"`],
        [`spki_sha256 = "${HEX}"`, `spki_sha256 = "${HEX.toUpperCase()}"\nname = "Ada"`],
      ] as const
    ).map((entries): Row => [
      `two entries of admin.clients with ${entries[0].split(' ')[0] ?? ''} for one certificate`,
      toml(entries.map((keys) => `[[admin.clients]]\n${keys}`).join('\n')),
      'admin.clients[1]: identifies the same certificate as an earlier entry (one entry for each certificate)',
    ]),
    ...['', 'a'.repeat(201), 'Ada\\t'].map((name): Row => [
      `an administrator of the name ${JSON.stringify(name.slice(0, 5))}`,
      toml(`[[admin.clients]]\nname = "${name}"\nspki_sha256 = "${HEX}"`),
      `admin.clients[0].name: "${name.replace('\\t', '\t')}" has the wrong form (a name of 1 to 200 characters)`,
    ]),
    ...['sha256:', ''].map((prefix): Row => [
      `spki_sha256 with ${prefix === '' ? 'too few digits' : 'a prefix'}`,
      toml(`[[admin.clients]]\nspki_sha256 = "${prefix}${HEX.slice(0, 62)}"`),
      `admin.clients[0].spki_sha256: "${prefix}${HEX.slice(0, 62)}" has the wrong form (64 hex digits, the SHA-256 of the SubjectPublicKeyInfo (DER))`,
    ]),
    [
      'an unknown role',
      toml('[[admin.clients]]\nsubject = "CN=Ada"\nissuer = "CN=Admins"\nroles = ["root"]'),
      'admin.clients[0].roles[0]: "root" is not known ("admin", "ra", "auditor", "operator")',
    ],
    ...['"soon"', '"2030-01-31"', '"2030-02-30T00:00:00Z"', '2030-01-31', '2030-01-31T12:00:00'].map((time): Row => [
      `a token that ends ${time}`,
      toml(BEARER(`enabled = true\ntokens = [${TOKEN.replace(' }', `, not_after = ${time} }`)}]`)),
      `admin.bearer_token.tokens[0].not_after: ${time.startsWith('"') ? time : `"${time.length > 10 ? `${time}.000` : time}"`} is not a time (a time with its offset, such as 2030-01-31T12:00:00Z)`,
    ]),
    [
      'an admin certificate without a key',
      toml('', { admin: `${PARTS.admin}\ncertificate = "a.pem"` }),
      'admin.tls.private_key: is missing, and admin.tls.certificate is given (both or neither)',
    ],
    [
      'an admin key without a certificate',
      toml('', { admin: `${PARTS.admin}\nprivate_key = "a.key"` }),
      'admin.tls.certificate: is missing, and admin.tls.private_key is given (both or neither)',
    ],
    [
      'one port for two listeners',
      toml('[est]\nport = 9444'),
      'admin.port: 9444 is the port of est too (a port for each listener)',
    ],
    [
      'a header that may take longer than the request',
      toml('[server]\nheaders_timeout = 60'),
      'server.headers_timeout: is longer than server.request_timeout (at most 30)',
    ],
    [
      'a token that bcrypt would cut',
      toml('[otp]\nhash_algorithm = "bcrypt"\ntoken_length = 73'),
      'otp.token_length: 73 is too long for bcrypt (at most 72 with hash_algorithm = "bcrypt")',
    ],
    [
      'keytab and gssproxy',
      toml('[gssapi]\nkeytab = "a"\ngssproxy = true'),
      'gssapi.keytab: is given, and gssapi.gssproxy is true (one of the two)',
    ],
    ...['HTTP/est.example.com', 'host/est@REALM', 'HTTP@REALM', 'HTTP/est@', 'http/est@REALM', 'HTTP/a/b@R'].map(
      (name): Row => [
        `the service principal ${name}`,
        toml(`[gssapi]\nservice_principal = "${name}"`),
        `gssapi.service_principal: "${name}" has the wrong form (HTTP/<hostname>@<REALM>)`,
      ],
    ),
    [
      'a directory without TLS',
      toml('[auth.ldap]\nurl = "ldap://ldap.example.com"\nuser_dn = "uid={username},dc=example"'),
      'auth.ldap.url[0]: "ldap://ldap.example.com" sends passwords unprotected (an ldaps:// URL, or starttls = true)',
    ],
    [
      'StartTLS inside of TLS',
      toml('[auth.ldap]\nurl = ["ldaps://a"]\nstarttls = true\nuser_dn = "uid={username},dc=example"'),
      'auth.ldap.url[0]: "ldaps://a" is an ldaps:// URL, and starttls is true (one of the two)',
    ],
    [
      'a directory without a way to find an entry',
      toml('[auth.ldap]\nurl = "ldaps://a"'),
      'auth.ldap.user_dn: is missing, and so is search_base (one of the two)',
    ],
    [
      'a DN for all usernames',
      toml('[auth.ldap]\nurl = "ldaps://a"\nuser_dn = "uid=device,dc=example"'),
      'auth.ldap.user_dn: it does not contain {username} (a DN with {username}, such as "uid={username},ou=devices,dc=example")',
    ],
    [
      'a broken filter',
      toml('[auth.ldap]\nurl = "ldaps://a"\nsearch_base = "dc=example"\nsearch_filter = "(uid={username}"'),
      'auth.ldap.search_filter: it is not an LDAP filter: Unbalanced parens: (uid=x. Full string: (uid=x (an LDAP filter with {username} (RFC 4515))',
    ],
    [
      'an account of the directory without a password',
      toml('[auth.ldap]\nurl = "ldaps://a"\nsearch_base = "dc=example"\nbind_dn = "cn=reader,dc=example"'),
      'auth.ldap.bind_dn: and bind_password go together (both, or neither)',
    ],
    [
      'one-time passwords and LDAP at one label',
      toml('[otp]\nenabled = true\n[auth.ldap]\nurl = "ldaps://a"\nuser_dn = "uid={username},dc=example"'),
      'ca[devices].auth.methods: is missing, which enables "otp" and "ldap" at "devices": both use Basic credentials (a list with one of the two)',
    ],
    [
      'tokens without keys',
      toml('[auth.jwt]\nissuer = "https://idp.example"\naudience = "est"'),
      'auth.jwt.jwks_url: is missing, and so is jwks_file (one of the two)',
    ],
    [
      'keys of tokens over http',
      toml('[auth.jwt]\nissuer = "https://idp.example"\naudience = "est"\njwks_url = "http://idp.example/jwks"'),
      'auth.jwt.jwks_url: "http://idp.example/jwks" is not an https URL (an https URL)',
    ],
    ...['none', 'HS256'].map((algorithm): Row => [
      `tokens signed with ${algorithm}`,
      toml(`[auth.jwt]\nissuer = "i"\naudience = "est"\njwks_file = "jwks.json"\nalgorithms = ["${algorithm}"]`),
      `auth.jwt.algorithms[0]: "${algorithm}" is not known ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")`,
    ]),
    [
      'a proxy that hides the channel binding',
      toml('[est]\nrequire_pop_linking = true\n[est.client_certificate_header]\nproxy_certificates = "tls/server.pem"'),
      'est.client_certificate_header: is given, and est.require_pop_linking is true: a proxy hides the channel binding (one of the two)',
    ],
    [
      'a principal mapped to no DN',
      toml('[gssapi.principal_mapping]\n"a@R" = "alice"'),
      'gssapi.principal_mapping."a@R": "alice" is not of the form type=value (a distinguished name as in RFC 4514, e.g. "CN=alice,O=Example")',
    ],
    [
      'a template without the principal',
      toml('[gssapi]\ndefault_template = "CN=all"'),
      'gssapi.default_template: it contains none of {principal}, {primary} and {instance}, so everybody would get the same subject (a distinguished name as in RFC 4514 with {principal} in it, e.g. "CN={principal},O=Example")',
    ],
    [
      'a validity above the bound',
      toml('[ca.profile]\nvalidity_days = 900'),
      'ca[devices].profile.validity_days: is more than max_validity_days (at most 825)',
    ],
    [
      'a backdating that leaves less than half',
      toml('[ca.profile]\nvalidity_seconds = 600\nbackdate_seconds = 301'),
      'ca[devices].profile.backdate_seconds: is more than half of validity_seconds (at most 300)',
    ],
    [
      'an unknown key type',
      toml('[ca.profile]\nkey_types = ["rsa:1024"]'),
      'ca[devices].profile.key_types[0]: "rsa:1024" is not known ("ec:P-256", "ec:P-384", "ec:P-521", "rsa:2048", "rsa:3072", "rsa:4096", "ed25519", "ed448", "ml-dsa:44", "ml-dsa:65", "ml-dsa:87", "rsa-pss:2048", "rsa-pss:3072", "rsa-pss:4096")',
    ],
    [
      'no key type',
      toml('[ca.profile]\nkey_types = []'),
      'ca[devices].profile.key_types: is empty (a list with at least one item)',
    ],
    [
      'a CA key usage',
      toml('[ca.profile]\nkey_usage = ["keyCertSign"]'),
      'ca[devices].profile.key_usage[0]: "keyCertSign" is not known ("digitalSignature", "nonRepudiation", "keyEncipherment", "dataEncipherment", "keyAgreement", "encipherOnly", "decipherOnly")',
    ],
    [
      'an unknown attribute type',
      toml('[ca.profile.subject]\nrequired = ["CNN"]'),
      'ca[devices].profile.subject.required[0]: "CNN" is not a known attribute type (an attribute type such as CN, O, OU or serialNumber, or a dotted OID)',
    ],
    [
      'a required type that is not allowed',
      toml('[ca.profile.subject]\nrequired = ["O"]\nallowed = ["CN"]'),
      'ca[devices].profile.subject.required: "O" is required and not allowed (a type that is in allowed)',
    ],
    [
      'a broken pattern',
      toml('[ca.profile.subject]\npatterns = { CN = "(" }'),
      'ca[devices].profile.subject.patterns.CN: "(" is not a regular expression (a regular expression that matches the whole value)',
    ],
    [
      'a pattern that would leave its group',
      toml('[ca.profile.subject]\npatterns = { CN = "a)|(b" }'),
      'ca[devices].profile.subject.patterns.CN: "a)|(b" is not a regular expression (a regular expression that matches the whole value)',
    ],
    [
      'a pattern for an unknown type',
      toml('[ca.profile.subject]\npatterns = { XX = "a" }'),
      'ca[devices].profile.subject.patterns: "XX" is not a known attribute type (an attribute type such as CN, O, OU or serialNumber, or a dotted OID)',
    ],
    [
      'a required kind that is not allowed',
      toml('[ca.profile.san]\nrequired = ["dns"]\nallowed = ["ip"]'),
      'ca[devices].profile.san.required: "dns" is required and not allowed (a kind that is in allowed)',
    ],
    [
      'an address without a prefix',
      toml('[ca.profile.san]\nip = ["10.0.0.1"]'),
      'ca[devices].profile.san.ip[0]: "10.0.0.1" is not an address block (an address block such as "10.0.0.0/8" or "2001:db8::/32")',
    ],
    [
      'an impossible prefix',
      toml('[ca.profile.san]\nip = ["10.0.0.0/33"]'),
      'ca[devices].profile.san.ip[0]: "10.0.0.0/33" has an impossible prefix length (an address block such as "10.0.0.0/8" or "2001:db8::/32")',
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
    'est.toml: est.port: is a text (a whole number from 0 to 65535)',
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

describe('what the TOML parser refuses names its line', () => {
  test.each([
    ['an open string', '[est]\nhost = "x\n', 2],
    ['a key twice', '[est]\nport = 1\nport = 2\n', 3],
    ['a section twice', '[est]\n\n[est]\n', 3],
    ['no value', '\n\nport =\n', 3],
    ['a prototype key', '__proto__ = 1\n', 1],
  ])('%s', async (_, text, line) => {
    const lines = await folder.problems(text);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^est\\.toml:${line}: .+ at column \\d+ \\(a TOML document\\)$`));
  });

  test('a text with half a surrogate pair', async () => {
    expect(
      await folder.problems(toml('[cmc]\nshared_secrets = [{ identification = "\\ud800", secret_file = "k32" }]')),
    ).toEqual([expect.stringContaining('invalid unicode escape')]);
  });

  test('a file that is not UTF-8', async () => {
    await folder.write('latin1.toml', Buffer.from([0x23, 0xe9]));
    const { loadConfig } = await import('../../src/config/load.ts');
    await expect(loadConfig(`${folder.path}/latin1.toml`, {})).rejects.toThrow(
      'latin1.toml: is not UTF-8 (a TOML document)',
    );
  });

  test('no file', async () => {
    const { loadConfig } = await import('../../src/config/load.ts');
    await expect(loadConfig(`${folder.path}/absent.toml`, {})).rejects.toThrow(
      'absent.toml: cannot be read: there is no such file (a TOML document)',
    );
  });
});
