/** Label → CA, or one of the ways to it (docs/labels.md). */
import type { CaConfig, ProfileConfig } from '../config/schema.ts';
import { failed, notFound, unavailable } from '../errors.ts';
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import type { Name } from '../pki/x509/name.ts';
import { looksLike } from '../pki/x509/subject-names.ts';
import type { CertificateRow } from '../store/certificate-store.ts';
import { ClientIssuers } from './client-issuers.ts';
import { CsrAttributes } from './csr-attributes.ts';
import type { CaDriver } from './driver.ts';
import { LabelBoundary, type IssuedCertificates } from './label-boundary.ts';

/** What a CA is made with beside its table and its driver. */
interface CaSurroundings {
  /** Further CAs whose certificates may be renewed here. */
  readonly renewalIssuers?: readonly Certificate[];
  /** `est.require_pop_linking`. */
  readonly popLinking?: boolean;
  /** What the files in `client_issuers` hold. */
  readonly clientIssuers?: readonly Certificate[];
  /** All CAs of this server; absent: this one. */
  readonly all?: () => readonly Ca[];
  /** Of a further label: the CA whose key signs; absent: it is that CA itself. */
  readonly issuer?: Ca | undefined;
  /** What tells one label's certificates from another's; absent: nothing has to. */
  readonly issued?: IssuedCertificates | undefined;
}

/** A certificate authority as requests meet it: under its own label, or under a further one with a profile and rules of its own. */
export class Ca {
  readonly label: string;
  /** Serves requests without a label. */
  readonly isDefault: boolean;
  readonly driver: CaDriver;
  /** The CA whose serial numbers, certificates, CRL and OCSP these are: itself, unless this is a further label. */
  readonly issuer: Ca;
  readonly profile: ProfileConfig;
  readonly config: CaConfig;
  /** Further CAs whose certificates may be renewed here. */
  readonly renewalIssuers: readonly Certificate[];
  readonly csrAttributes: CsrAttributes;
  /** Whose certificates authenticate here. */
  readonly clientIssuers: ClientIssuers;
  #certificate: Certificate | undefined;
  #certificates: readonly Certificate[] = [];
  readonly #boundary: LabelBoundary | undefined;
  readonly #all: () => readonly Ca[];

  constructor(config: CaConfig, driver: CaDriver, surroundings: CaSurroundings = {}) {
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

  /** Where its certificates stand in the store. */
  get issuedUnder(): Pick<CertificateRow, 'ca' | 'label'> {
    return { ca: this.issuer.label, label: this.label === this.issuer.label ? null : this.label };
  }

  /** Whether a certificate of the CA was asked for at this label. */
  hasIssued({ ca, label }: Pick<CertificateRow, 'ca' | 'label'>): boolean {
    const own = this.issuedUnder;
    return ca === own.ca && label === own.label;
  }

  /**
   * Whether certificates are this label's own by the store's record alone. The CA of a remote driver certifies for others too, and its
   * issuing certificate may change with each answer.
   */
  get ownIsRecorded(): boolean {
    return this.driver.remoteQueue !== undefined;
  }

  /** Whether the store has recorded this certificate for the label. @throws EstuaryError 500 or 503 when the store cannot say */
  hasRecorded(certificate: Certificate): Promise<boolean> {
    return this.#boundary?.hasRecorded(certificate) ?? Promise.resolve(false);
  }

  /**
   * Whether a certificate counts as this label's own: other labels' of the same CA do not.
   *
   * @param signer the CA, or that one of `renewalIssuers`, that has signed it
   * @throws EstuaryError 500 or 503 when the store cannot say
   */
  counts(certificate: Certificate, signer: Certificate): Promise<boolean> {
    const isOfOwnKey = signer.spki.equals(this.certificate.spki);
    return this.#boundary?.admits(certificate, signer, isOfOwnKey) ?? Promise.resolve(true);
  }

  /**
   * Whether a subject looks like that of a CA of this server, or of a CA above one: a certificate with it passes for the CA's. A CA
   * elsewhere that is not known yet has no name to compare with.
   */
  isSubjectOfCa(subject: Name): boolean {
    return this.#all().some((ca) => {
      const own = ca.driver.chain().length === 0 ? [] : ca.certificates;
      return [...own, ...ca.renewalIssuers].some((certificate) => looksLike(certificate.subject, subject));
    });
  }

  /** What cacerts answers, DER. @throws EstuaryError 503 while the driver does not know it */
  get chain(): readonly [Buffer, ...Buffer[]] {
    const [own, ...others] = this.driver.chain();
    if (own === undefined) throw unavailable('CA_UNAVAILABLE', `The CA "${this.label}" is not available.`);
    return [own, ...others];
  }

  /** The CA's own certificate, as the driver has it now. @throws EstuaryError 503 while the driver does not know it. */
  get certificate(): Certificate {
    const [der] = this.chain;
    if (this.#certificate?.der.equals(der) !== true) this.#certificate = parseCertificate(der);
    return this.#certificate;
  }

  /** The whole chain. @throws EstuaryError 503 while the driver does not know it. */
  get certificates(): readonly Certificate[] {
    const { chain } = this;
    const known = this.#certificates;
    if (known.length !== chain.length || chain.some((der, i) => known[i]?.der.equals(der) !== true))
      this.#certificates = chain.map(parseCertificate);
    return this.#certificates;
  }
}

/** The CAs of one configuration. */
interface Labels {
  readonly all: readonly Ca[];
  readonly issuers: readonly Ca[];
  readonly byLabel: ReadonlyMap<string, Ca>;
  readonly standard: Ca;
}

/** The CAs in force. A reload gives it others: who keeps it has to ask anew for each request. */
export class CaRouter {
  #labels: Labels;

  /** @throws EstuaryError 500 `CA_UNUSABLE` unless the labels differ and exactly one CA is the default. */
  constructor(cas: readonly Ca[]) {
    const byLabel = new Map(cas.map((ca) => [ca.label, ca]));
    if (byLabel.size !== cas.length) throw failed('CA_UNUSABLE', 'two CAs have the same label');
    const [standard, ...more] = cas.filter(({ isDefault }) => isDefault);
    if (standard === undefined || more.length > 0) throw failed('CA_UNUSABLE', 'exactly one CA must be the default');
    this.#labels = { all: cas, issuers: cas.filter((ca) => ca.issuer === ca), byLabel, standard };
  }

  /** Every label, in the order of the configuration; further labels follow their CA's own. */
  get all(): readonly Ca[] {
    return this.#labels.all;
  }

  /** The CAs themselves. */
  get issuers(): readonly Ca[] {
    return this.#labels.issuers;
  }

  /** Has the CAs of another one from now on. What has begun goes on with the CA that it has found. */
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
