/** Certificates and CRLs of any shape, right or wrong, for tests. */
import { randomBytes } from 'node:crypto';

import {
  Tag,
  bitString,
  children,
  explicit,
  integer,
  parseDer,
  readBigInt,
  readBitStringOctets,
  sequence,
  time,
} from '../../src/pki/der/der.ts';
import {
  encodeBasicConstraints,
  encodeExtKeyUsage,
  encodeExtension,
  encodeKeyUsage,
  encodeSubjectAltName,
  encodeSubjectKeyIdentifier,
  encodeAuthorityKeyIdentifier,
  type Extension,
  type KeyUsage,
} from '../../src/pki/x509/extensions.ts';
import { ipAddress, type GeneralName } from '../../src/pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  type SignatureAlgorithm,
} from '../../src/pki/x509/signature-algorithms.ts';
import { keyPair, spkiDer, type KeyKind, type KeyPair } from './keys.ts';

/** 2026-01-01 and 2036-01-01, unless a test says otherwise. */
export const NOT_BEFORE = Date.UTC(2026, 0, 1);
export const NOT_AFTER = Date.UTC(2036, 0, 1);

/** Who signs. */
export interface Issuer {
  /** RFC 4514, as it stands in what is issued. */
  readonly subject: string;
  readonly kind: KeyKind;
  readonly keys: KeyPair;
  readonly der: Buffer;
}

export interface CertificateSpec {
  readonly subject: string;
  /** undefined: self-signed. */
  readonly issuer?: Issuer;
  /** The issuer name, where it is not the issuer's subject. */
  readonly issuerName?: string;
  readonly kind?: KeyKind;
  /** Tells keys of one kind apart; the subject, unless given. */
  readonly slot?: string;
  /** A key of one's own, in place of `kind` and `slot`. */
  readonly keys?: KeyPair;
  readonly notBefore?: number;
  readonly notAfter?: number;
  readonly version?: 1 | 3;
  /** Lower-case hex. */
  readonly serial?: string;
  /** DER INTEGER, in place of `serial`. */
  readonly serialDer?: Buffer;
  readonly extensions?: readonly Extension[];
  /** DER AlgorithmIdentifier and how to sign, where not the issuer key's usual. */
  readonly algorithm?: SignatureAlgorithm;
  readonly algorithmDer?: Buffer;
  readonly sign?: (tbs: Buffer) => Buffer;
}

export async function makeCertificate(spec: CertificateSpec): Promise<Issuer> {
  const kind = spec.kind ?? 'ec:P-256';
  const keys = spec.keys ?? keyPair(kind, spec.slot ?? spec.subject);
  const signer = spec.issuer ?? { keys, kind, subject: spec.subject };
  const algorithm = spec.algorithm ?? defaultSignatureAlgorithm(signer.kind);
  if (algorithm === undefined) throw new Error(`no signature algorithm for ${signer.kind}`);
  const algorithmDer = spec.algorithmDer ?? algorithm.der;
  const extensions = spec.extensions ?? [];
  const tbs = sequence(
    ...(spec.version === 1 ? [] : [explicit(0, integer(2))]),
    spec.serialDer ?? integer(Buffer.from(spec.serial ?? `01${randomBytes(12).toString('hex')}`, 'hex')),
    algorithmDer,
    parseDistinguishedName(spec.issuerName ?? signer.subject).der,
    sequence(time(new Date(spec.notBefore ?? NOT_BEFORE)), time(new Date(spec.notAfter ?? NOT_AFTER))),
    parseDistinguishedName(spec.subject).der,
    spkiDer(keys),
    ...(extensions.length > 0 ? [explicit(3, sequence(...extensions.map(encodeExtension)))] : []),
  );
  const signature = spec.sign?.(tbs) ?? (await createSignature(algorithm, signer.keys.privateKey, signer.kind, tbs));
  return { subject: spec.subject, kind, keys, der: sequence(tbs, algorithmDer, bitString(signature)) };
}

/** The orders of the curves. */
const ORDERS = {
  'ec:P-256': 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  'ec:P-384': 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  'ec:P-521':
    0x1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
} as const;

/** The same certificate with (r, n − s) for its ECDSA signature (r, s). @param curve of the issuer's key */
export function ecdsaTwin(der: Buffer, curve: keyof typeof ORDERS = 'ec:P-256'): Buffer {
  const [tbs, algorithm, signature] = children(parseDer(der, Tag.SEQUENCE).value);
  if (tbs === undefined || algorithm === undefined || signature === undefined) throw new Error('not a certificate');
  const [r, s] = children(parseDer(readBitStringOctets(signature)).value);
  if (r === undefined || s === undefined) throw new Error('not an ECDSA signature');
  return sequence(tbs.raw, algorithm.raw, bitString(sequence(r.raw, integer(ORDERS[curve] - readBigInt(s)))));
}

