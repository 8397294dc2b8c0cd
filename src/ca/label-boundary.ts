/**
 * Which certificates of a CA are which label's, where several labels share its key (docs/labels.md). The key cannot tell, so the store
 * has to: it knows where each was asked for.
 */
import type { Certificate } from '../pki/x509/certificate.ts';
import { isOfIssuer } from '../store/certificate-issuer.ts';
import type { CertificateStore } from '../store/certificate-store.ts';

/** What tells one label's certificates from another's. */
export interface IssuedCertificates {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'hasOtherLabels'>;
  /** Whether the configuration has further labels on the CA. */
  readonly isShared: boolean;
}

export interface LabelBoundaryOptions extends IssuedCertificates {
  /** The label of the CA. */
  readonly ca: string;
  /** Those whose certificates count. */
  readonly labels: readonly string[];
}

export class LabelBoundary {
  readonly #options: LabelBoundaryOptions;
  /** Whether there is anything to tell apart, once it is known. */
  #isNeeded: boolean | undefined;

  constructor(options: LabelBoundaryOptions) {
    this.#options = options;
    if (options.isShared) this.#isNeeded = true;
  }

  /**
   * Whether a certificate counts at this label. Looked up by issuer and serial number, as revocation is.
   *
   * @param isOfOwnKey it was signed with the CA's present key, so that the store has to know it: a certificate of which nobody knows where
   *   it was asked for may be another label's. One of a `renewal_issuers` the configuration has let in by its CA
   * @throws EstuaryError 500 or 503 when the store cannot say
   */
  async admits(certificate: Certificate, isOfOwnKey: boolean): Promise<boolean> {
    const { store, ca, labels } = this.#options;
    // What is in the store of a label that the configuration has no more is still no other label's.
    this.#isNeeded ??= await store.hasOtherLabels(ca);
    if (!this.#isNeeded) return true;
    const rows = await store.getCertificates(certificate.serialNumber, ca);
    const known = rows.find((row) => isOfIssuer(row, certificate.issuer));
    return known === undefined ? !isOfOwnKey : labels.includes(known.label ?? known.ca);
  }
}
