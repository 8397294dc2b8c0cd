/** The trusted issuers of client certificates: an immutable snapshot, which a reload replaces. */
import { isSameCertificate, parseCertificate, pemOf, type Certificate, isSameCa } from '../../pki/x509/certificate.ts';
import { foldedName } from '../../pki/x509/name.ts';
import { findPath, type IssuerSource } from './path-building.ts';
import { RevocationLists, type CrlSource } from './revocation-lists.ts';

interface ClientTrustInput {
  /** One or more; intermediate CAs may be anchors too. */
  readonly anchors: readonly Certificate[];
  /** DER of CA certificates for path building: our CAs' and renewal_issuers. They are not trusted by themselves. */
  readonly intermediates?: readonly Buffer[];
  readonly crls?: readonly CrlSource[] | undefined;
  /** A further CRL could not be read. */
  readonly crlsIncomplete?: boolean;
  /** CRLs in force until now; undefined at the start. */
  readonly before?: RevocationLists | undefined;
  /** The anchors that are CAs of this server or above one. */
  readonly own?: readonly Certificate[];
  /** Later additions: the chains of remote CAs. */
  readonly learned?: () => readonly Certificate[];
  /** Certificates of proxies that forward client certificates. They authenticate nobody. */
  readonly proxies?: readonly Certificate[];
}

/** Cached paths per snapshot, a few kilobytes each. */
const CACHED_PATHS = 2000;

export class ClientTrust {
  readonly anchors: readonly Certificate[];
  /** The anchors, and the intermediates that chain to one. */
  readonly certificates: readonly Certificate[];
  /** The same for Node's TLS `ca` (with `allowPartialTrustChain: true`). */
  readonly tlsCertificates: readonly string[];
  readonly revocation: RevocationLists;
  readonly #anchorFingerprints: ReadonlySet<string>;
  readonly #fingerprints: ReadonlySet<string>;
  readonly #bySubject: ReadonlyMap<string, readonly Certificate[]>;
  /** Verified signatures between our CA certificates. */
  readonly #links: ReadonlySet<string>;
  /** Validated paths by the end entity's fingerprint, least recently used first. */
  readonly #paths = new Map<string, readonly Certificate[]>();
  readonly #learned: () => readonly Certificate[];
  readonly #proxies: readonly Certificate[];

  private constructor(
    anchors: readonly Certificate[],
    intermediates: readonly Certificate[],
    revocation: RevocationLists,
    links: ReadonlySet<string>,
    { learned = () => [], proxies = [] }: Pick<ClientTrustInput, 'learned' | 'proxies'> = {},
  ) {
    this.#links = links;
    this.#learned = learned;
    this.#proxies = proxies;
    this.anchors = anchors;
    this.revocation = revocation;
    this.#anchorFingerprints = new Set(anchors.map(({ fingerprint }) => fingerprint));
    this.certificates = [...anchors, ...intermediates];
    this.#fingerprints = new Set(this.certificates.map(({ fingerprint }) => fingerprint));
    this.#bySubject = Map.groupBy(this.certificates, ({ subject }) => foldedName(subject));
    this.tlsCertificates = this.certificates.map((certificate) => pemOf([certificate]));
  }

  static async create(input: ClientTrustInput): Promise<ClientTrust> {
    const { crls: sources = [], crlsIncomplete: isIncomplete = false, before, own = [], learned = () => [] } = input;
    const isOwn = (issuer: Certificate): boolean => [...own, ...learned()].some((ca) => isSameCa(ca, issuer));
    const anchors = [...new Map(input.anchors.map((anchor) => [anchor.fingerprint, anchor])).values()];
    const known = new Set(anchors.map(({ fingerprint }) => fingerprint));
    const helpers = (input.intermediates ?? []).map(parseCertificate).filter(({ fingerprint }) => {
      const fresh = !known.has(fingerprint);
      known.add(fingerprint);
      return fresh;
    });
    const lists = { sources: [], issuers: [], anchors, isIncomplete: false, isOwn };
    const candidates = new ClientTrust(anchors, helpers, await RevocationLists.load(lists), new Set());
    const trusted: Certificate[] = [];
    const paths = anchors.map((anchor): readonly Certificate[] => [anchor]);
    const links = new Set<string>();
    for (const helper of helpers) {
      const found = await findPath(helper, candidates.issuers([]), undefined, true);
      if (!('path' in found)) continue;
      trusted.push(helper);
      paths.push(found.path);
      for (const [i, issuer] of found.path.slice(1).entries()) links.add(linkOf(found.path[i] ?? helper, issuer));
    }
    const revocation = await RevocationLists.load({ ...lists, sources, issuers: paths, isIncomplete, before });
    return new ClientTrust(anchors, trusted, revocation, links, input);
  }

  isAnchor(certificate: Certificate): boolean {
    return this.#anchorFingerprints.has(certificate.fingerprint);
  }

  isProxy(certificate: Certificate): boolean {
    return this.#proxies.some((proxy) => isSameCertificate(proxy, certificate));
  }

  /** Whether it is an anchor, or one of our intermediates that chain to one. */
  has({ fingerprint }: Certificate): boolean {
    return this.#fingerprints.has(fingerprint);
  }

  /** Candidate issuers in order: anchors, our intermediates, then those from the client or a remote CA. */
  issuers(presented: readonly Certificate[]): IssuerSource {
    const sent = Map.groupBy([...presented, ...this.#learned()], ({ subject }) => foldedName(subject));
    return {
      isAnchor: (certificate) => this.isAnchor(certificate),
      bySubject: (name) => [...(this.#bySubject.get(name) ?? []), ...(sent.get(name) ?? [])],
      isKnownLink: (subject, issuer) => this.#links.has(linkOf(subject, issuer)),
    };
  }

  /** A validated path; the caller checks validity dates and revocation. */
  cachedPath(fingerprint: string): readonly Certificate[] | undefined {
    const path = this.#paths.get(fingerprint);
    if (path === undefined) return undefined;
    this.#paths.delete(fingerprint);
    this.#paths.set(fingerprint, path);
    return path;
  }

  cachePath(path: readonly Certificate[]): void {
    const fingerprint = path[0]?.fingerprint;
    if (fingerprint === undefined) return;
    this.#paths.delete(fingerprint);
    this.#paths.set(fingerprint, path);
    const [oldest] = this.#paths.keys();
    if (this.#paths.size > CACHED_PATHS && oldest !== undefined) this.#paths.delete(oldest);
  }
}

const linkOf = (subject: Certificate, issuer: Certificate): string => `${subject.fingerprint} ${issuer.fingerprint}`;
