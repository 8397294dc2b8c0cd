import { ADMIN_ROLES } from '../vocabulary.ts';
import { boolean, choice, integer, list, map, optional, seconds, secret, table, text, timestamp } from '../keys.ts';
import { checkDistinguishedName, checkHost, HOST_ALLOWED, urlCheck, trustAnchors } from './formats.ts';

const PERSON = /^[^\p{Cc}]{1,200}$/u;

const role = choice(ADMIN_ROLES, { description: 'A role.' });

const roles = (holder: string) =>
  optional.list(role, {
    description: `What ${holder} may do (docs/reference/admin-api.md).`,
    defaultText: '["admin"]',
  });

const name = (description: string) =>
  optional.text({
    description,
    allowed: 'a distinguished name (RFC 4514) such as "CN=Ada,O=Example"',
    check: checkDistinguishedName,
  });

const person = (standsFor: string) =>
  optional.text({
    description: 'Who the administrator is. Entries with equal names are one administrator, also across methods.',
    defaultText: standsFor,
    allowed: 'a name of 1 to 200 characters',
    pattern: PERSON,
  });

const labels = optional.list(text({ description: 'A label.', allowed: 'a label', pattern: /^.+$/su }), {
  description:
    'Limits the roles to the records of these labels (docs/reference/admin-api.md). Only with the roles `ra` and `auditor`.',
  minItems: 1,
  defaultText: 'every label',
});

const client = table(
  'An administrator with a client certificate: `subject` with `issuer`, or `fingerprint`, or `spki_sha256`.',
  {
    name: person('none: the entry is its own administrator'),
    subject: name("The certificate's subject; goes with `issuer`."),
    issuer: name('The subject of the CA that issued it; goes with `subject`.'),
    fingerprint: optional.text({
      description:
        'One certificate by its SHA-256. Takes precedence over the other entries. A renewed certificate needs a new entry.',
      allowed: 'sha256: followed by 64 hex digits, the SHA-256 of the certificate (DER)',
      pattern: /^sha256:[0-9a-fA-F]{64}$/,
    }),
    spki_sha256: optional.text({
      description:
        'The SHA-256 of the SubjectPublicKeyInfo (DER). A renewed certificate with the same key keeps the entry. Takes precedence over `subject`.',
      allowed: '64 hex digits, the SHA-256 of the SubjectPublicKeyInfo (DER)',
      pattern: /^[0-9a-fA-F]{64}$/,
    }),
    roles: roles('the administrator'),
    labels,
  },
);

const claim = (description: string, name: string) =>
  text({ description, default: name, allowed: 'the name of a claim', pattern: /^.{1,200}$/su });

const oidc = table(
  'Administrators sign in to the console at an OpenID provider ([guides/oidc.md](../guides/oidc.md)).',
  {
    issuer: text({
      description: 'The issuer identifier of the provider. The server reads its metadata below this URL.',
      allowed: 'an https URL',
      check: urlCheck('https'),
    }),
    client_id: text({
      description: 'What the provider calls this server.',
      allowed: 'a text of 1 to 500 characters',
      pattern: /^.{1,500}$/su,
    }),
    client_secret: secret({ description: 'The secret of the client.' }),
    token_endpoint_auth_method: optional.choice(['client_secret_basic', 'client_secret_post'], {
      description: 'How the server sends the secret.',
      defaultText: "what the provider's metadata offers, `client_secret_basic` first",
    }),
    trust_anchors: trustAnchors("PEM file with the CA certificates that issue the provider's certificate."),
    scopes: list(text({ description: 'A scope.', allowed: 'a scope', pattern: /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/ }), {
      description: 'The scopes to request. `openid` is one of them.',
      default: ['openid', 'profile'],
      minItems: 1,
    }),
    redirect_url: text({
      description:
        'The URL of `/auth/oidc/callback` on the admin listener, as browsers reach it and as the provider knows it.',
      allowed: 'an https URL that ends with /auth/oidc/callback',
      check: (value) =>
        urlCheck('https')(value) ??
        (value.endsWith('/auth/oidc/callback') ? undefined : `"${value}" does not end with /auth/oidc/callback`),
    }),
    name_claim: claim('The claim with the name to display. It decides nothing.', 'name'),
    roles_claim: claim(
      'The claim whose values give roles: a text, an object with a `name` or `value`, or a list of them. Where no claim has this name, it is a path, such as `realm_access.roles`.',
      'groups',
    ),
    roles: map(
      table('What a value of the claim allows.', {
        roles: roles('the administrator'),
        labels,
      }),
      { description: 'Roles by the values of `roles_claim`. Somebody with several values has the roles of all.' },
    ),
  },
  { live: true },
);

