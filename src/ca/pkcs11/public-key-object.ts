/** The SubjectPublicKeyInfo of a key pair in a token. */
import type * as graphene from 'graphene-pk11';
import { IsolatedError } from '../../process/protocol.ts';
import { bitString, integer, NULL, oid, parseDer, sequence, Tag } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { ML_DSA } from '../../pki/x509/ml-dsa.ts';
import { MlDsa } from './ml-dsa.ts';
import { findObjects } from './token.ts';
import type { Token } from './token.ts';
import { TokenFault } from './wire.ts';

const EC_KEY = oid(OID.ecPublicKey);

/** By number: graphene knows one of them under a name that its types do not. */
const Attribute = {
  CKA_MODULUS: 0x120,
  CKA_PUBLIC_EXPONENT: 0x122,
  CKA_EC_PARAMS: 0x180,
  CKA_EC_POINT: 0x181,
  CKA_VALUE: 0x11,
} as const;

/**
 * DER SubjectPublicKeyInfo that belongs to a private key, or undefined when the token does not keep the public half of
 * an EC or ML-DSA key. The halves of a pair share their CKA_ID (PKCS#11 §4.7); an RSA private key holds its public numbers.
 */
export function publicKeyOf(
  token: Token,
  session: graphene.Session,
  privateKey: graphene.SessionObject,
): Buffer | undefined {
  const { KeyType } = token.graphene;
  const keyType: unknown = privateKey.get('keyType');
  if (keyType === KeyType.RSA) return rsaPublicKey(privateKey);
  const readPublicKey =
    keyType === KeyType.EC ? ecPublicKey : keyType === MlDsa.CKK_ML_DSA ? mlDsaPublicKey : undefined;
  if (readPublicKey === undefined)
    throw new IsolatedError(TokenFault.KEY, 'the private key is neither RSA nor EC nor ML-DSA');
  const id: unknown = privateKey.get('id');
  if (!Buffer.isBuffer(id) || id.length === 0) return undefined;
  const [publicKey] = findObjects(token, session, 'PUBLIC_KEY', { key_id: id.toString('hex') });
  return publicKey === undefined ? undefined : readPublicKey(publicKey);
}

/** RFC 9881 §4: the raw key, whose length tells the parameter set. */
function mlDsaPublicKey(key: graphene.SessionObject): Buffer {
  const value = bytes(key, 'CKA_VALUE');
  const parameters = ML_DSA.find(({ publicKey }) => publicKey === value.length);
  if (parameters === undefined)
    throw new IsolatedError(TokenFault.KEY, `an ML-DSA public key of ${value.length} octets is none`);
  return sequence(sequence(oid(parameters.oid)), bitString(value));
}

function rsaPublicKey(key: graphene.SessionObject): Buffer {
  const modulus = bytes(key, 'CKA_MODULUS');
  const exponent = bytes(key, 'CKA_PUBLIC_EXPONENT');
  const publicKey = sequence(integer(modulus), integer(exponent));
  return sequence(sequence(oid(OID.rsaEncryption), NULL), bitString(publicKey));
}

/** CKA_EC_PARAMS is DER already; CKA_EC_POINT is an OCTET STRING around the point, or with some tokens the bare point. */
function ecPublicKey(key: graphene.SessionObject): Buffer {
  const point = bytes(key, 'CKA_EC_POINT');
  return sequence(
    sequence(EC_KEY, bytes(key, 'CKA_EC_PARAMS')),
    bitString(isWrapped(point) ? parseDer(point).value : point),
  );
}

function isWrapped(point: Buffer): boolean {
  // A bare point starts with 04 too, as its "uncompressed" mark; only a wrapped one is DER to its last byte.
  try {
    return parseDer(point, Tag.OCTET_STRING).value.length > 0;
  } catch {
    return false;
  }
}

function bytes(key: graphene.SessionObject, attribute: keyof typeof Attribute): Buffer {
  const value: unknown = key.getAttribute(Attribute[attribute]);
  if (!Buffer.isBuffer(value)) throw new IsolatedError(TokenFault.KEY, `the key has no readable ${attribute}`);
  return value;
}
