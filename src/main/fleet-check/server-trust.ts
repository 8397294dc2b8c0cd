/** Whether holders still trust the server: the CA certificates that they were given certify its certificate. */
import { findPath } from '../../auth/mtls/path-building.ts';
import type { LoadedService } from '../../config/load.ts';
import { children } from '../../pki/der/der.ts';
import { type Certificate, parseCertificate } from '../../pki/x509/certificate.ts';
import { foldedName } from '../../pki/x509/name.ts';
import type { Simulation } from './simulation.ts';

/** What the server presents: its certificate, and those above that it sends. */
export type ServerChain = readonly [Certificate, ...Certificate[]];

/** For a certificate that the server issues itself: the CA that will sign it. */
export function serverChain({ config, material }: LoadedService, { router }: Simulation): ServerChain | undefined {
  if (material.tls !== undefined) return material.tls.certificates;
  const { automatic } = config.tls;
  if (automatic === undefined) return undefined;
  const [own, ...above] = router.find(automatic.ca).knownCertificates;
  return own && [own, ...above];
}

export const isSameLeaf = (a: ServerChain | undefined, b: ServerChain | undefined): boolean =>
  a !== undefined && b !== undefined && a[0].der.equals(b[0].der);

/** The certificates of an answer of cacerts, which are one after another. */
export const readGiven = (ders: Buffer): Certificate[] => children(ders).map(({ raw }) => parseCertificate(raw));

/** Whether one of the given CA certificates certifies the server's, directly or by what the server sends. */
export async function certifies(given: readonly Certificate[], [leaf, ...sent]: ServerChain, now: number) {
  const anchors = new Set(given.map(({ fingerprint }) => fingerprint));
  const bySubject = Map.groupBy([...given, ...sent], ({ subject }) => foldedName(subject));
  const source = {
    isAnchor: ({ fingerprint }: Certificate) => anchors.has(fingerprint),
    bySubject: (name: string) => bySubject.get(name) ?? [],
    isKnownLink: () => false,
  };
  return 'path' in (await findPath(leaf, source, now));
}
