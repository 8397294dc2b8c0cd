import { FilterParser } from 'ldapts';
import { boolean, choice, integer, list, map, ofBytes, optional, seconds, table, text } from '../keys.ts';
import { checkDistinguishedName, urlCheck, trustAnchors } from './formats.ts';

export const otp = table('One-time passwords and the lockout against guessing them.', {
  enabled: boolean({ description: 'Takes one-time passwords by HTTP Basic authentication.', default: false }),
  hash_algorithm: choice(['argon2id', 'bcrypt', 'sha256-hmac'], {
    description:
      'How tokens are stored. `argon2id` is recommended and what NIAP asks for; `sha256-hmac` is fast and relies on `hmac_key` staying secret.',
    default: 'argon2id',
  }),
  token_length: integer(8, 128, {
    description:
      'Characters of a whole token. NIAP asks for at least 16; at least 20 is advised. bcrypt takes at most 72.',
    default: 20,
  }),
  max_uses: integer(1, 1000000, { description: 'Uses of a token when the administrator names none.', default: 1 }),
  max_failures: integer(1, 10000, {
    description: 'Failures within `failure_window` that are tolerated; one more starts a lockout.',
    default: 5,
  }),
  failure_window: seconds(1, 2592000, { description: 'How long a failure counts.', default: 300 }),
  lockout_duration: seconds(0, 31536000, {
    description: 'How long a lockout lasts; 0 turns lockouts off, which is unsafe.',
    default: 900,
  }),
  lockout_scope: choice(['address', 'username', 'both'], {
    description: "What a lockout is counted on: the client's network address, the Basic username, or each of the two.",
    default: 'address',
  }),
  default_ttl: seconds(1, 315360000, {
    description: 'How long a token lives when the administrator names no expires_at.',
    default: 86400,
  }),
  bind_client_id: choice(['off', 'cn', 'san'], {
    description:
      "Whether the CSR's common name (`cn`) or one of its subject alternative names (`san`) has to equal the token's client_id; 403 otherwise.",
    default: 'off',
  }),
  retry_window: seconds(0, 2592000, {
    description:
      'How long after its issue the same request with the token that was used for it gets the same certificate again, without a further use: for clients whose answer was lost. 3600 is good for fleets; 0: never, such a repeat is answered 401.',
    default: 0,
  }),
  hmac_key: optional.secret({
    description:
      'The key of `sha256-hmac`, 32 bytes or more. Absent: the server creates `otp-hmac.key` next to a SQLite store. With PostgreSQL, nodes need the same key, so it is required.',
    raw: true,
    fits: ofBytes(32),
  }),
  lookup_key: optional.secret({
    description:
      'The key of the hash that finds tokens in the store, 32 bytes or more. Absent: the server creates `otp-lookup.key` next to the store.',
    raw: true,
    fits: ofBytes(32),
  }),
  hash_concurrency: integer(1, 64, {
    description: 'Password hashes computed at the same time; they share four threads with signatures and files.',
    default: 2,
  }),
  hash_queue: integer(0, 1024, {
    description: 'Password hashes that may wait; a request beyond that is answered 503.',
    default: 16,
  }),
  bcrypt_cost: integer(10, 16, { description: 'The cost of bcrypt: 2 to this power rounds.', default: 12 }),
  argon2: table("argon2id's parameters; the defaults are OWASP's.", {
    memory_kib: integer(7168, 1048576, { description: 'Memory of one argon2id hash.', default: 19456, unit: 'KiB' }),
    iterations: integer(1, 20, { description: 'Passes of argon2id.', default: 2 }),
    parallelism: integer(1, 16, { description: 'Lanes of argon2id.', default: 1 }),
  }),
});

const ATTRIBUTE_NAME = { allowed: 'the name of an LDAP attribute', pattern: /^[A-Za-z][A-Za-z0-9-]{0,63}$/ };

const gssapiDirectory = table(
  'Looks principals up in Active Directory, with the servers, `bind_dn` and `search_base` of `[auth.ldap]` ([guides/gssapi.md](../guides/gssapi.md)).',
  {
    filter: text({
      description:
        'The filter of the search. Exactly one entry must match. `{primary}` is the first component of the principal, `{principal}` the whole, of an enterprise principal without the realm.',
      default: '(|(sAMAccountName={primary})(userPrincipalName={principal}))',
      allowed: 'an LDAP filter with {primary} or {principal} (RFC 4515)',
      check: (value) => checkFilter(value, ['primary', 'principal']),
    }),
    attribute: text({
      ...ATTRIBUTE_NAME,
      description:
        'The attribute that gives the name for `principal_mapping`, `default_template`, and the requester. The entry must have exactly one value of it.',
      default: 'sAMAccountName',
    }),
    required_group: optional.text({
      description: 'The DN of a group. The account must be its `member`, or have it as its primary group.',
      allowed: 'a DN as in RFC 4514',
      check: checkDistinguishedName,
    }),
  },
);

