/** `driver = "est"`: a CA behind another EST server. */
import { existsSync } from 'node:fs';
import { bothOrNeither, type Finding, finding, type Problem } from '../../config/problem.ts';
import { choice, optional, type Static, table } from '../../config/keys.ts';
import type { Certificates } from '../../config/material/material.ts';
import { privateKeyInToken } from '../../config/schema/label.ts';
import { describe, EstuaryError } from '../../errors.ts';
import { PKCS11_ENGINES } from '../../pki/pkcs11-engine.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { type CheckContext, type DriverDefinition, labeledLog, type DriverContext } from '../driver.ts';
import { namingFindings, relatedKey, tokenAccess } from '../pkcs11/access.ts';
import { moduleOutput } from '../pkcs11/module-output.ts';
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
import { clientTls } from '../remote/client-tls.ts';
import { HttpClient } from '../../https-client.ts';
import { EstUpstream } from './est-upstream.ts';
import { TokenHttpClient } from './token-client.ts';

const token = table('The private key of `client_certificate` in a PKCS#11 token, in place of `client_key`.', {
  ...privateKeyInToken,
  engine: optional.path({
    description: "OpenSSL's engine for PKCS#11, of libp11 (Debian: libengine-pkcs11-openssl).",
    defaultText: 'where Linux distributions install it',
  }),
  token_label: optional.text({
    description: 'The label of the token, unless `uri` names it; the engine knows no slot IDs.',
    allowed: 'text',
    pattern: /^.{1,32}$/su,
  }),
});

const est = table('Another EST server.', {
  url: https('The base URL of the EST server, label included: "https://ca.example.com/.well-known/est/edge".'),
  tls_trust_anchors: tlsTrustAnchors(),
  client_certificate: optional.path({ description: 'PEM file with the certificate of this registration authority.' }),
  client_key: optional.path({ description: 'PEM file with the private key of `client_certificate`.' }),
  pkcs11: optional(token),
  username: optional.text({
    description: 'Name for HTTP Basic, with `password`.',
    allowed: 'text without ":"',
    pattern: /^[^:\0]+$/su,
  }),
  password: optional.secret({ description: 'Password for HTTP Basic.' }),
  max_tls_version: choice(['TLSv1.2', 'TLSv1.3'], {
    description:
      '`TLSv1.2` is for servers that request the client certificate after the handshake, such as Apache for a part of its URLs.',
    default: 'TLSv1.3',
  }),
  csrattrs: choice(['own', 'upstream'], {
    description: "What csrattrs answers: `[ca.csrattrs]`, or the upstream's answer.",
    default: 'own',
  }),
  timeout: timeout(30),
  max_calls: maxCalls(),
});

const keys = table('A CA behind another EST server.', {
  ...upstreamKeys,
  driver: choice(['est'], { description: 'Where the CA is: behind another EST server.' }),
  est,
});

type EstTable = Static<typeof keys>;
interface EstMaterial extends UpstreamMaterial<EstTable> {
  /** With the key in a token. */
  readonly token: { readonly certificates: Certificates; readonly engine: string } | undefined;
}

export const estDriver: DriverDefinition<EstTable, EstMaterial> = {
  keys,
  name: 'est',
  remote: 'the upstream CA',
  dependency: 'est',
  async load(reader, ca, key) {
    const material = await loadUpstream(reader, ca, key, ca.est);
    const { pkcs11, client_certificate: file } = ca.est;
    if (pkcs11 === undefined || file === undefined) return material && { ...material, token: undefined };
    await reader.exists(`${key}.est.pkcs11.module`, pkcs11.module, 'the path of a PKCS#11 library');
    const engine = pkcs11.engine ?? PKCS11_ENGINES.find((engine) => existsSync(engine)) ?? PKCS11_ENGINES[0];
    await reader.exists(`${key}.est.pkcs11.engine`, engine, "libp11's engine; Debian: libengine-pkcs11-openssl");
    const certificates = await reader.certificates(`${key}.est.client_certificate`, file);
    if (material === undefined || certificates === undefined) return undefined;
    const expiring = { ...material.expiring, agent: [certificates[0]] };
    return { ...material, token: { certificates, engine }, expiring };
  },
  checks: ({ est: own }, key) => credentialChecks(own, `${key}.est`),
  create: upstreamCa(makeUpstream),
  startProblems: tokenProblems,
};

