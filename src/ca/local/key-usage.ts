/**
 * Key usages that each key type supports (RFC 3279 §2.3.1, RFC 5480 §3, RFC 8410 §5, RFC 9881 §5), for end entities.
 */
import type { KeyUsage } from '../../pki/x509/extensions.ts';
import type { PublicKeyInfo } from '../../pki/x509/public-key.ts';

const SIGNING: readonly KeyUsage[] = ['digitalSignature', 'nonRepudiation'];
const USAGES: Readonly<Record<'rsa' | 'ec', readonly KeyUsage[]>> = {
  rsa: [...SIGNING, 'keyEncipherment', 'dataEncipherment'],
  ec: [...SIGNING, 'keyAgreement', 'encipherOnly', 'decipherOnly'],
};

/** Of CA certificates, with digitalSignature for OCSP responses and TLS. */
export const CA_KEY_USAGE: readonly KeyUsage[] = ['digitalSignature', 'keyCertSign', 'cRLSign'];

export function usagesOfKey(key: PublicKeyInfo): readonly KeyUsage[] {
  switch (key.algorithm) {
    case 'rsa':
      return USAGES.rsa;
    case 'ec':
      return USAGES.ec;
    case 'ed25519':
    case 'ed448':
    case 'ml-dsa':
    case 'rsa-pss':
      return SIGNING;
    case 'other':
      return [];
  }
}

/**
 * The profile's usages that the key supports: one profile serves RSA and EC devices, and keyEncipherment is dropped for
 * EC keys.
 */
export function keyUsageFor(key: PublicKeyInfo, profile: readonly KeyUsage[]): KeyUsage[] {
  const possible = usagesOfKey(key);
  const usages = profile.filter((usage) => possible.includes(usage));
  return usages.includes('keyAgreement')
    ? usages
    : usages.filter((usage) => usage !== 'encipherOnly' && usage !== 'decipherOnly');
}
