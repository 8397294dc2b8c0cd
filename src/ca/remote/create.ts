/** Creates the CAs that forward a device's CSR: drivers est, acme and command. */
import { isDeepStrictEqual } from 'node:util';
import type { UpstreamCaMaterial } from '../../config/material/material.ts';
import { isSameConfig } from '../../config/secret.ts';
import { labeledLog, type DriverContext, type Predecessor } from '../driver.ts';
import { RemoteCa } from './remote-ca.ts';
import type { Upstream } from './upstream.ts';

/** What the folder of such a driver creates. */
export interface MadeUpstream {
  readonly upstream: Upstream;
  readonly maxCalls: number;
  /** Milliseconds per call. */
  readonly timeout: number;
}

/**
 * A CA behind an upstream, not started, or the one before a reload if nothing changed for it.
 * @throws EstuaryError 500 `CA_UNUSABLE`
 */
export function createUpstreamCa<M extends UpstreamCaMaterial>(
  makeUpstream: (material: M, retryAfter: number) => MadeUpstream,
  material: M,
  { retryAfter, log, store, now }: DriverContext,
  before?: Predecessor,
): RemoteCa {
  if (before?.driver instanceof RemoteCa && isSame(material, before.material)) return before.driver;
  const { table, upstreamAnchors: anchors, chain } = material;
  const { label } = table;
  return new RemoteCa({
    ...makeUpstream(material, retryAfter),
    label,
    anchors,
    chain,
    retryAfter,
    validityDays: table.profile.validity_days,
    log: labeledLog(log, label),
    store,
    now,
  });
}

function isSame(now: UpstreamCaMaterial, before: Predecessor['material']): boolean {
  if (!('upstreamAnchors' in before)) return false;
  const certificates = ({ upstreamAnchors, chain, trustAnchors, client }: UpstreamCaMaterial) =>
    [upstreamAnchors, chain, trustAnchors, client?.certificates].map((some) => some?.map((one) => one.fingerprint));
  return isSameConfig(now.table, before.table) && isDeepStrictEqual(certificates(now), certificates(before));
}
