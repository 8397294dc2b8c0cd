/**
 * The client's Explicit TA database (RFC 7030 §3.1), and its updates from /cacerts (§4.1.3): a new root is trusted if a
 * trusted CA certifies its key (NewWithOld, RFC 4210 §4.4), never because a server lists it.
 */
import { hash } from 'node:crypto';
import { formatName } from '../../pki/x509/name.ts';
import { type Certificate, isSameCa } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import { findPath, isCurrent, isSelfSigned } from './path.ts';

export interface CaCertificates {
  readonly anchors: readonly Certificate[];
  /** Certificates that lead to the anchors. */
  readonly intermediates: readonly Certificate[];
}

const fingerprintOf = ({ der }: Certificate, like: string): string =>
  hash(like.length === 64 ? 'sha256' : 'sha512', der, 'hex');

/**
 * The anchors from the first /cacerts response (RFC 7030 §4.1.1).
 * @param fingerprint from {@link readFingerprint}
 * @throws ClientError `CA_UNTRUSTED`
 */
export async function firstAnchors(
  listed: readonly Certificate[],
  fingerprint: string,
  now: number,
): Promise<CaCertificates> {
  const anchor = listed.find((ca) => fingerprintOf(ca, fingerprint) === fingerprint);
  if (anchor === undefined)
    throw new ClientError(
      'untrusted',
      'CA_UNTRUSTED',
      `no CA certificate of the server has the fingerprint ${fingerprint}; it lists ${listed
        .map((ca) => `${formatName(ca.subject)} (${fingerprintOf(ca, fingerprint)})`)
        .join(', ')}`,
    );
  if (!isCurrent(anchor, now))
    throw new ClientError(
      'untrusted',
      'CA_UNTRUSTED',
      `the CA certificate with this fingerprint is expired or not valid yet`,
    );
  return (await followAnchors({ anchors: [anchor], intermediates: [] }, listed, now)).certificates;
}

interface Followed {
  readonly certificates: CaCertificates;
  readonly added: readonly Certificate[];
  readonly dropped: readonly Certificate[];
  /** Roots without a link to a trusted one. */
  readonly refused: readonly Certificate[];
}

interface FollowOptions {
  /** Anchors of the user, which are never dropped. */
  readonly kept?: readonly Certificate[];
  /** Certificates that must still lead to an anchor before another is dropped: the server's, the client's own. */
  readonly needed?: readonly Certificate[];
}

export async function followAnchors(
  current: CaCertificates,
  listed: readonly Certificate[],
  now: number,
  { kept = [], needed = [] }: FollowOptions = {},
): Promise<Followed> {
  const known = current.anchors.filter((ca) => isCurrent(ca, now) || includes(kept, ca));
  const roots = await selfSigned(listed);
  const links = listed.filter((ca) => !includes(roots, ca) && ca.isCa);
  const anchors = [...known];
  const fresh = roots.filter((root) => root.isCa && isCurrent(root, now) && !includes(anchors, root));
  for (let before = -1; before < anchors.length;) {
    before = anchors.length;
    for (const root of fresh)
      if (!includes(anchors, root) && (await isLinked(root, links, anchors, now))) anchors.push(root);
  }
  const remaining = await withoutDropped(anchors, roots, kept, needed, links, now);
  const intermediates = await filter(
    links,
    async (ca) => !includes(remaining, ca) && (await findPath(ca, remaining, links, now)) !== undefined,
  );
  return {
    certificates: { anchors: remaining, intermediates },
    added: remaining.filter((ca) => !includes(current.anchors, ca)),
    dropped: current.anchors.filter((ca) => !includes(remaining, ca)),
    refused: fresh.filter((ca) => !includes(anchors, ca)),
  };
}

/**
 * Whether a trusted CA certifies the root's key under its name: NewWithOld; OldWithNew alone proves nothing for the new
 * root.
 */
async function isLinked(
  root: Certificate,
  links: readonly Certificate[],
  anchors: readonly Certificate[],
  now: number,
): Promise<boolean> {
  for (const link of links) {
    if (!isSameCa(link, root)) continue;
    if ((await findPath(link, anchors, links, now)) !== undefined) return true;
  }
  return anchors.some((anchor) => isSameCa(anchor, root));
}

/** Drops roots that the server no longer lists and nothing in use needs. */
async function withoutDropped(
  anchors: readonly Certificate[],
  listed: readonly Certificate[],
  kept: readonly Certificate[],
  needed: readonly Certificate[],
  links: readonly Certificate[],
  now: number,
): Promise<readonly Certificate[]> {
  const remaining = anchors.filter((ca) => includes(listed, ca) || includes(kept, ca) || includes(links, ca));
  if (!remaining.some((ca) => includes(listed, ca) && isCurrent(ca, now))) return anchors;
  for (const ca of needed) if ((await findPath(ca, remaining, links, now)) === undefined) return anchors;
  return remaining;
}

const includes = (list: readonly Certificate[], ca: Certificate): boolean => list.some(({ der }) => der.equals(ca.der));

export const selfSigned = (list: readonly Certificate[]): Promise<Certificate[]> => filter(list, isSelfSigned);

async function filter(
  list: readonly Certificate[],
  wanted: (ca: Certificate) => Promise<boolean>,
): Promise<Certificate[]> {
  const chosen = await Promise.all(list.map(wanted));
  return list.filter((_, index) => chosen[index] === true);
}
