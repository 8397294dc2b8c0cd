import { boolean, choice, integer, map, optional, path, secret, table, text } from '../keys.ts';
import { checkDistinguishedName } from './formats.ts';

export const otp = table(
  {
    enabled: boolean({ description: 'Takes one-time passwords by HTTP Basic authentication.', default: false }),
    hash_algorithm: choice(['argon2id', 'bcrypt', 'sha256-hmac'], {
      description:
        'How tokens are stored. `argon2id` is recommended and what NIAP asks for; `sha256-hmac` is fast and relies on `hmac_key` staying secret.',
      default: 'argon2id',
    }),
    token_length: integer({
      description:
        'Characters of a whole token. NIAP asks for at least 16; at least 20 is advised. bcrypt takes at most 72.',
      default: 20,
      minimum: 8,
      maximum: 128,
    }),
    max_uses: integer({
      description: 'Uses of a token when the administrator names none.',
      default: 1,
      minimum: 1,
      maximum: 1000000,
    }),
    max_failures: integer({
      description: 'Failures within `failure_window` that are tolerated; one more starts a lockout.',
      default: 5,
      minimum: 1,
      maximum: 10000,
    }),
    failure_window: integer({
      description: 'How long a failure counts.',
      default: 300,
      minimum: 1,
      maximum: 2592000,
      unit: 'seconds',
    }),
    lockout_duration: integer({
      description: 'How long a lockout lasts; 0 turns lockouts off, which is unsafe.',
      default: 900,
      minimum: 0,
      maximum: 31536000,
      unit: 'seconds',
    }),
    lockout_scope: choice(['address', 'username', 'both'], {
      description:
        "What a lockout is counted on: the client's network address, the Basic username, or each of the two.",
      default: 'address',
    }),
    default_ttl: integer({
      description: 'How long a token lives when the administrator names no expires_at.',
      default: 86400,
      minimum: 1,
      maximum: 315360000,
      unit: 'seconds',
    }),
    bind_client_id: choice(['off', 'cn', 'san'], {
      description:
        "Whether the CSR's common name (`cn`) or one of its subject alternative names (`san`) has to equal the token's client_id; 403 otherwise.",
      default: 'off',
    }),
    retry_window: integer({
      description:
        'How long after its issue the same request with the token that was used for it gets the same certificate again, without a further use: for clients whose answer was lost. 3600 is good for fleets; 0: never, such a repeat is answered 401.',
      default: 0,
      minimum: 0,
      maximum: 2592000,
      unit: 'seconds',
    }),
    hmac_key: optional(
      secret({
        description: 'The key of `sha256-hmac`, 32 bytes or more; needed for that algorithm only.',
        raw: true,
      }),
    ),
    lookup_key: optional(
      secret({
        description:
          'The key of the hash that finds tokens in the store, 32 bytes or more. Absent: the server makes one beside the store, `otp-lookup.key`.',
        raw: true,
      }),
    ),
    hash_concurrency: integer({
      description: 'Password hashes computed at the same time; they share four threads with signatures and files.',
      default: 2,
      minimum: 1,
      maximum: 64,
    }),
    hash_queue: integer({
      description: 'Password hashes that may wait; a request beyond that is answered 503.',
      default: 16,
      minimum: 0,
      maximum: 1024,
    }),
    bcrypt_cost: integer({
      description: 'The cost of bcrypt: 2 to this power rounds.',
      default: 12,
      minimum: 10,
      maximum: 16,
    }),
    argon2: table(
      {
        memory_kib: integer({
          description: 'Memory of one argon2id hash.',
          default: 19456,
          minimum: 7168,
          maximum: 1048576,
          unit: 'KiB',
        }),
        iterations: integer({ description: 'Passes of argon2id.', default: 2, minimum: 1, maximum: 20 }),
        parallelism: integer({ description: 'Lanes of argon2id.', default: 1, minimum: 1, maximum: 16 }),
      },
      { description: "argon2id's parameters; the defaults are OWASP's." },
    ),
  },
  { description: 'One-time passwords and the lockout against guessing them.' },
);

export const gssapi = table(
  {
    enabled: boolean({ description: 'Takes Kerberos tickets by HTTP Negotiate (RFC 4559).', default: false }),
    keytab: optional(path({ description: 'The keytab with the key of `service_principal`; or use `gssproxy`.' })),
    gssproxy: boolean({ description: 'Takes the credentials from gssproxy in place of a keytab.', default: false }),
    service_principal: optional(
      text({
        description: "The server's own principal; needed when GSSAPI is on.",
        allowed: 'HTTP/<hostname>@<REALM>',
        pattern: /^HTTP\/[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?@[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      }),
    ),
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
    default_template: optional(
      text({
        description:
          'The subject DN of a principal that is not in the mapping. `{principal}` stands for the whole principal, `{primary}`, `{instance}` and `{realm}` for its parts.',
        allowed: 'a distinguished name as in RFC 4514 with {principal} in it, e.g. "CN={principal},O=Example"',
        check: (value) =>
          /\{(principal|primary|instance)\}/.test(value)
            ? checkDistinguishedName(value.replaceAll(/\{(principal|primary|instance|realm)\}/g, 'x'))
            : 'it contains none of {principal}, {primary} and {instance}, so everybody would get the same subject',
      }),
    ),
    require_crypto_verification: boolean({
      description:
        'Verifies tickets in full. Off, tickets are NOT VERIFIED, so anybody can enroll with a made-up one: for development, or for hints in the audit log beside client certificates.',
      default: true,
    }),
  },
  { description: 'GSSAPI authentication: Kerberos over SPNEGO.' },
);
