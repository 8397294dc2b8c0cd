/** Encodes a generated private key for delivery (RFC 7030 §4.4.2). */
import type { Ca } from '../ca/router.ts';
import { badRequest } from '../errors.ts';
import { parseContentInfo } from '../pki/cms/cms.ts';
import { buildSignedData, type CmsSigner } from '../pki/cms/signed-data.ts';
import { sequence } from '../pki/der/der.ts';
import { encryptPrivateKey } from '../pki/cms/encrypted-private-key.ts';
import { buildEnvelopedData } from '../pki/cms/enveloped-data.ts';
import { OID } from '../pki/der/oids.ts';
import type { KeyProtection } from './key-protection.ts';

export interface KeyPart {
  readonly contentType: string;
  /** The caller zeroes it after sending. */
  readonly der: Buffer;
}

const PKCS8 = 'application/pkcs8';
const SERVER_GENERATED_KEY = 'application/pkcs7-mime; smime-type=server-generated-key';

/**
 * Rejects what {@link protectKey} does not support, before a key is generated. @throws EstuaryError 400
 * `KEY_FORM_UNSUPPORTED`
 */
export function checkKeyForm(ca: Ca, { form }: KeyProtection): void {
  if (form === 'enveloped') signerOf(ca);
}

function signerOf({ driver: { cmsSigner } }: Ca): CmsSigner {
  if (cmsSigner === undefined)
    throw badRequest('KEY_FORM_UNSUPPORTED', 'This CA cannot sign the package of an encrypted private key.');
  return cmsSigner;
}

/** @param pkcs8 DER PrivateKeyInfo; not retained @throws EstuaryError from the CA's signer */
export async function protectKey(ca: Ca, pkcs8: Buffer, protection: KeyProtection, now: Date): Promise<KeyPart> {
  if (protection.form === 'tls') return { contentType: PKCS8, der: Buffer.from(pkcs8) };
  if (protection.form === 'password')
    return { contentType: PKCS8, der: await encryptPrivateKey(pkcs8, protection.password) };
  // AsymmetricKeyPackage (RFC 5958 §2) with one key.
  const keyPackage = sequence(pkcs8);
  const message = await buildSignedData({
    contentType: OID.asymmetricKeyPackage,
    content: keyPackage,
    certificates: [ca.certificate.der],
    signers: [signerOf(ca)],
    signingTime: now,
  });
  try {
    // RFC 5652 §6.1: the content has the named type, so SignedData without ContentInfo.
    const { content } = parseContentInfo(message);
    const der = await buildEnvelopedData({ ...protection, contentType: OID.signedData, content });
    return { contentType: SERVER_GENERATED_KEY, der };
  } finally {
    keyPackage.fill(0);
    message.fill(0);
  }
}
