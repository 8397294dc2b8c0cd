/** Decides whose certificates authenticate at a CA's label (`client_issuers`). It only filters; it never adds trust. */
import type { Certificate } from '../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../pki/x509/name-matching.ts';

/** The CA that the list belongs to. */
interface AddressedCa {
  readonly certificate: Certificate;
  readonly renewalIssuers: readonly Certificate[];
  /** Whether {@link counts} decides alone. */
  readonly ownIsRecorded: boolean;
  /** Whether a certificate from this signer belongs to the label. @throws EstuaryError 500 or 503 */
  counts(certificate: Certificate, signer: Certificate): Promise<boolean>;
}

interface KnownCa {
  /** The CA's certificate, those above it, and rollover certificates. @throws EstuaryError 503 while unknown */
  readonly certificates: readonly Certificate[];
  /** CAs whose certificates may be renewed here. */
  readonly renewalIssuers: readonly Certificate[];
}

interface ClientIssuersOptions {
  /** `own`, `anchors`, `any`, or file names. */
  readonly list: readonly string[];
  readonly certificates: readonly Certificate[];
  readonly all: () => readonly KnownCa[];
}

export class ClientIssuers {
  readonly #ca: AddressedCa;
  readonly #options: ClientIssuersOptions;
  /** Results per anchor; a reload creates new anchor objects. */
  readonly #above = new WeakMap<Certificate, Promise<boolean>>();

  constructor(ca: AddressedCa, options: ClientIssuersOptions) {
    this.#ca = ca;
    this.#options = options;
  }

  get certificates(): readonly Certificate[] {
    return this.#options.certificates;
  }

  /**
   * Whether a client certificate with this path is accepted.
   * @param path validated, from the client's certificate to the trust anchor
   * @throws EstuaryError 503 while a remote CA is unknown
   */
  async accept(path: readonly Certificate[]): Promise<boolean> {
    const { list, certificates } = this.#options;
    if (list.includes('any')) return true;
    if (list.includes('own') && (await this.#isOwn(path))) return true;
    if (isOneOf(path.slice(1), certificates)) return true;
    return list.includes('anchors') && (await this.#isUnderForeignAnchor(path));
  }

  /**
   * Whether the path leads to a CA of this server: any label, current or former key, or `renewal_issuers`.
   * @throws EstuaryError 503 while a remote CA is unknown
   */
  isOfThisServer(path: readonly Certificate[]): boolean {
    return this.#options.all().some(({ certificates: [own, ...further], renewalIssuers }) => {
      if (own === undefined) return false;
      const keys = further.filter(({ subject }) => namesMatch(subject, own.subject));
      return isOneOf(path, [own, ...keys, ...renewalIssuers]);
    });
  }

  async #isOwn([certificate, signer]: readonly Certificate[]): Promise<boolean> {
    if (certificate === undefined || signer === undefined) return false;
    if (this.#ca.ownIsRecorded) return this.#ca.counts(certificate, signer);
    return (
      isOneOf([signer], [this.#ca.certificate, ...this.#ca.renewalIssuers]) && this.#ca.counts(certificate, signer)
    );
  }

  /**
   * Whether the anchor and all CAs on the path are foreign: not a CA of this server, nor above one. This keeps the
   * certificates of one label out of another.
   */
  async #isUnderForeignAnchor(path: readonly Certificate[]): Promise<boolean> {
    const anchor = path.at(-1);
    const own = this.#options.all().flatMap(({ certificates, renewalIssuers }) => [...certificates, ...renewalIssuers]);
    if (anchor === undefined || isOneOf(path, own)) return false;
    let above = this.#above.get(anchor);
    if (above === undefined) {
      above = isAbove(anchor, own);
      this.#above.set(anchor, above);
    }
    return !(await above);
  }
}

/** Whether a certificate of the path is one of these CAs, by name and key. */
function isOneOf(path: readonly Certificate[], cas: readonly Certificate[]): boolean {
  return path.some((certificate) =>
    cas.some((ca) => namesMatch(ca.subject, certificate.subject) && ca.spki.equals(certificate.spki)),
  );
}

async function isAbove(anchor: Certificate, own: readonly Certificate[]): Promise<boolean> {
  for (const certificate of own) if (await isIssuedBy(certificate, anchor)) return true;
  return false;
}