/** Authentication at the upstream CA: a certificate or a password. */
function* credentialChecks(
  { client_certificate, client_key: file, pkcs11, username, password }: EstTable['est'],
  key: string,
): Generator<Finding> {
  if (pkcs11 !== undefined && file !== undefined)
    yield finding(`${key}.pkcs11`, 'is given, and so is client_key (one of the two)', `${key}.client_key`);
  if (pkcs11 !== undefined) yield* namingFindings(pkcs11, `${key}.pkcs11`, ['token_label']);
  yield* bothOrNeither(key, { client_certificate, [pkcs11 === undefined ? 'client_key' : 'pkcs11']: file ?? pkcs11 });
  yield* bothOrNeither(key, { username, password });
  if (client_certificate === undefined && username === undefined)
    yield finding(
      `${key}.client_certificate`,
      'is missing, and so is username (how this server authenticates at the upstream CA)',
      `${key}.username`,
      `${key}.client_key`,
      `${key}.password`,
    );
}

function makeUpstream(material: EstMaterial, context: DriverContext): MadeUpstream {
  const { url, username, password, csrattrs, client_certificate, ...own } = material.table.est;
  const { max_calls: maxCalls, timeout: seconds, max_tls_version: maxVersion } = own;
  const timeout = seconds * 1000;
  const upstream = new EstUpstream({
    client:
      tokenClient(material, context) ?? new HttpClient(new URL(url).origin, { ...clientTls(material), maxVersion }),
    url,
    hasCertificate: client_certificate !== undefined,
    password:
      username === undefined ? undefined : { username, reveal: () => password?.reveal().toString('utf8') ?? '' },
    forwardsCsrAttributes: csrattrs === 'upstream',
    timeout,
    retryAfter: context.retryAfter,
  });
  return { upstream, maxCalls, timeout };
}

function tokenClient(
  { table: { label, est: own }, token, trustAnchors }: EstMaterial,
  { retryAfter, env, log }: CheckContext,
): TokenHttpClient | undefined {
  const { pkcs11, max_calls: maxCalls, max_tls_version: maxVersion } = own;
  if (pkcs11 === undefined || token === undefined) return undefined;
  const { certificates, engine } = token;
  return new TokenHttpClient({
    ...{ url: new URL(own.url).origin, maxVersion, certificates, trustAnchors, maxCalls, retryAfter, env, engine },
    ...{ token: tokenAccess(pkcs11), log: labeledLog(log, label), onOutput: moduleOutput(label, log) },
  });
}

/** Opens the token, as a start would. */
async function tokenProblems(material: EstMaterial, key: string, context: CheckContext): Promise<Problem[]> {
  const client = tokenClient(material, context);
  try {
    await client?.start();
    return [];
  } catch (error) {
    const [name, what] = faultyKey(error, material.table.est.pkcs11);
    return [
      { key: `${key}.est.${name}`, message: what === undefined ? describe(error) : `${what} (${describe(error)})` },
    ];
  } finally {
    client?.close();
  }
}

/** And what is wrong with it, if OpenSSL says so in its own words. */
function faultyKey(error: unknown, table: EstTable['est']['pkcs11']): [key: string, what?: string] {
  const code = error instanceof IsolatedError || error instanceof EstuaryError ? error.code : '';
  if (code.includes('KEY_VALUES_MISMATCH'))
    return ['client_certificate', 'does not belong to the private key in the token'];
  if (!/^(?:TOKEN|PKCS11|CKR)_/.test(code)) return ['pkcs11.engine', 'cannot be used'];
  const related = relatedKey(code, table ?? {});
  const name = related === 'pin' ? (table?.pin?.key ?? 'pin_file') : related;
  return [`pkcs11.${name === 'max_sessions' || name === 'timeout' ? 'module' : name}`];
}
