/** Configurations whose keys contradict each other, each with its messages. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configFolder, PARTS, toml } from '../support.ts';
import type { ConfigFolder } from '../support.ts';

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
      'auth.ldap.bind_dn: is given without bind_password (both, or neither)',
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
  test.each(rows)('%s', async (_, text, ...problems) => {
    expect(await folder.problems(text)).toEqual(problems.map((problem) => `est.toml: ${problem}`));
  });
});