export const admin = table('The admin listener. At least one of `admin.tls` and `admin.bearer_token` has to be on.', {
  host: text({
    description: 'The address the admin listener binds to.',
    default: '127.0.0.1',
    allowed: HOST_ALLOWED,
    check: checkHost,
  }),
  port: integer(0, 65535, { description: 'The TCP port of the admin listener; 0 takes a free one.', default: 9444 }),
  public_metrics: boolean({ description: 'Serves /metrics without authentication.', default: false }),
  console: boolean({ description: 'Serves the console for browsers at `/` (docs/guides/console.md).', default: true }),
  tls: table('TLS and client certificates on the admin listener.', {
    mode: choice(['required', 'optional', 'required_for_reenroll', 'none'], {
      description:
        'Whether administrators present a certificate: `required` in every handshake; `optional` takes a valid one in place of a bearer token; `none` asks for none. `required_for_reenroll` means `optional` here.',
      default: 'none',
      defaultText: '`required` when `trust_anchors` is given, else `none`',
    }),
    trust_anchors: optional.path({
      description:
        'PEM file with the CA certificates that issue admin certificates. Needed unless mode is `none`. A CA of this server, or one above it, is refused.',
      live: true,
    }),
    crl: optional.path({
      description:
        'CRLs of the CAs in `trust_anchors`: a PEM or DER file, or a folder of such files. A certificate that one of them revokes does not authenticate.',
      live: true,
    }),
    default_roles: optional.list(role, {
      description:
        'What the holder of a certificate may do if no entry of `admin.clients` names the certificate. An empty list allows only to read `/admin/session` and `/admin/openapi.json`.',
      defaultText: '["admin"] without any entry of `admin.clients`, else an empty list',
      live: true,
    }),
    certificate: optional.path({
      description: "PEM file with a server certificate of the admin listener's own.",
      defaultText: '`tls.certificate`',
      live: true,
    }),
    private_key: optional.path({
      description: 'PEM file with the private key of `admin.tls.certificate`.',
      defaultText: '`tls.private_key`',
      live: true,
    }),
  }),
  sessions: table('Sessions of administrators who have signed in with a browser.', {
    idle_timeout: seconds(60, 86400, {
      description: 'How long a session lasts without a call.',
      default: 900,
      live: true,
    }),
    lifetime: seconds(60, 604800, { description: 'How long it lasts in all.', default: 28800, live: true }),
  }),
  oidc: optional(oidc),
  clients: list(client, {
    description: 'Administrators with client certificates, and what they may do.',
    default: [],
    live: true,
  }),
  bearer_token: table('Bearer tokens of administrators.', {
    enabled: boolean({ description: 'Takes bearer tokens on the admin API.', default: false, live: true }),
    tokens: list(
      table('One token; `estuary admin token new` makes one.', {
        token_hash: text({
          description: 'The SHA-256 of the token, as `sha256:` and 64 hex digits.',
          allowed: 'sha256: followed by 64 hex digits, the SHA-256 of the token',
          pattern: /^sha256:[0-9a-fA-F]{64}$/,
          sensitive: true,
        }),
        description: text({
          description: 'Who holds the token.',
          allowed: 'a name of 1 to 200 characters',
          pattern: PERSON,
        }),
        name: person('`description`'),
        roles: roles('its holder'),
        labels,
        not_after: optional(timestamp({ description: 'When the token ends.', defaultText: 'never' })),
      }),
      { description: 'The tokens that are accepted.', default: [], live: true },
    ),
  }),
});
