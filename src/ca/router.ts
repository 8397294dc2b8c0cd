/** Maps labels to CAs (docs/guides/names.md). */
import type { CaTable } from '../config/schema/label.ts';
import type { ProfileConfig } from '../config/schema/profile.ts';
import { failed, notFound, unavailable } from '../errors.ts';
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import type { Name } from '../pki/x509/name.ts';
import { looksLike } from '../pki/x509/subject-names.ts';
import type { CertificateRow } from '../store/certificate-store.ts';
import { ClientIssuers } from './client-issuers.ts';
import { CsrAttributes } from './csr-attributes.ts';
import type { CaDriver } from './driver.ts';
import { LabelBoundary, type IssuedCertificates } from './label-boundary.ts';

interface CaSurroundings {
  /** Further CAs whose certificates may be renewed here. */
  readonly renewalIssuers?: readonly Certificate[];
  /** `est.require_pop_linking`. */
  readonly popLinking?: boolean;
  /** Certificates from the files in `client_issuers`. */
  readonly clientIssuers?: readonly Certificate[];
  /** All CAs of this server; default: this one. */
  readonly all?: () => readonly Ca[];
  /** For a further label: the CA whose key signs. */
  readonly issuer?: Ca | undefined;
  /** Distinguishes certificates of labels; if absent, all belong to this one. */
  readonly issued?: IssuedCertificates | undefined;
}

/** A certificate authority under a label: its own, or a further label with its own profile and rules. */
export class Ca {
  readonly label: string;
  /** Serves requests without a label. */
  readonly isDefault: boolean;
  readonly driver: CaDriver;
  /** The CA of the serial numbers, certificates, CRL and OCSP: itself, except for a further label. */
  readonly issuer: Ca;
  readonly profile: ProfileConfig;
  readonly config: CaTable;
  /** Further CAs whose certificates may be renewed here. */
  readonly renewalIssuers: readonly Certificate[];
  readonly csrAttributes: CsrAttributes;
  /** Whose certificates authenticate here. */
  readonly clientIssuers: ClientIssuers;
  #certificate: Certificate | undefined;
  #certificates: readonly Certificate[] = [];
  readonly #boundary: LabelBoundary | undefined;
  readonly #all: () => readonly Ca[];

  constructor(config: CaTable, driver: CaDriver, surroundings: CaSurroundings = {}) {
    const { renewalIssuers = [], popLinking = false, clientIssuers = [], all = () => [this], issued } = surroundings;
    this.label = config.label;
    this.issuer = surroundings.issuer ?? this;
    this.isDefault = config.default;
    this.profile = config.profile;
    this.config = config;
    this.driver = driver;
    this.csrAttributes = new CsrAttributes(config.csrattrs, popLinking);
    this.renewalIssuers = renewalIssuers;
    this.#all = all;
    this.#boundary =
      issued &&
      new LabelBoundary({
        ...issued,
        ca: this.issuer.label,
        labels: [this.label, ...(config.profile.renewal_labels ?? [])],
        isRemote: driver.remoteQueue !== undefined,
      });
    this.clientIssuers = new ClientIssuers(this, { list: config.client_issuers, certificates: clientIssuers, all });
  }

  get issuedUnder(): Pick<CertificateRow, 'ca' | 'label'> {
    return { ca: this.issuer.label, label: this.label === this.issuer.label ? null : this.label };
  }

  /** Whether a certificate of the CA was requested at this label. */
  hasIssued({ ca, label }: Pick<CertificateRow, 'ca' | 'label'>): boolean {
    const own = this.issuedUnder;
    return ca === own.ca && label === own.label;
  }

  /**
   * Whether only the store's record makes a certificate this label's own. A remote CA also certifies for others, and
   * its issuing certificate may change at any time.
   */
  get ownIsRecorded(): boolean {
    return this.driver.remoteQueue !== undefined;
  }

