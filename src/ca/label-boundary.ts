/**
 * Which certificates of a CA are which label's, where several labels share its key (docs/labels.md). The key cannot tell, so the store
 * has to: it knows where each was asked for.
 */
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { isRecordOf } from '../store/certificate-issuer.ts';
import type { CertificateStore } from '../store/certificate-store.ts';

/** What tells one label's certificates from another's. */
export interface IssuedCertificates {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'hasOtherLabels'>;
  /** Whether the configuration has further labels on the CA. */
  readonly isShared: boolean;
}

interface LabelBoundaryOptions extends IssuedCertificates {
  /** The label of the CA. */
  readonly ca: string;
  /** Those whose certificates count. */
  readonly labels: readonly string[];
  /** The CA is elsewhere and may issue for others too: only certificates that the store has recorded count. */
  readonly isRemote: boolean;
}

export class LabelBoundary {
  readonly #options: LabelBoundaryOptions;
  /** Whether there is anything to tell apart, once it is known. */
  #isNeeded: boolean | undefined;

  constructor(options: LabelBoundaryOptions) {
    this.#options = options;
    if (options.isShared || options.isRemote) this.#isNeeded = true;
  }

  /**
   * Whether a certificate counts at this label. It is looked up by issuer and serial number.
   *
   * @param issuer whose key signed it: the CA, or one of `renewal_issuers`
   * @param isOfOwnKey it was signed with the CA's present key. The store then has to know it, because it may be another label's.
   *   The configuration accepts the certificates of `renewal_issuers` without that
   * @throws EstuaryError 500 or 503 if the store cannot answer
   */
  async admits(certificate: Certificate, issuer: Certificate, isOfOwnKey: boolean): Promise<boolean> {
    const { store, ca, labels, isRemote } = this.#options;
    // What is in the store of a label that the configuration has no more is still no other label's.
    this.#isNeeded ??= await store.hasOtherLabels(ca);
    if (!this.#isNeeded) return true;
    for (const row of await store.getCertificates(certificate.serialNumber, ca))
      if (await isRecordOf(row, { certificate, issuer })) return labels.includes(row.label ?? row.ca);
    return !isOfOwnKey && !isRemote;
  }

  /**
   * Whether the store has recorded this certificate for one of the labels.
   *
   * @throws EstuaryError 500 or 503 when the store cannot say
   */
  async hasRecorded({ serialNumber, tbs }: Certificate): Promise<boolean> {
    const { store, ca, labels } = this.#options;
    const rows = await store.getCertificates(serialNumber, ca);
    return rows.some(
      ({ der, ...row }) =>
        labels.includes(row.label ?? row.ca) && der.length > 0 && parseCertificate(der).tbs.equals(tbs),
    );
  }
}
