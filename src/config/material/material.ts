/**
 * What stands in the files that a configuration names: certificates, private keys, trust anchors and CRLs, read, parsed and checked
 * in one place (load-material.ts), for the start, `--check` and every reload. Nobody else reads those files.
 */
import type { KeyObject } from 'node:crypto';
import type { CaChain } from '../../pki/x509/ca-chain.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { CertificateList } from '../../pki/x509/crl.ts';
import type {
  AcmeCaConfig,
  CaConfig,
  CommandCaConfig,
  DogtagCaConfig,
  EstCaConfig,
  FileCaConfig,
  Pkcs11CaConfig,
} from '../schema.ts';

export type Certificates = readonly [Certificate, ...Certificate[]];

/** Certificates, and the private key of the first. */
export interface KeyPair {
  /** The key's own first, then those above it, as far as the file has them. */
  readonly certificates: Certificates;
  readonly privateKey: KeyObject;
}

/** A CRL, and its file's name for messages. Whose it is has not been looked at. */
export interface NamedCrl {
  readonly name: string;
  readonly list: CertificateList;
}

/** Whom a listener takes client certificates from. */
export interface TrustMaterial {
  readonly anchors: Certificates;
  readonly crls: readonly NamedCrl[];
}

/** A CA's own certificate, and what cacerts has beside it. */
export interface CaCertificates {
  readonly certificate: Certificate;
  /** Those above it, root last. */
  readonly issuers: readonly Certificate[];
  /** Those of rollovers. */
  readonly rollover: readonly Certificate[];
}

/** Of any CA. */
export interface EveryCaMaterial {
  /** `[ca.profile] renewal_issuers`. */
  readonly renewalIssuers: readonly Certificate[];
  /** What the files in `client_issuers` hold. */
  readonly clientIssuers: readonly Certificate[];
  /** `[ca.authorization]`. */
  readonly authorization: ServiceMaterial | undefined;
}

/** What a service is called with. */
export interface ServiceMaterial {
  /** undefined: the CAs that Node.js knows. */
  readonly trustAnchors: Certificates | undefined;
  /** What it is shown; undefined: nothing. */
  readonly client: KeyPair | undefined;
}

/** Of a CA whose key is ours, whatever holds it. */
export interface OwnCaMaterial extends EveryCaMaterial {
  readonly certificates: CaCertificates;
  /** `[ca.ocsp]`. */
  readonly ocsp: KeyPair | undefined;
}

export interface FileCaMaterial extends OwnCaMaterial {
  readonly driver: 'file';
  readonly table: FileCaConfig;
  readonly privateKey: KeyObject;
}

export interface Pkcs11CaMaterial extends OwnCaMaterial {
  readonly driver: 'pkcs11';
  readonly table: Pkcs11CaConfig;
}

export interface DogtagCaMaterial extends EveryCaMaterial {
  readonly driver: 'dogtag';
  readonly table: DogtagCaConfig;
  /** What the CA has to be; undefined: what it says it is. */
  readonly certificates: CaCertificates | undefined;
  readonly trustAnchors: Certificates;
  /** The agent's. */
  readonly client: KeyPair;
}

/** Of a CA to which the device's CSR is submitted. */
export interface UpstreamCaMaterial extends EveryCaMaterial {
  readonly driver: 'est' | 'acme' | 'command';
  readonly table: EstCaConfig | AcmeCaConfig | CommandCaConfig;
  /** Not known before the upstream says so. */
  readonly certificates: undefined;
  /** Its certificates must lead to one of these. */
  readonly upstreamAnchors: Certificates;
  /** `chain`: the certificates that are known from the start. */
  readonly chain: readonly Certificate[];
  /** Behind the TLS certificate of its server; undefined: the CAs that Node.js knows. */
  readonly trustAnchors: Certificates | undefined;
  /** What its server is shown. */
  readonly client: KeyPair | undefined;
  /** The key of the ACME account. */
  readonly accountKey: KeyObject | undefined;
}

/** A `[[ca]]` table with its files. */
export type CaMaterial = FileCaMaterial | Pkcs11CaMaterial | DogtagCaMaterial | UpstreamCaMaterial;

/** A `[[label]]` table with its files. */
export interface LabelMaterial extends EveryCaMaterial {
  /** Its own profile and rules, on the CA's key. */
  readonly table: CaConfig;
}

/** Proxies that forward client certificates. */
export interface ProxyMaterial {
  readonly certificates: Certificates;
  /** Of the clients. */
  readonly intermediates: readonly Certificate[];
}

export interface CmcMaterial {
  /** Who signs PKI responses; undefined: each CA for itself. */
  readonly responder: KeyPair | undefined;
  readonly raCertificates: readonly Certificate[];
}

export interface Material {
  /** Of the EST listener; undefined: the service gets one from a CA of its own (`tls.automatic`). */
  readonly tls: KeyPair | undefined;
  /** Of the admin listener: its own, or the EST listener's. */
  readonly adminTls: KeyPair | undefined;
  /** undefined: no client certificate is verified. */
  readonly clientTrust: TrustMaterial | undefined;
  readonly adminTrust: TrustMaterial | undefined;
  /** Of `[[serverkeygen.keys]]`, by the lower-case hex of the identifier. */
  readonly keyEncryption: ReadonlyMap<string, Certificate>;
  readonly cmc: CmcMaterial;
  /** Of `audit.checkpoint_key`. */
  readonly checkpointKey: KeyObject | undefined;
  /** `[store.tls]`; undefined: TLS is not spoken with the database. */
  readonly storeTls: ServiceMaterial | undefined;
  /** `[est.client_certificate_header]`. */
  readonly proxies: ProxyMaterial | undefined;
  /** `[auth.ldap]`; undefined: the method is off. */
  readonly directory: ServiceMaterial | undefined;
  /** `[auth.jwt]`. */
  readonly tokenIssuer: ServiceMaterial | undefined;
  /** In the order of the configuration. */
  readonly cas: readonly CaMaterial[];
  /** The CAs' further labels, by the label of the CA. */
  readonly labels: ReadonlyMap<string, readonly LabelMaterial[]>;
}

/** A chain as {@link CaCertificates}. */
export function caCertificates({ path, rollover }: CaChain): CaCertificates {
  const [certificate, ...issuers] = path;
  return { certificate, issuers, rollover };
}
