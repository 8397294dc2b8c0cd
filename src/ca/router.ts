/** Maps labels to CAs, and certificates to labels (docs/guides/names.md). */
import type { CaTable } from '../config/schema/label.ts';
import type { ProfileConfig } from '../config/schema/profile.ts';
import { failed, notFound, unavailable } from '../errors.ts';
import { parseCertificate, type Certificate, isIssuedBy, isSameCa } from '../pki/x509/certificate.ts';
import { type Name, namesEqual, namesMatch } from '../pki/x509/name.ts';
import { looksLike } from '../pki/x509/subject-names.ts';
import { type CertificateRow, isRecordOf, type CertificateStore } from '../store/certificate-store.ts';
import { CsrAttributes } from './csr-attributes.ts';
import { type CaDriver, caOutOfService } from './driver.ts';

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
  /** Why it cannot issue: a file that it needs cannot be used. */
  readonly fault?: string | undefined;
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
  /** Why it cannot issue before a reload: a file that it needs cannot be used. */
  readonly fault: string | undefined;
  #certificate: Certificate | undefined;
  #certificates: readonly Certificate[] = [];
  /** What {@link #certificates} are. */
  #chain: readonly Buffer[] = [];
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
    this.fault = surroundings.fault;
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

  /** @throws EstuaryError 503 while a file that the label needs cannot be used */
  requireUsable(): void {
    if (this.fault !== undefined) throw caOutOfService(this.label, this.fault);
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
    // Only the record makes a remote CA's certificate its own, so its chain need not be known.
    const isOfOwnKey = !this.ownIsRecorded && signer.spki.equals(this.certificate.spki);
    return this.#boundary?.admits(certificate, signer, isOfOwnKey) ?? Promise.resolve(true);
  }

  /**
   * Whether a subject looks like that of a CA of this server or of one above it, so that its certificate could pass for
   * the CA's. A remote CA without a known certificate is skipped.
   */
  isSubjectOfCa(subject: Name): boolean {
    return this.#all().some(({ knownCertificates, renewalIssuers }) =>
      [...knownCertificates, ...renewalIssuers].some((certificate) => looksLike(certificate.subject, subject)),
    );
  }

  /** {@link certificates}, or none while a remote CA is unknown. */
  get knownCertificates(): readonly Certificate[] {
    return this.driver.chain().length === 0 ? [] : this.certificates;
  }

  /** Trust anchors below which its unconfirmed chain may be. */
  get unconfirmed(): readonly Certificate[] {
    return this.driver.unconfirmed?.() ?? [];
  }

  /**
   * Whether the store recorded this certificate for the label, while its chain is unknown or not valid: nothing can
   * verify it now.
   * @throws EstuaryError 500 or 503
   */
  async awaitsChain(certificate: Certificate, now: number): Promise<boolean> {
    const chain = this.knownCertificates;
    // Rollover certificates follow the root.
    const path = chain.slice(0, chain.findIndex(({ subject, issuer }) => namesEqual(subject, issuer)) + 1 || undefined);
    const isValid = path.every(({ notBefore, notAfter }) => notBefore.getTime() <= now && now <= notAfter.getTime());
    return (path.length === 0 || !isValid) && (await this.hasRecorded(certificate));
  }

  /** DER certificates for /cacerts. @throws EstuaryError 503 while unknown */
  get chain(): readonly [Buffer, ...Buffer[]] {
    const chain = this.driver.chain();
    if (!isKnown(chain)) throw unavailable('CA_UNAVAILABLE', `The CA "${this.label}" is not available.`);
    return chain;
  }

  /** The CA's current certificate. @throws EstuaryError 503 while unknown */
  get certificate(): Certificate {
    const [der] = this.chain;
    if (this.#certificate?.der.equals(der) !== true) this.#certificate = parseCertificate(der);
    return this.#certificate;
  }

  /** The CA's certificate, those above it, and rollover certificates. @throws EstuaryError 503 while unknown */
  get certificates(): readonly Certificate[] {
    const { chain } = this;
    if (chain !== this.#chain) {
      const known = this.#certificates;
      if (known.length !== chain.length || chain.some((der, i) => known[i]?.der.equals(der) !== true))
        this.#certificates = chain.map(parseCertificate);
      this.#chain = chain;
    }
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

/** The CA that the list belongs to. */
type AddressedCa = Pick<Ca, 'certificate' | 'renewalIssuers' | 'ownIsRecorded' | 'counts'>;

interface ClientIssuersOptions {
  /** `own`, `anchors`, `any`, or file names. */
  readonly list: readonly string[];
  readonly certificates: readonly Certificate[];
  /** The CAs of this server. */
  readonly all: () => readonly Pick<Ca, 'knownCertificates' | 'renewalIssuers' | 'unconfirmed'>[];
}

/** Decides whose certificates authenticate at a CA's label (`client_issuers`). It only filters; it never adds trust. */
export class ClientIssuers {
  readonly #ca: AddressedCa;
  readonly #options: ClientIssuersOptions;
  /** Results per anchor, and the CAs that they are about; a reload creates new anchor objects. */
  readonly #above = new WeakMap<
    Certificate,
    { readonly of: readonly Certificate[]; readonly isAbove: Promise<boolean> }
  >();

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
   * @throws EstuaryError 503 while this CA is unknown, or from the store
   */
  async accept(path: readonly Certificate[]): Promise<boolean> {
    const { list, certificates } = this.#options;
    if (list.includes('any')) return true;
    if (list.includes('own') && (await this.#isOwn(path))) return true;
    if (isOneOf(path.slice(1), certificates)) return true;
    return list.includes('anchors') && (await this.#isUnderForeignAnchor(path));
  }

  /**
   * Whether the path leads to a known CA of this server: any label, current or former key, or `renewal_issuers`.
   */
  isOfThisServer(path: readonly Certificate[]): boolean {
    return this.#options.all().some(({ knownCertificates, renewalIssuers }) => {
      const [own] = knownCertificates;
      if (own === undefined) return false;
      const isOwn = (certificate: Certificate): boolean =>
        namesMatch(certificate.subject, own.subject) && isOneOf([certificate], knownCertificates);
      return path.some(isOwn) || isOneOf(path, renewalIssuers);
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
   * certificates of one label out of another. What is below the anchors of an unconfirmed CA may be its own.
   */
  async #isUnderForeignAnchor(path: readonly Certificate[]): Promise<boolean> {
    const anchor = path.at(-1);
    const all = this.#options.all();
    const unconfirmed = all.flatMap((ca) => ca.unconfirmed);
    const own = all.flatMap(({ knownCertificates, renewalIssuers }) => [...knownCertificates, ...renewalIssuers]);
    const of = [...own, ...unconfirmed];
    if (anchor === undefined || isOneOf(path, of)) return false;
    const known = this.#above.get(anchor);
    // A chain that becomes known or changes counts at once.
    if (known?.of.length === of.length && known.of.every((certificate, index) => certificate === of[index]))
      return !(await known.isAbove);
    const isOwn = isAbove(anchor, own).then(async (above) => above || (await isBelow(anchor, unconfirmed)));
    this.#above.set(anchor, { of, isAbove: isOwn });
    return !(await isOwn);
  }
}

const isKnown = (chain: readonly Buffer[]): chain is readonly [Buffer, ...Buffer[]] => chain.length > 0;

/** Whether a certificate of the path is one of these CAs, by name and key. */
function isOneOf(path: readonly Certificate[], cas: readonly Certificate[]): boolean {
  return path.some((certificate) => cas.some((ca) => isSameCa(ca, certificate)));
}

async function isAbove(anchor: Certificate, own: readonly Certificate[]): Promise<boolean> {
  for (const certificate of own) if (await isIssuedBy(certificate, anchor)) return true;
  return false;
}

async function isBelow(anchor: Certificate, issuers: readonly Certificate[]): Promise<boolean> {
  for (const issuer of issuers) if (await isIssuedBy(anchor, issuer)) return true;
  return false;
}

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

/**
 * Assigns certificates to labels that share a CA key (docs/guides/names.md). The key is the same, so the store must know
 * where each certificate was requested.
 */
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
