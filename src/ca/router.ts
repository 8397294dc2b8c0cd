/** Label → CA. */
import type { CaConfig, ProfileConfig } from '../config/schema.ts';
import { failed, notFound, unavailable } from '../errors.ts';
import { parseCertificate, type Certificate } from '../pki/x509/certificate.ts';
import { CsrAttributes } from './csr-attributes.ts';
import type { CaDriver } from './driver.ts';

/** A certificate authority as requests meet it. */
export class Ca {
  readonly label: string;
  /** Serves requests without a label. */
  readonly isDefault: boolean;
  readonly driver: CaDriver;
  readonly profile: ProfileConfig;
  readonly config: CaConfig;
  /** Further CAs whose certificates may be renewed here. */
  readonly renewalIssuers: readonly Certificate[];
  readonly csrAttributes: CsrAttributes;
  #certificate: Certificate | undefined;

  constructor(config: CaConfig, driver: CaDriver, renewalIssuers: readonly Certificate[] = [], popLinking = false) {
    this.label = config.label;
    this.isDefault = config.default;
    this.profile = config.profile;
    this.config = config;
    this.driver = driver;
    this.csrAttributes = new CsrAttributes(config.csrattrs, popLinking);
    this.renewalIssuers = renewalIssuers;
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
}

export class CaRouter {
  /** In the order of the configuration. */
  readonly all: readonly Ca[];
  readonly #byLabel: ReadonlyMap<string, Ca>;
  readonly #default: Ca;

  /** @throws EstuaryError 500 `CA_UNUSABLE` unless the labels differ and exactly one CA is the default. */
  constructor(cas: readonly Ca[]) {
    this.all = cas;
    this.#byLabel = new Map(cas.map((ca) => [ca.label, ca]));
    if (this.#byLabel.size !== cas.length) throw failed('CA_UNUSABLE', 'two CAs have the same label');
    const [first, ...more] = cas.filter(({ isDefault }) => isDefault);
    if (first === undefined || more.length > 0) throw failed('CA_UNUSABLE', 'exactly one CA must be the default');
    this.#default = first;
  }

  /** @param label undefined: the default CA. @throws EstuaryError 404 UNKNOWN_LABEL */
  find(label: string | undefined): Ca {
    const ca = label === undefined ? this.#default : this.#byLabel.get(label);
    if (ca === undefined) throw notFound('UNKNOWN_LABEL', 'There is no CA with this label.');
    return ca;
  }
}
