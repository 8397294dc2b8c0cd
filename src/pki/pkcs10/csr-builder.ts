/** Builds PKCS #10 certification requests (RFC 2986) for server-generated keys and for `estuary client`. */
import { createPrivateKey } from 'node:crypto';
import { bitString, explicit, integer, oid, sequence, setOf } from '../der/der.ts';
import { encodeExtensions, type Extension } from '../x509/extensions.ts';
import { encodeGeneralNames, type GeneralName } from '../x509/general-name.ts';
import type { Name } from '../x509/name.ts';
import { OID } from '../der/oids.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import { createSignature, defaultSignatureAlgorithm, type SignatureAlgorithm } from '../x509/signature-algorithms.ts';
import { InputError } from '../input-error.ts';

interface CsrSpec {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  readonly publicKey: PublicKeyInfo;
  /** DER PrivateKeyInfo; not retained. */
  readonly pkcs8: Buffer;
}

/** Builds and signs a request. @returns DER CertificationRequest @throws InputError for a key that cannot sign */
export async function buildCsr({ subject, subjectAltNames, publicKey, pkcs8 }: CsrSpec): Promise<Buffer> {
  const { spki, keyType } = publicKey;
  const algorithm = defaultSignatureAlgorithm(keyType);
  if (algorithm === undefined) throw new InputError(`a key of the type ${keyType} cannot sign a request`);
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const names = subjectAltNames.length === 0 ? [] : [subjectAltNameExtension(subjectAltNames)];
  return signCsr({
    subject,
    spki,
    attributes: extensionRequest(names),
    algorithm,
    sign: (info) => createSignature(algorithm, key, keyType, info),
  });
}

interface UnsignedCsr {
  readonly subject: Name;
  readonly spki: Buffer;
  readonly attributes: readonly Buffer[];
  readonly algorithm: SignatureAlgorithm;
  /** Signs the CertificationRequestInfo, wherever the key is stored. */
  readonly sign: (info: Buffer) => Promise<Buffer>;
}

export async function signCsr({ subject, spki, attributes, algorithm, sign }: UnsignedCsr): Promise<Buffer> {
  const info = sequence(integer(0), subject.der, spki, explicit(0, setContent(attributes)));
  return sequence(info, algorithm.der, bitString(await sign(info)));
}

/** The content of a SET OF in DER order. */
const setContent = (parts: readonly Buffer[]): Buffer => Buffer.concat([...parts].sort((a, b) => Buffer.compare(a, b)));

/** The extensionRequest attribute; empty if there are no extensions. */
export function extensionRequest(extensions: readonly Extension[]): Buffer[] {
  return extensions.length === 0 ? [] : [attribute(OID.extensionRequest, encodeExtensions(extensions))];
}

const subjectAltNameExtension = (names: readonly GeneralName[]): Extension => ({
  oid: OID.subjectAltName,
  critical: false,
  value: encodeGeneralNames(names),
});

export const attribute = (type: string, value: Buffer): Buffer => sequence(oid(type), setOf(value));
