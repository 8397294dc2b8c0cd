/** Messages between the signer and its child process. */
import { ML_DSA } from '../../pki/x509/key-pair.ts';

export interface TokenAccess {
  readonly module: string;
  /** LibraryParameters of C_Initialize, required by NSS's library. */
  readonly library_parameters?: string | undefined;
  /** CK_TOKEN_INFO.label without padding; or `slot`. */
  readonly token_label?: string | undefined;
  readonly slot?: number | undefined;
  readonly pin: string;
}

/** Identifies the private key by one of the two. */
export interface KeyReference {
  readonly key_label?: string | undefined;
  /** CKA_ID in hex. */
  readonly key_id?: string | undefined;
}

/** The child's start payload. */
export interface SignerInit extends TokenAccess, KeyReference {
  readonly max_sessions: number;
  /** DER SubjectPublicKeyInfo that the key must have; undefined: any. */
  readonly expectedSpki?: Uint8Array | undefined;
}

export interface KeyDescription {
  readonly spki: Uint8Array;
  /** Problems of the key or the token for the operator, one sentence each. */
  readonly warnings: readonly string[];
}

/** Codes for errors at start, in addition to CKR_… names. */
export const TokenFault = {
  /** graphene-pk11 is not installed. */
  LIBRARY: 'TOKEN_LIBRARY',
  MODULE: 'TOKEN_MODULE',
  SLOT: 'TOKEN_SLOT',
  PIN: 'TOKEN_PIN',
  KEY: 'TOKEN_KEY',
  KEY_MISMATCH: 'TOKEN_KEY_MISMATCH',
} as const;

export const TOKEN_KEY_TYPES = [
  'ec:P-256',
  'ec:P-384',
  'rsa:2048',
  'rsa:3072',
  'rsa:4096',
  ...ML_DSA.map(({ keyType }) => keyType),
] as const;
export type TokenKeyType = (typeof TOKEN_KEY_TYPES)[number];

export interface KeyGeneration {
  readonly access: TokenAccess;
  readonly reference: KeyReference;
  readonly type: TokenKeyType;
  /** CKA_LABEL if the reference has none. */
  readonly label: string;
}

export interface NewKeyNames {
  readonly label: string;
  /** CKA_ID; random unless configured. */
  readonly id: Uint8Array;
}

/** The environment variables that the module may need, without those that affect Node.js. */
export function moduleEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !/^(NODE_|npm_)/.test(name)) kept[name] = value;
  return kept;
}