/** A CA certificate with the usual extensions. */
export async function makeCa(
  subject: string,
  spec: Omit<CertificateSpec, 'subject'> & { readonly pathLength?: number } = {},
): Promise<Issuer> {
  const extensions = [
    basicConstraints(true, spec.pathLength),
    keyUsage('keyCertSign', 'cRLSign'),
    ...(spec.extensions ?? []),
  ];
  return makeCertificate({ ...spec, subject, extensions });
}

/** A client's certificate with the usual extensions. */
export async function makeClient(
  subject: string,
  issuer: Issuer,
  spec: Omit<CertificateSpec, 'subject' | 'issuer'> = {},
): Promise<Issuer> {
  const extensions = spec.extensions ?? [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth)];
  return makeCertificate({ ...spec, subject, issuer, extensions });
}

export const basicConstraints = (ca: boolean, pathLength?: number): Extension => ({
  oid: OID.basicConstraints,
  critical: true,
  value: encodeBasicConstraints({ ca, pathLength }),
});
export const keyUsage = (...usages: KeyUsage[]): Extension => ({
  oid: OID.keyUsage,
  critical: true,
  value: encodeKeyUsage(usages),
});
export const extKeyUsage = (...purposes: string[]): Extension => ({
  oid: OID.extKeyUsage,
  critical: false,
  value: encodeExtKeyUsage(purposes),
});
export const subjectAltName = (...names: GeneralName[]): Extension => ({
  oid: OID.subjectAltName,
  critical: false,
  value: encodeSubjectAltName(names),
});
export const ski = (of: KeyPair): Extension => ({
  oid: OID.subjectKeyIdentifier,
  critical: false,
  value: encodeSubjectKeyIdentifier(subjectKeyIdentifier(spkiDer(of))),
});
export const aki = (of: KeyPair): Extension => ({
  oid: OID.authorityKeyIdentifier,
  critical: false,
  value: encodeAuthorityKeyIdentifier(subjectKeyIdentifier(spkiDer(of))),
});
export const extension = (dotted: string, critical: boolean, value: Buffer): Extension => ({
  oid: dotted,
  critical,
  value,
});

export const dns = (value: string): GeneralName => ({ kind: 'dns', value });
export const email = (value: string): GeneralName => ({ kind: 'email', value });
export const uri = (value: string): GeneralName => ({ kind: 'uri', value });
export const ip = (value: string): GeneralName => ipAddress(value);

// --- CRLs ------------------------------------------------------------------------------------------------------

export interface CrlSpec {
  readonly revoked?: readonly string[];
  /** DER INTEGERs, in place of `revoked`. */
  readonly revokedDer?: readonly Buffer[];
  readonly thisUpdate?: number;
  /** null: none. */
  readonly nextUpdate?: number | null;
  readonly extensions?: readonly Extension[];
  readonly entryExtensions?: readonly Extension[];
  readonly issuerName?: string;
  readonly algorithmDer?: Buffer;
  readonly sign?: (tbs: Buffer) => Buffer;
}

/** DER of a CRL (RFC 5280 §5). */
export async function makeCrl(issuer: Issuer, spec: CrlSpec = {}): Promise<Buffer> {
  const algorithm = defaultSignatureAlgorithm(issuer.kind);
  if (algorithm === undefined) throw new Error(`no signature algorithm for ${issuer.kind}`);
  const algorithmDer = spec.algorithmDer ?? algorithm.der;
  const thisUpdate = new Date(spec.thisUpdate ?? NOT_BEFORE);
  const nextUpdate = spec.nextUpdate === null ? [] : [time(new Date(spec.nextUpdate ?? NOT_AFTER))];
  const serials = spec.revokedDer ?? (spec.revoked ?? []).map((serial) => integer(Buffer.from(serial, 'hex')));
  const entries = serials.map((serial) =>
    sequence(
      serial,
      time(thisUpdate),
      ...(spec.entryExtensions === undefined ? [] : [sequence(...spec.entryExtensions.map(encodeExtension))]),
    ),
  );
  const number: Extension = { oid: OID.cRLNumber, critical: false, value: integer(1) };
  const tbs = sequence(
    integer(1),
    algorithmDer,
    parseDistinguishedName(spec.issuerName ?? issuer.subject).der,
    time(thisUpdate),
    ...nextUpdate,
    ...(entries.length > 0 ? [sequence(...entries)] : []),
    explicit(0, sequence(...[number, ...(spec.extensions ?? [])].map(encodeExtension))),
  );
  const signature = spec.sign?.(tbs) ?? (await createSignature(algorithm, issuer.keys.privateKey, issuer.kind, tbs));
  return sequence(tbs, algorithmDer, bitString(signature));
}

/** A name of each kind that is rare in certificates, as policies and records write it. */
export const UNUSUAL_SANS = [
  'upn:alice@a.example',
  'hardware_module:1.3.6.1.4.1.9:00ab',
  'permanent_identifier:1.3.6.1:serial 1',
  'srv:_est.a.example',
  'registered_id:1.3.6.1',
  'other:1.2.3:0500',
];