  /** Whether the store recorded this certificate for the label. @throws EstuaryError 500 or 503 */
  hasRecorded(certificate: Certificate): Promise<boolean> {
    return this.#boundary?.hasRecorded(certificate) ?? Promise.resolve(false);
  }

  /**
   * Whether a certificate is this label's own; those of the CA's other labels are not.
   * @param signer the CA or one of `renewalIssuers`, which signed it
   * @throws EstuaryError 500 or 503 if the store is unavailable
   */
  counts(certificate: Certificate, signer: Certificate): Promise<boolean> {
    const isOfOwnKey = signer.spki.equals(this.certificate.spki);
    return this.#boundary?.admits(certificate, signer, isOfOwnKey) ?? Promise.resolve(true);
  }

  /**
   * Whether a subject looks like that of a CA of this server or of one above it, so that its certificate could pass for
   * the CA's. A remote CA without a known certificate is skipped.
   */
  isSubjectOfCa(subject: Name): boolean {
    return this.#all().some((ca) => {
      const own = ca.driver.chain().length === 0 ? [] : ca.certificates;
      return [...own, ...ca.renewalIssuers].some((certificate) => looksLike(certificate.subject, subject));
    });
  }

  /** DER certificates for /cacerts. @throws EstuaryError 503 while unknown */
  get chain(): readonly [Buffer, ...Buffer[]] {
    const [own, ...others] = this.driver.chain();
    if (own === undefined) throw unavailable('CA_UNAVAILABLE', `The CA "${this.label}" is not available.`);
    return [own, ...others];
  }

  /** The CA's current certificate. @throws EstuaryError 503 while unknown */
  get certificate(): Certificate {
    const [der] = this.chain;
    if (this.#certificate?.der.equals(der) !== true) this.#certificate = parseCertificate(der);
    return this.#certificate;
  }

  /** @throws EstuaryError 503 while unknown */
  get certificates(): readonly Certificate[] {
    const { chain } = this;
    const known = this.#certificates;
    if (known.length !== chain.length || chain.some((der, i) => known[i]?.der.equals(der) !== true))
      this.#certificates = chain.map(parseCertificate);
    return this.#certificates;
  }
}

interface Labels {
  readonly all: readonly Ca[];
  readonly issuers: readonly Ca[];
  readonly byLabel: ReadonlyMap<string, Ca>;
  readonly standard: Ca;
}

/** The CAs in force. A reload replaces them, so look them up for each request. */
export class CaRouter {
  #labels: Labels;

  /** @throws EstuaryError 500 `CA_UNUSABLE` unless labels are unique and exactly one CA is the default */
  constructor(cas: readonly Ca[]) {
    const byLabel = new Map(cas.map((ca) => [ca.label, ca]));
    if (byLabel.size !== cas.length) throw failed('CA_UNUSABLE', 'two CAs have the same label');
    const [standard, ...more] = cas.filter(({ isDefault }) => isDefault);
    if (standard === undefined || more.length > 0) throw failed('CA_UNUSABLE', 'exactly one CA must be the default');
    this.#labels = { all: cas, issuers: cas.filter((ca) => ca.issuer === ca), byLabel, standard };
  }

  /** Every label in the configuration's order; further labels follow their CA. */
  get all(): readonly Ca[] {
    return this.#labels.all;
  }

  /** The CAs without further labels. */
  get issuers(): readonly Ca[] {
    return this.#labels.issuers;
  }

  /** Takes over the CAs of another router. Requests in progress continue with the CA that they found. */
  take(other: CaRouter): void {
    this.#labels = other.#labels;
  }

  /** @param label undefined: the default CA. @throws EstuaryError 404 UNKNOWN_LABEL */
  find(label: string | undefined): Ca {
    const ca = label === undefined ? this.#labels.standard : this.#labels.byLabel.get(label);
    if (ca === undefined) throw notFound('UNKNOWN_LABEL', 'There is no CA with this label.');
    return ca;
  }
}
