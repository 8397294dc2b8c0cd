/** What the drivers that forward a device's CSR (est, acme, command) have in common: keys, files, and how they start. */
import { isAbsolute } from 'node:path';
import { finding, type Finding } from '../../config/problem.ts';
import { integer, list, optional, path, seconds, text } from '../../config/keys.ts';
import { loadOthers, loadService } from '../../config/material/ca.ts';
import { firstOf, type CaMaterial, type Certificates, type ServiceMaterial } from '../../config/material/material.ts';
import type { MaterialReader } from '../../config/material/reader.ts';
import { urlCheck } from '../../config/schema/formats.ts';
import { remoteCaKeys, type CaTable } from '../../config/schema/label.ts';
import { isSameConfig } from '../../config/secret.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { labeledLog, type DriverContext, type Predecessor } from '../driver.ts';
import { RemoteCa } from './remote-ca.ts';
import type { Upstream } from './upstream.ts';

export const upstreamKeys = {
  ...remoteCaKeys,
  upstream_trust_anchors: path({
    description:
      'PEM file with the roots to which every certificate of the upstream CA must lead (docs/guides/upstream.md).',
  }),
};

export const https = (description: string) =>
  text({ description, allowed: 'an https URL such as "https://ca.example.com/"', check: urlCheck('https') });

export const tlsTrustAnchors = () =>
  optional.path({
    description: "PEM file with the CA certificates behind the server's TLS certificate.",
    defaultText: 'the CAs that Node.js knows',
  });

export const timeout = (usual: number) =>
  seconds(1, 600, {
    description: 'The longest time that one call may take.',
    default: usual,
  });

export const maxCalls = () =>
  integer(1, 256, {
    description: 'Concurrent calls. Up to sixteen times as many wait; further ones get 503.',
    default: 16,
  });

export const program = (description: string) =>
  list(
    text({
      description: 'A word of the command line.',
      allowed: 'text without NUL',
      pattern: /^[^\0]*$/su,
    }),
    { description: `${description} The program, an absolute path, and its arguments; no shell.`, minItems: 1 },
  );

/** Programs need a path, since PATH is not searched. */
export function* programChecks(
  programs: Readonly<Record<string, readonly string[] | undefined>>,
  key: string,
): Generator<Finding> {
  for (const [name, [program] = []] of Object.entries(programs))
    if (program !== undefined && !isAbsolute(program))
      yield finding(`${key}.${name}`, `"${program}" is not an absolute path (the path of a program)`);
}

type UpstreamTable = CaTable & { readonly upstream_trust_anchors: string };

export interface UpstreamMaterial<Table extends UpstreamTable = UpstreamTable> extends CaMaterial, ServiceMaterial {
  readonly table: Table;
  /** Unknown until the upstream reports them. */
  readonly certificates: undefined;
  /** Its certificates must lead to one of these. */
  readonly upstreamAnchors: Certificates;
  /** `chain`: certificates known at start. */
  readonly chain: readonly Certificate[];
}

interface OwnFiles {
  readonly tls_trust_anchors?: string | undefined;
  readonly client_certificate?: string | undefined;
  readonly client_key?: string | undefined;
}

/** @param own of the driver's own table: the anchors and our credentials at the upstream's server */
export async function loadUpstream<Table extends UpstreamTable>(
  reader: MaterialReader,
  table: Table,
  key: string,
  { tls_trust_anchors, ...own }: OwnFiles = {},
): Promise<UpstreamMaterial<Table> | undefined> {
  const anchors = await reader.anchors(`${key}.upstream_trust_anchors`, table.upstream_trust_anchors);
  const chain = table.chain === undefined ? [] : await reader.certificates(`${key}.chain`, table.chain);
  const others = await loadOthers(reader, table, key);
  const service = await loadService(reader, { ...own, trust_anchors: tls_trust_anchors }, `${key}.${table.driver}`);
  if (anchors === undefined || chain === undefined) return undefined;
  const expiring = { agent: firstOf(service.client), upstream_anchor: [...anchors, ...(service.trustAnchors ?? [])] };
  return { table, certificates: undefined, upstreamAnchors: anchors, chain, expiring, ...service, ...others };
}

/** What the folder of such a driver creates. */
export interface MadeUpstream {
  readonly upstream: Upstream;
  readonly maxCalls: number;
  /** Milliseconds per call. */
  readonly timeout: number;
}

/**
 * The `create` of such a driver: a CA behind an upstream, not started, or the one before a reload if nothing changed for
 * it.
 */
export const upstreamCa =
  <M extends UpstreamMaterial>(makeUpstream: (material: M, context: DriverContext) => MadeUpstream) =>
  (material: M, context: DriverContext, before?: Predecessor<M>): RemoteCa => {
    if (
      before?.driver instanceof RemoteCa &&
      !before.driver.hasGivenUp &&
      isSameConfig(factsOf(material), factsOf(before.material))
    )
      return before.driver;
    const { retryAfter, log, store, now } = context;
    const { table, upstreamAnchors: anchors, chain } = material;
    const { label } = table;
    return new RemoteCa({
      ...makeUpstream(material, context),
      label,
      anchors,
      chain,
      retryAfter,
      profile: table.profile,
      log: labeledLog(log, label),
      store,
      now,
    });
  };

const factsOf = ({ table, upstreamAnchors, chain, trustAnchors, client, expiring }: UpstreamMaterial): unknown[] => [
  table,
  ...[upstreamAnchors, chain, trustAnchors, client?.certificates, expiring.agent].map(fingerprints),
];

/** Compares certificates across a reload; a private key belongs to its certificate. */
export const fingerprints = (certificates?: readonly Certificate[]): readonly string[] | undefined =>
  certificates?.map(({ fingerprint }) => fingerprint);
