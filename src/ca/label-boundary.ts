/**
 * Assigns certificates to labels that share a CA key (docs/guides/names.md). The key is the same, so the store must know
 * where each certificate was requested.
 */
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { isRecordOf, type CertificateStore } from '../store/certificate-store.ts';

export interface IssuedCertificates {
  readonly store: Pick<CertificateStore, 'getCertificates' | 'hasOtherLabels'>;
  /** Whether the CA has further labels. */
  readonly isShared: boolean;
}

interface LabelBoundaryOptions extends IssuedCertificates {
  readonly ca: string;
  readonly labels: readonly string[];
  /** The CA is remote and may issue for others too: only recorded certificates count. */
  readonly isRemote: boolean;
}

export class LabelBoundary {
  readonly #options: LabelBoundaryOptions;
  /** Whether labels must be distinguished; undefined until known. */
  #isNeeded: boolean | undefined;

  constructor(options: LabelBoundaryOptions) {
    this.#options = options;
    if (options.isShared || options.isRemote) this.#isNeeded = true;
  }

  /**
   * Whether a certificate belongs to this label, by issuer and serial number.
   * @param issuer the CA or one of `renewal_issuers`, whose key signed it
   * @param isOfOwnKey signed with the CA's current key: the store must know it, because it may belong to another label.
   * Certificates of `renewal_issuers` are accepted without a record.
   * @throws EstuaryError 500 or 503 if the store is unavailable
   */
  async admits(certificate: Certificate, issuer: Certificate, isOfOwnKey: boolean): Promise<boolean> {
    const { store, ca, labels, isRemote } = this.#options;
    // Certificates of a label that was removed from the configuration still do not belong to other labels.
    this.#isNeeded ??= await store.hasOtherLabels(ca);
    if (!this.#isNeeded) return true;
    for (const row of await store.getCertificates(certificate.serialNumber, ca))
      if (await isRecordOf(row, { certificate, issuer })) return labels.includes(row.label ?? row.ca);
    return !isOfOwnKey && !isRemote;
  }

  /**
   * Whether the store recorded this certificate for one of the labels.
   * @throws EstuaryError 500 or 503 if the store is unavailable
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
