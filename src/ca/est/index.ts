/** `driver = "est"`: a CA behind another EST server. */
import { finding, type Finding } from '../../config/findings.ts';
import { choice, optional, path, secret, type Static, table, text } from '../../config/keys.ts';
import type { DriverDefinition } from '../definition.ts';
import {
  https,
  loadUpstream,
  type MadeUpstream,
  maxCalls,
  timeout,
  tlsTrustAnchors,
  upstreamCa,
  upstreamKeys,
  type UpstreamMaterial,
} from '../remote/create.ts';
import { clientTls } from '../remote/http.ts';
import { EstUpstream } from './est-upstream.ts';

const est = table(
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

const keys = table(
  { ...upstreamKeys, driver: choice(['est'], { description: 'Where the CA is: behind another EST server.' }), est },
  { description: 'A CA behind another EST server.' },
);

type EstTable = Static<typeof keys>;
type EstMaterial = UpstreamMaterial<EstTable>;

export const estDriver: DriverDefinition<EstTable, EstMaterial> = {
  keys,
  name: 'est',
  remote: 'the upstream CA',
  dependency: 'est',
  load: (reader, ca, key) => loadUpstream(reader, ca, key, ca.est),
  checks: ({ est: own }, key) => credentialChecks(own, `${key}.est`),
  create: upstreamCa(makeUpstream),
};

/** Authentication at the upstream CA: a certificate or a password. */
function* credentialChecks(
  { client_certificate, client_key, username, password }: EstTable['est'],
  key: string,
): Generator<Finding> {
  const pairs = [
    ['client_certificate', client_certificate, 'client_key', client_key],
    ['username', username, 'password', password],
  ] as const;
  for (const [one, oneValue, other, otherValue] of pairs)
    if ((oneValue === undefined) !== (otherValue === undefined)) {
      const [given, missing] = oneValue === undefined ? [other, one] : [one, other];
      yield finding(`${key}.${given}`, `is set without ${missing} (both, or neither)`, `${key}.${missing}`);
    }
  if (client_certificate === undefined && username === undefined)
    yield finding(
      `${key}.client_certificate`,
      'is missing, and so is username (how this server authenticates at the upstream CA)',
      `${key}.username`,
      `${key}.client_key`,
      `${key}.password`,
    );
}

function makeUpstream(material: EstMaterial, retryAfter: number): MadeUpstream {
  const { url, username, password, csrattrs, max_calls, timeout: seconds } = material.table.est;
  const credentials =
    username === undefined || password === undefined
      ? undefined
      : { username, reveal: () => password.reveal().toString('utf8') };
  const common = { tls: clientTls(material), timeout: seconds * 1000, retryAfter };
  const upstream = new EstUpstream({
    ...common,
    url,
    password: credentials,
    forwardsCsrAttributes: csrattrs === 'upstream',
  });
  return { upstream, maxCalls: max_calls, timeout: common.timeout };
}
