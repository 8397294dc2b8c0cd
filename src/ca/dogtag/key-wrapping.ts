/** How a private key travels to the KRA: encrypted with a session key that only its transport key can unwrap. */
import { constants, createCipheriv, publicEncrypt, randomBytes, type KeyObject } from 'node:crypto';

/** Each base64. */
export interface WrappedKey {
  /** AES-128-CBC with the session key, PKCS#7 padding. */
  readonly wrappedPrivateData: string;
  /** The initialisation vector. */
  readonly symmetricAlgorithmParams: string;
  /** The session key, RSAES-PKCS1-v1_5 for the KRA's transport key: 10.10 takes nothing else. */
  readonly transWrappedSessionKey: string;
}

/** AES-128-CBC, as the KRA writes object identifiers. */
export const AES_128_CBC = '{2 16 840 1 101 3 4 1 2}';

/** @param data not kept */
export function wrapForTransport(data: Buffer, transportKey: KeyObject): WrappedKey {
  const sessionKey = randomBytes(16);
  const iv = randomBytes(16);
  try {
    const cipher = createCipheriv('aes-128-cbc', sessionKey, iv);
    const encrypted = Buffer.concat([cipher.update(data), cipher.final()]);
    const padding = constants.RSA_PKCS1_PADDING;
    return {
      wrappedPrivateData: encrypted.toString('base64'),
      symmetricAlgorithmParams: iv.toString('base64'),
      transWrappedSessionKey: publicEncrypt({ key: transportKey, padding }, sessionKey).toString('base64'),
    };
  } finally {
    sessionKey.fill(0);
  }
}
