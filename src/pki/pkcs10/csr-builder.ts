/** PKCS #10 certification requests (RFC 2986) for keys that the server makes. */
import { createPrivateKey } from 'node:crypto';
import { bitString, explicit, integer, oid, sequence, setOf } from '../der/der.ts';
import { encodeExtensions } from '../x509/extensions.ts';
import { encodeGeneralNames, type GeneralName } from '../x509/general-name.ts';
import type { Name } from '../x509/name.ts';
import { OID } from '../der/oids.ts';
import type { PublicKeyInfo } from '../x509/public-key.ts';
import { createSignature, defaultSignatureAlgorithm } from '../x509/signature-algorithms.ts';
import { InputError } from '../input-error.ts';

export interface CsrSpec {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  readonly publicKey: PublicKeyInfo;
  /** DER PrivateKeyInfo; not kept. */
  readonly pkcs8: Buffer;
}

/**
 * @returns DER, signed by the key
 * @throws InputError for a key that cannot sign
 */
export async function buildCsr({ subject, subjectAltNames, publicKey, pkcs8 }: CsrSpec): Promise<Buffer> {
  const { spki, keyType } = publicKey;
  const algorithm = defaultSignatureAlgorithm(keyType);
  if (algorithm === undefined) throw new InputError(`a key of the type ${keyType} cannot sign a request`);
  const info = sequence(integer(0), subject.der, spki, explicit(0, ...attributes(subjectAltNames)));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  return sequence(info, algorithm.der, bitString(await createSignature(algorithm, key, keyType, info)));
}

function attributes(names: readonly GeneralName[]): Buffer[] {
  if (names.length === 0) return [];
  const extension = { oid: OID.subjectAltName, critical: false, value: encodeGeneralNames(names) };
  return [sequence(oid(OID.extensionRequest), setOf(encodeExtensions([extension])))];
}
