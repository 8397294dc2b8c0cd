/**
 * The content of configured files (certificates, private keys, trust anchors and CRLs), which load-material.ts reads,
 * parses and checks for the start, `--check` and every reload; and the expiry dates of the certificates.
 */
import type { KeyObject } from 'node:crypto';
import type { CaChain } from '../../pki/x509/ca-chain.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { CertificateList } from '../../pki/x509/crl.ts';
import { formatName } from '../../pki/x509/name.ts';
import type { CaTable } from '../schema/label.ts';
import type { Secret } from '../secret.ts';

export type Certificates = readonly [Certificate, ...Certificate[]];

/** Certificates, and the private key of the first. */
export interface KeyPair {
  /** The key's own first, then those above it in the file. */
  readonly certificates: Certificates;
  readonly privateKey: KeyObject;
}

/** A CA certificate with its chain, and its key if that is in a file. They change together. */
export interface CaIdentity {
  readonly certificates: CaCertificates;
  readonly privateKey: KeyObject | undefined;
}

/** What reading the files gave, for the next reload. */
export class FileMemory {
  readonly certificates = new Map<string, Certificates>();
  readonly keys = new Map<string, KeyObject>();
  readonly pairs = new Map<string, KeyPair>();
  readonly cas = new Map<string, CaIdentity>();
  readonly secrets = new Map<string, Secret>();
  /** Files that another component reads. */
  readonly seen = new Map<string, true>();
}

/** Where a file is kept: by its key and path, and by the key alone unless the key is a list. */
export function memoryIds(key: string, file: string): readonly string[] {
  const id = `${key.replace(/\[\d+\]/g, '[]')} ${file}`;
  return /\[\d+\]|client_issuers$/.test(key) ? [id] : [id, key];
}

/** A CRL with its file name for messages. Its issuer is not checked yet. */
export interface NamedCrl {
  readonly name: string;
  readonly list: CertificateList;
}

/** The trust settings of a listener. */
export interface TrustMaterial {
  readonly anchors: Certificates;
  /** undefined: none configured. */
  readonly crls: readonly NamedCrl[] | undefined;
  /** A CRL could not be read. */
  readonly crlsIncomplete: boolean;
}

export interface CaCertificates {
  readonly certificate: Certificate;
  /** Those above it, root last. */
  readonly issuers: readonly Certificate[];
  readonly rollover: readonly Certificate[];
}

export interface CommonCaMaterial {
  /** `[ca.profile] renewal_issuers`. */
  readonly renewalIssuers: readonly Certificate[];
  /** Certificates from the files in `client_issuers`. */
  readonly clientIssuers: readonly Certificate[];
  /** `[ca.authorization]`. */
  readonly authorization: ServiceMaterial | undefined;
  /** Why the label is out of service: a file that it needs cannot be used. */
  readonly fault?: string | undefined;
}

export interface ServiceMaterial {
  /** undefined: the CAs of Node.js. */
  readonly trustAnchors: Certificates | undefined;
  readonly client: KeyPair | undefined;
}

/** Of a local CA, whatever holds its key. */
export interface OwnCaMaterial extends Omit<CaMaterial, 'table'> {
  readonly certificates: CaCertificates;
  /** `[ca.ocsp]`. */
  readonly ocsp: KeyPair | undefined;
}

/** What a certificate of a CA's table is for, in metrics and warnings. */
type CaCertificateUse = (typeof CA_USES)[number];
const CA_USES = ['agent', 'dogtag_anchor', 'upstream_anchor', 'ocsp'] as const;

/** A `[[ca]]` table with its files. */
export interface CaMaterial extends CommonCaMaterial {
  readonly table: CaTable;
  /** The CA's own; undefined: as its server reports. */
  readonly certificates: CaCertificates | undefined;
  /** Further certificates whose expiry is reported. */
  readonly expiring: Readonly<Partial<Record<CaCertificateUse, readonly Certificate[]>>>;
}

/** A `[[label]]` table with its files. */
export interface LabelMaterial extends CommonCaMaterial {
  /** Its own profile and rules, with the CA's key. */
  readonly table: CaTable;
}

/** Proxies that forward client certificates. */
export interface ProxyMaterial {
  readonly certificates: Certificates;
  /** Of the clients. */
  readonly intermediates: readonly Certificate[];
}

export interface CmcMaterial {
  /** Signs PKI responses; undefined: each CA its own. */
  readonly responder: KeyPair | undefined;
  readonly raCertificates: readonly Certificate[];
}