export const gssapi = table('GSSAPI authentication: Kerberos over SPNEGO.', {
  enabled: boolean({ description: 'Takes Kerberos tickets by HTTP Negotiate (RFC 4559).', default: false }),
  keytab: optional.path({ description: 'The keytab with the key of `service_principal`; or use `gssproxy`.' }),
  gssproxy: boolean({ description: 'Takes the credentials from gssproxy in place of a keytab.', default: false }),
  service_principal: optional.text({
    description: "The server's own principal; needed when GSSAPI is on.",
    allowed: 'HTTP/<hostname>@<REALM>',
    pattern: /^HTTP\/[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?@[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
  }),
  principal_mapping: map(
    text({
      description: 'A subject DN.',
      allowed: 'a distinguished name as in RFC 4514, e.g. "CN=alice,O=Example"',
      check: checkDistinguishedName,
    }),
    {
      description: 'The subject DN for each named principal, e.g. `"alice@EXAMPLE.COM" = "CN=alice,O=Example"`.',
      default: {},
    },
  ),
  directory: optional(gssapiDirectory),
  fold_case: boolean({
    description:
      'Compares and writes principals in lower case, and realms in upper case. Only for a KDC that ignores case, and without `[gssapi.directory]` ([guides/gssapi.md](../guides/gssapi.md)).',
    default: false,
  }),
  default_template: optional.text({
    description:
      'The subject DN of a principal that is not in the mapping. `{principal}` stands for the whole principal, `{primary}`, `{instance}` and `{realm}` for its parts.',
    allowed: 'a distinguished name as in RFC 4514 with {principal} in it, e.g. "CN={principal},O=Example"',
    check: (value) =>
      /\{(principal|primary|instance)\}/.test(value)
        ? checkDistinguishedName(value.replaceAll(/\{(principal|primary|instance|realm)\}/g, 'x'))
        : 'it contains none of {principal}, {primary} and {instance}, so everybody would get the same subject',
  }),
  require_crypto_verification: boolean({
    description:
      'Verifies tickets in full. Off, tickets are NOT VERIFIED, so anybody can enroll with a forged one: for development, or for hints in the audit log in addition to client certificates.',
    default: true,
  }),
});

const bind = choice(['cn', 'san', 'off'], {
  description:
    "Whether the CSR's common name (`cn`) or one of its subject alternative names (`san`) must equal the client_id; otherwise the response is 403.",
  default: 'cn',
});

const ldap = table('Basic credentials, checked by a bind at an LDAP directory ([guides/ldap.md](../guides/ldap.md)).', {
  url: list(
    text({
      description: 'A server of the directory.',
      allowed: 'an ldaps:// URL, or an ldap:// URL with starttls = true',
      check: urlCheck('ldap', 'ldaps'),
    }),
    {
      description:
        'The servers of the directory, in the order of preference. The next one is tried when one cannot be reached.',
      minItems: 1,
      single: true,
    },
  ),
  starttls: boolean({ description: 'Uses StartTLS. Needed for `ldap://` URLs.', default: false }),
  trust_anchors: trustAnchors(
    'PEM file with the CA certificates that issue the certificates of the directory servers.',
    { live: true },
  ),
  user_dn: optional.text({
    description: 'The DN to bind as. `{username}` is the Basic username. Use either this or `search_base`.',
    allowed: 'a DN with {username}, such as "uid={username},ou=devices,dc=example"',
    check: (value) =>
      value.includes('{username}')
        ? checkDistinguishedName(value.replaceAll('{username}', 'x'))
        : 'it does not contain {username}',
  }),
  search_base: optional.text({
    description: 'Where to search for the entry, including all levels below.',
    allowed: 'a DN as in RFC 4514',
    check: checkDistinguishedName,
  }),
  search_filter: text({
    description: 'The filter of the search. Exactly one entry must match. `{username}` is the Basic username.',
    default: '(uid={username})',
    allowed: 'an LDAP filter with {username} (RFC 4515)',
    check: (value) => checkFilter(value, ['username']),
  }),
  bind_dn: optional.text({
    description:
      'The account that searches: a DN, or another name that the directory takes, such as `user@domain` or `DOMAIN\\user`. Without it, the search is anonymous.',
    allowed: 'a name of at most 1000 characters without control characters',
    pattern: /^[^\p{Cc}]{1,1000}$/u,
  }),
  bind_password: optional.secret({ description: 'The password of `bind_dn`.' }),
  required_group: optional.text({
    description:
      'The DN of a group. The entry must be its `member` or `uniqueMember`, or with `client_id_attribute = "uid"` its `memberUid`. In Active Directory, the primary group counts too.',
    allowed: 'a DN as in RFC 4514',
    check: checkDistinguishedName,
  }),
  client_id_attribute: text({
    ...ATTRIBUTE_NAME,
    description:
      'The attribute of the entry that gives the client_id. The entry must have exactly one value of it. The typed name is never used.',
    default: 'uid',
  }),
  attributes: list(text({ ...ATTRIBUTE_NAME, description: 'An attribute.' }), {
    description: 'Further attributes to read; each is a placeholder `{ldap.NAME}` ([names.md](../guides/names.md)).',
    default: [],
  }),
  bind,
  timeout: seconds(1, 60, { description: 'How long one server may take to answer.', default: 5 }),
});

const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

const jwt = table('Bearer tokens: JSON Web Tokens of an identity provider ([guides/jwt.md](../guides/jwt.md)).', {
  issuer: text({
    description: 'The `iss` of the tokens.',
    allowed: 'a text without white space',
    pattern: /^\S{1,500}$/,
  }),
  audience: list(text({ description: 'An audience.', allowed: 'a text', pattern: /^.{1,500}$/su }), {
    description: 'What identifies this server in `aud`. A token must have one of these values.',
    minItems: 1,
    single: true,
  }),
  jwks_url: optional.text({
    description:
      'Where the keys of the issuer are. The server keeps them for ten minutes, and fetches them again for an unknown `kid` once a minute at most.',
    allowed: 'an https URL',
    check: urlCheck('https'),
  }),
  trust_anchors: trustAnchors(
    'PEM file with the CA certificates that issue the certificate of the `jwks_url` server.',
    { live: true },
  ),
  jwks_token_file: optional.path({
    description:
      'A file with a bearer token for `jwks_url`, as Kubernetes needs it. The server reads it for each fetch.',
  }),
  jwks_file: optional.path({ description: 'A file with the keys of the issuer, in place of `jwks_url`.' }),
  algorithms: list(choice(JWT_ALGORITHMS, { description: 'A signature algorithm of JWS.' }), {
    description: 'The signature algorithms that are accepted. `none` and HMAC are never accepted.',
    default: ['RS256', 'ES256'],
    minItems: 1,
  }),
  max_age: optional.seconds(1, 31536000, {
    description: 'The longest time since `iat`. The tokens must then have `iat`.',
    defaultText: 'only `exp` counts',
  }),
  clock_tolerance: seconds(0, 600, {
    description: "How much the issuer's clock may differ, for `exp`, `nbf` and `iat`.",
    default: 30,
  }),
  required_claims: list(
    text({ description: 'A claim.', allowed: 'a claim, or claim=value', pattern: /^[^=]{1,200}(=.{0,1000})?$/su }),
    {
      description:
        'Claims that a token must have: `"tenant"`, or with a value `"tenant=lab"`. A table `{ tenant = "lab" }` means the same. Of a claim with several values, and of the words of `scope` and `scp`, one must be equal.',
      default: [],
      pairs: true,
    },
  ),
  subject_claim: text({
    description: 'The claim that identifies the requester; it gives the client_id.',
    default: 'sub',
    allowed: 'the name of a claim',
    pattern: /^.{1,200}$/su,
  }),
  bind,
  single_use: boolean({
    description:
      'Accepts each `jti` once, on all nodes: the token then behaves like a one-time password with one use. The tokens must have `jti`.',
    default: false,
  }),
});

export const auth = table('Methods of authentication that use a directory or an identity provider.', {
  ldap: optional(ldap),
  jwt: optional(jwt),
});

function checkFilter(value: string, placeholders: readonly string[]): string | undefined {
  const texts = placeholders.map((name) => `{${name}}`);
  if (!texts.some((text) => value.includes(text))) return `it does not contain ${texts.join(' or ')}`;
  try {
    FilterParser.parseString(texts.reduce((filter, text) => filter.replaceAll(text, 'x'), value));
    return undefined;
  } catch (error) {
    return `it is not an LDAP filter: ${error instanceof Error ? error.message : String(error)}`;
  }
}
