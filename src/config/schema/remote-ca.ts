/** Tables of the drivers that forward the device's CSR: `[ca.est]`, `[ca.acme]`, `[ca.command]`. */
import { choice, integer, list, optional, path, seconds, secret, table, text } from '../keys.ts';
import { urlCheck } from './formats.ts';

const https = (description: string) =>
  text({ description, allowed: 'an https URL such as "https://ca.example.com/"', check: urlCheck('https') });

const tlsTrustAnchors = () =>
  optional(
    path({
      description: "PEM file with the CA certificates behind the server's TLS certificate.",
      defaultText: 'the CAs that Node.js knows',
    }),
  );

const timeout = (usual: number) =>
  seconds(1, 600, {
    description: 'The longest time that one call may take.',
    default: usual,
  });

const maxCalls = () =>
  integer(1, 256, {
    description: 'Concurrent calls. Up to sixteen times as many wait; further ones get 503.',
    default: 16,
  });

const program = (description: string) =>
  list(
    text({
      description: 'A word of the command line.',
      allowed: 'text without NUL',
      pattern: /^[^\0]+$/su,
    }),
    { description: `${description} The program, an absolute path, and its arguments; no shell.`, minItems: 1 },
  );

export const upstreamTrustAnchors = () =>
  path({
    description:
      'PEM file with the roots to which every certificate of the upstream CA must lead (docs/guides/upstream.md).',
  });

export const est = table(
  {
    url: https('The base URL of the EST server, label included: "https://ca.example.com/.well-known/est/edge".'),
    tls_trust_anchors: tlsTrustAnchors(),
    client_certificate: optional(
      path({ description: 'PEM file with the certificate of this registration authority.' }),
    ),
    client_key: optional(path({ description: 'PEM file with the private key of `client_certificate`.' })),
    username: optional(
      text({
        description: 'Name for HTTP Basic, with `password`.',
        allowed: 'text without ":"',
        pattern: /^[^:\0]+$/su,
      }),
    ),
    password: optional(secret({ description: 'Password for HTTP Basic.' })),
    csrattrs: choice(['own', 'upstream'], {
      description: "What csrattrs answers: `[ca.csrattrs]`, or the upstream's answer.",
      default: 'own',
    }),
    timeout: timeout(30),
    max_calls: maxCalls(),
  },
  { description: 'Another EST server.' },
);

export const acme = table(
  {
    directory: https("The URL of the server's directory."),
    tls_trust_anchors: tlsTrustAnchors(),
    account_key_file: path({
      description: 'PEM file with the EC P-256 key of the account. It is created (0600) if absent.',
    }),
    eab_kid: optional(
      text({ description: 'Key identifier of the external account binding.', allowed: 'text', pattern: /^.+$/su }),
    ),
    eab_hmac_key: optional(secret({ description: 'Key of the external account binding, base64url.' })),
    challenge: choice(['dns-01', 'none'], {
      description:
        '`dns-01`: `dns_hook` proves control of the names. `none`: the CA considers our names authorized already.',
      default: 'dns-01',
    }),
    dns_hook: optional(program('Called with `present` or `cleanup`, the name of the TXT record and its value.')),
    timeout: timeout(30),
    max_calls: maxCalls(),
  },
  { description: 'An ACME server.' },
);

export const command = table(
  {
    issue: program('Gets the CSR (PEM) on the standard input, and writes the certificate and its chain (PEM).'),
    poll: optional(
      program('Gets the ID that `issue` printed, or nothing after a lost response; answers like `issue`.'),
    ),
    revoke: optional(program('Gets the certificate (PEM) on the standard input.')),
    timeout: timeout(60),
    max_running: integer(1, 256, {
      description: 'Programs that run concurrently. Up to sixteen times as many wait; further requests get 503.',
      default: 4,
    }),
  },
  { description: "Programs of the operator's." },
);