export interface Material {
  /** Of the EST listener; undefined: issued by a CA of the service (`tls.automatic`). */
  readonly tls: KeyPair | undefined;
  /** Of the admin listener: its own, or the EST listener's. */
  readonly adminTls: KeyPair | undefined;
  /** undefined: client certificates are not verified. */
  readonly clientTrust: TrustMaterial | undefined;
  readonly adminTrust: TrustMaterial | undefined;
  /** Of `[[serverkeygen.keys]]`, by hex of the identifier. */
  readonly keyEncryption: ReadonlyMap<string, Certificate>;
  readonly cmc: CmcMaterial;
  /** Of `audit.checkpoint_key`. */
  readonly checkpointKey: KeyObject | undefined;
  /** `[store.tls]`; undefined: no TLS with the database. */
  readonly storeTls: ServiceMaterial | undefined;
  /** `[est.client_certificate_header]`. */
  readonly proxies: ProxyMaterial | undefined;
  /** `[auth.ldap]`; undefined: off. */
  readonly directory: ServiceMaterial | undefined;
  /** `[auth.jwt]`. */
  readonly tokenIssuer: ServiceMaterial | undefined;
  /** Of `[[notifications]]`, by name. */
  readonly receivers: ReadonlyMap<string, ServiceMaterial>;
  /** `[admin.oidc]`. */
  readonly openidProvider: ServiceMaterial | undefined;
  /** In the order of the configuration. */
  readonly cas: readonly CaMaterial[];
  /** Further labels by the CA's label. */
  readonly labels: ReadonlyMap<string, readonly LabelMaterial[]>;
  readonly memory: FileMemory;
}

/** A chain as {@link CaCertificates}. */
export function caCertificates({ path, rollover }: CaChain): CaCertificates {
  const [certificate, ...issuers] = path;
  return { certificate, issuers, rollover };
}

/** The key's own certificate; its issuer renews the others. */
export const firstOf = (pair: KeyPair | undefined): readonly Certificate[] =>
  pair === undefined ? [] : [pair.certificates[0]];

type CertificateUse =
  | CaCertificateUse
  | 'tls'
  | 'admin_tls'
  | 'ca'
  | 'client_anchor'
  | 'admin_anchor'
  | 'cmc'
  | 'store_client'
  | 'store_anchor'
  | 'renewal_issuer'
  | 'client_issuer'
  | 'ra'
  | 'key_encryption'
  | 'proxy'
  | 'service_client'
  | 'service_anchor';

export interface CertificateExpiry {
  readonly use: CertificateUse;
  /** Label of the CA that needs it; empty for listeners. */
  readonly ca: string;
  /** RFC 4514. */
  readonly subject: string;
  readonly serial: string;
  readonly notAfter: number;
}

/** All configured certificates, except the CAs' own, which their drivers report. */
export function certificateExpiries(material: Material): CertificateExpiry[] {
  const { tls, adminTls, clientTrust, adminTrust, cmc, cas, labels, storeTls } = material;
  const ends = (use: CertificateUse, certificates: readonly Certificate[] = [], ca = ''): CertificateExpiry[] =>
    certificates.map((certificate) => endOf({ use, ca }, certificate));
  const ofService = (service: ServiceMaterial | undefined, ca = ''): CertificateExpiry[] => [
    ...ends('service_client', firstOf(service?.client), ca),
    ...ends('service_anchor', service?.trustAnchors, ca),
  ];
  const services = [material.directory, material.tokenIssuer, material.openidProvider, ...material.receivers.values()];
  return [
    ...ends('tls', tls?.certificates),
    ...ends('client_anchor', clientTrust?.anchors),
    ...ends('admin_tls', adminTls === tls ? [] : adminTls?.certificates),
    ...ends('admin_anchor', adminTrust?.anchors),
    ...ends('cmc', firstOf(cmc.responder)),
    ...ends('store_client', firstOf(storeTls?.client)),
    ...ends('store_anchor', storeTls?.trustAnchors),
    ...ends('ra', cmc.raCertificates),
    ...ends('key_encryption', [...material.keyEncryption.values()]),
    ...ends('proxy', material.proxies?.certificates),
    ...services.flatMap((service) => ofService(service)),
    ...[...cas, ...[...labels.values()].flat()].flatMap(({ renewalIssuers, clientIssuers, authorization, table }) => [
      ...ends('renewal_issuer', renewalIssuers, table.label),
      ...ends('client_issuer', clientIssuers, table.label),
      ...ofService(authorization, table.label),
    ]),
    ...cas.flatMap(({ table, expiring }) => CA_USES.flatMap((use) => ends(use, expiring[use], table.label))),
  ];
}

export function endOf(
  { use, ca }: Pick<CertificateExpiry, 'use' | 'ca'>,
  { subject, serialNumber, notAfter }: Certificate,
): CertificateExpiry {
  return { use, ca, subject: formatName(subject), serial: serialNumber, notAfter: notAfter.getTime() };
}
