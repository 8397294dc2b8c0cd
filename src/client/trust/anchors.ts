/**
 * The Explicit TA database of a client (RFC 7030 §3.1), and how it follows what /cacerts says (§4.1.3): a new root is believed where a
 * certificate of its key leads to one that is believed already (NewWithOld, RFC 4210 §4.4), never because a server lists it.
 */
import { createHash } from 'node:crypto';
import { formatName } from '../../pki/x509/name.ts';
import { namesMatch } from '../../pki/x509/name-matching.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import { findPath, isCurrent, isSelfSigned } from './path.ts';

export interface CaCertificates {
  readonly anchors: readonly Certificate[];
  /** Those that lead to the anchors. */
  readonly intermediates: readonly Certificate[];
}

const fingerprintOf = ({ der }: Certificate, like: string): string =>
  createHash(like.length === 64 ? 'sha256' : 'sha512')
    .update(der)
    .digest('hex');

/**
 * What the first answer of /cacerts comes to (RFC 7030 §4.1.1).
 *
 * @param fingerprint as {@link readFingerprint} has it
 * @throws ClientError `CA_UNTRUSTED`
 */
export async function firstAnchors(
  listed: readonly Certificate[],
  fingerprint: string,
  now: number,
): Promise<CaCertificates> {
  const anchor = listed.find((one) => fingerprintOf(one, fingerprint) === fingerprint);
  if (anchor === undefined)
    throw new ClientError(
      'untrusted',
      'CA_UNTRUSTED',
      `no CA certificate of the server has the fingerprint ${fingerprint}; it lists ${listed
        .map((one) => `${formatName(one.subject)} (${fingerprintOf(one, fingerprint)})`)
        .join(', ')}`,
    );
  if (!isCurrent(anchor, now))
    throw new ClientError('untrusted', 'CA_UNTRUSTED', `the CA certificate with the fingerprint is not valid now`);
  return (await followAnchors({ anchors: [anchor], intermediates: [] }, listed, now)).certificates;
}

interface Followed {
  readonly certificates: CaCertificates;
  readonly added: readonly Certificate[];
  readonly dropped: readonly Certificate[];
  /** Roots that nothing links to what is believed. */
  readonly refused: readonly Certificate[];
}

interface FollowOptions {
  /** Not to be dropped: what somebody has put there. */
  readonly kept?: readonly Certificate[];
  /** What still has to lead to an anchor before another is dropped: the server's certificate, the client's own. */
  readonly needed?: readonly Certificate[];
}

export async function followAnchors(
  current: CaCertificates,
  listed: readonly Certificate[],
  now: number,
  { kept = [], needed = [] }: FollowOptions = {},
): Promise<Followed> {
  const known = current.anchors.filter((one) => isCurrent(one, now) || includes(kept, one));
  const roots = await filter(listed, isSelfSigned);
  const links = listed.filter((one) => !includes(roots, one) && one.isCa);
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
    async (one) => !includes(remaining, one) && (await findPath(one, remaining, links, now)) !== undefined,
  );
  return {
    certificates: { anchors: remaining, intermediates },
    added: remaining.filter((one) => !includes(current.anchors, one)),
    dropped: current.anchors.filter((one) => !includes(remaining, one)),
    refused: fresh.filter((one) => !includes(anchors, one)),
  };
}

/** Its key is certified, under its name, by what is believed: NewWithOld; of OldWithNew alone nothing follows for the new one. */
async function isLinked(
  root: Certificate,
  links: readonly Certificate[],
  anchors: readonly Certificate[],
  now: number,
): Promise<boolean> {
  for (const link of links) {
    if (!link.spki.equals(root.spki) || !namesMatch(link.subject, root.subject)) continue;
    if ((await findPath(link, anchors, links, now)) !== undefined) return true;
  }
  return anchors.some(({ spki, subject }) => spki.equals(root.spki) && namesMatch(subject, root.subject));
}

/** A root that the server has given up goes when nothing that is in use needs it. */
async function withoutDropped(
  anchors: readonly Certificate[],
  listed: readonly Certificate[],
  kept: readonly Certificate[],
  needed: readonly Certificate[],
  links: readonly Certificate[],
  now: number,
): Promise<readonly Certificate[]> {
  const remaining = anchors.filter((one) => includes(listed, one) || includes(kept, one) || includes(links, one));
  if (!remaining.some((one) => includes(listed, one) && isCurrent(one, now))) return anchors;
  for (const one of needed) if ((await findPath(one, remaining, links, now)) === undefined) return anchors;
  return remaining;
}

const includes = (list: readonly Certificate[], one: Certificate): boolean =>
  list.some(({ der }) => der.equals(one.der));

async function filter(
  list: readonly Certificate[],
  wanted: (one: Certificate) => Promise<boolean>,
): Promise<Certificate[]> {
  const chosen = await Promise.all(list.map(wanted));
  return list.filter((_, index) => chosen[index] === true);
}
