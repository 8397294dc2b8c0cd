/** What the signer and its child process agree on. */
import { ML_DSA } from '../../pki/x509/key-pair.ts';

/** Where a token is and what opens it. */
export interface TokenAccess {
  /** Path of the PKCS#11 library. */
  readonly module: string;
  /** LibraryParameters of C_Initialize, which NSS's library has to have. */
  readonly library_parameters?: string | undefined;
  /** CK_TOKEN_INFO.label, without its padding; or `slot`. */
  readonly token_label?: string | undefined;
  /** Slot ID. */
  readonly slot?: number | undefined;
  /** The user's PIN. */
  readonly pin: string;
}

/** Which private key: one of the two. */
export interface KeyReference {
  /** CKA_LABEL */
  readonly key_label?: string | undefined;
  /** CKA_ID in hex. */
  readonly key_id?: string | undefined;
}

/** The child's start payload. */
export interface SignerInit extends TokenAccess, KeyReference {
  readonly max_sessions: number;
  /** DER SubjectPublicKeyInfo that the key must have; undefined: whatever it has. */
  readonly expectedSpki: Uint8Array | undefined;
}

/** Answer of `describe`. */
export interface KeyDescription {
  readonly spki: Uint8Array;
  /** What an operator should know about the key or the token, one sentence each. */
  readonly warnings: readonly string[];
}

/** Codes of what is wrong at start, beside the CKR_… names of other failures. */
export const TokenFault = {
  /** graphene-pk11 is not installed. */
  LIBRARY: 'TOKEN_LIBRARY',
  MODULE: 'TOKEN_MODULE',
  SLOT: 'TOKEN_SLOT',
  PIN: 'TOKEN_PIN',
  KEY: 'TOKEN_KEY',
  KEY_MISMATCH: 'TOKEN_KEY_MISMATCH',
} as const;

/** The key types of a CA that tokens make. */
export const TOKEN_KEY_TYPES = [
  'ec:P-256',
  'ec:P-384',
  'rsa:2048',
  'rsa:3072',
  'rsa:4096',
  ...ML_DSA.map(({ keyType }) => keyType),
] as const;
export type TokenKeyType = (typeof TOKEN_KEY_TYPES)[number];

/** Which key to make, and where. */
export interface KeyGeneration {
  readonly access: TokenAccess;
  readonly reference: KeyReference;
  readonly type: TokenKeyType;
  /** CKA_LABEL where the reference has none. */
  readonly label: string;
}

/** How a new pair is named in the token. */
export interface NewKeyNames {
  readonly label: string;
  /** CKA_ID; random unless the configuration names one. */
  readonly id: Uint8Array;
}

/** What the module may need to find its own configuration, without what changes the Node that runs it. */
export function moduleEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !/^(NODE_|npm_)/.test(name)) kept[name] = value;
  return kept;
}
