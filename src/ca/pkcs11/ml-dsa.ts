/** ML-DSA in PKCS#11 3.2, by number: graphene does not know it yet. */
import type { MlDsaParameters } from '../../pki/x509/ml-dsa.ts';

/** CK_KEY_TYPE, CK_MECHANISM_TYPE and CK_ATTRIBUTE_TYPE. */
export const MlDsa = {
  CKK_ML_DSA: 0x4a,
  CKM_ML_DSA_KEY_PAIR_GEN: 0x1c,
  CKM_ML_DSA: 0x1d,
  CKA_PARAMETER_SET: 0x61d,
} as const;

/** CK_ML_DSA_PARAMETER_SET_TYPE. */
export const PARAMETER_SETS: Readonly<Record<MlDsaParameters['keyType'], number>> = {
  'ml-dsa:44': 1,
  'ml-dsa:65': 2,
  'ml-dsa:87': 3,
};
