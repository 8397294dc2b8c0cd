/** Whose certificates authenticate at a CA's label: `client_issuers`. It filters, and never adds trust. */
import type { Certificate } from '../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../pki/x509/name-matching.ts';

/** The CA whose list it is. */
interface AddressedCa {
  readonly certificate: Certificate;
  readonly renewalIssuers: readonly Certificate[];
  /** Whether {@link counts} alone decides. */
  readonly ownIsRecorded: boolean;
  /** Whether a certificate that one of these has signed is this label's. @throws EstuaryError 500 or 503 */
  counts(certificate: Certificate, signer: Certificate): Promise<boolean>;
}

/** A CA of this server. */
interface KnownCa {
  /** Its own certificate first, then those above it and of its rollovers. @throws EstuaryError 503 while it is not known */
  readonly certificates: readonly Certificate[];
  /** CAs whose certificates it renews. */
  readonly renewalIssuers: readonly Certificate[];
}

interface ClientIssuersOptions {
  /** `client_issuers`: `own`, `anchors`, `any`; what else stands there names files. */
  readonly list: readonly string[];
  /** What those files hold. */
  readonly certificates: readonly Certificate[];
  /** All CAs of this server. */
  readonly all: () => readonly KnownCa[];
}

export class ClientIssuers {
  readonly #ca: AddressedCa;
  readonly #options: ClientIssuersOptions;
  /** What was found out about an anchor; a reload brings new ones. */
  readonly #above = new WeakMap<Certificate, Promise<boolean>>();

  constructor(ca: AddressedCa, options: ClientIssuersOptions) {
    this.#ca = ca;
    this.#options = options;
  }

  /** What the files in the list contain. */
  get certificates(): readonly Certificate[] {
    return this.#options.certificates;
  }

  /**
   * Whether a certificate with this path counts here.
   *
   * @param path validated, the client's certificate first, the trust anchor last
   * @throws EstuaryError 503 while a CA elsewhere is not known
   */
  async accept(path: readonly Certificate[]): Promise<boolean> {
    const { list, certificates } = this.#options;
    if (list.includes('any')) return true;
    if (list.includes('own') && (await this.#isOwn(path))) return true;
    if (isOneOf(path.slice(1), certificates)) return true;
    return list.includes('anchors') && (await this.#isUnderForeignAnchor(path));
  }

  /**
   * Whether a certificate with this path is under a CA of this server: of any label, with its present or a former key, or one of
   * `renewal_issuers`.
   *
   * @throws EstuaryError 503 while a CA elsewhere is not known
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
   * Under an anchor that is no CA of this server and not above one; nor is any CA in between, whichever way the path goes. So the
   * certificates of one label stay out of another.
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

/** Whether a certificate of the path is one of these CAs', by name and key. */
function isOneOf(path: readonly Certificate[], cas: readonly Certificate[]): boolean {
  return path.some((certificate) =>
    cas.some((ca) => namesMatch(ca.subject, certificate.subject) && ca.spki.equals(certificate.spki)),
  );
}

async function isAbove(anchor: Certificate, own: readonly Certificate[]): Promise<boolean> {
  for (const certificate of own) if (await isIssuedBy(certificate, anchor)) return true;
  return false;
}
