/** Messages between the signer and its child process. */
import { ML_DSA } from '../../pki/x509/key-pair.ts';
import { isObject } from '../../process/protocol.ts';

/** Which token and how to open it. Everything that is given must match. */
export interface TokenAccess {
  readonly module: string;
  /** LibraryParameters of C_Initialize, required by NSS's library. */
  readonly library_parameters?: string | undefined;
  /** CK_TOKEN_INFO.label without padding. */
  readonly token_label?: string | undefined;
  /** CK_SLOT_ID, decimal or `0x…`: it may have 64 bits. */
  readonly slot?: string | number | undefined;
  /** Further parts of CK_TOKEN_INFO, without padding. */
  readonly manufacturer?: string | undefined;
  readonly model?: string | undefined;
  readonly serial?: string | undefined;
  /** undefined: not configured; empty: no login. */
  readonly pin?: string | undefined;
}

/** Identifies the private key; everything that is given must match. */
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

/** The token that the child found, before any login. */
export interface FoundToken {
  /** The same for every name of the token. */
  readonly identity: string;
  /** CKF_LOGIN_REQUIRED. */
  readonly loginRequired: boolean;
  /** There is a PIN, or the token has to ask for it. */
  readonly loginWanted: boolean;
}

/** The child is the same program. */
export const isFoundToken = (value: unknown): value is FoundToken => isObject(value) && 'loginWanted' in value;

export interface KeyDescription {
  readonly spki: Uint8Array;
  /** Sessions that the token allows at the same time, at most `max_sessions`. */
  readonly sessions: number;
  /** Problems of the key or the token for the operator, one sentence each. */
  readonly warnings: readonly string[];
}

/** In place of a result: the token refused a further session, and only so many are open. */
export interface NoSession {
  readonly sessions: number;
}

/** Codes for errors, in addition to CKR_… names. */
export const TokenFault = {
  /** graphene-pk11 is not installed. */
  LIBRARY: 'TOKEN_LIBRARY',
  MODULE: 'TOKEN_MODULE',
  SLOT: 'TOKEN_SLOT',
  /** The token opens no session. */
  SESSION: 'TOKEN_SESSION',
  /** The call needs a login first. */
  LOGIN: 'TOKEN_LOGIN',
  /** There must be no further login before a reload. */
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
  /** CKA_ID, as the token has it; empty if it does not show it. */
  readonly id: Uint8Array;
  /** Restrictions that the token refused, such as `CKA_DECRYPT false`. */
  readonly leftOut: readonly string[];
}

/** The environment variables that the module may need, without those that affect Node.js. */
export function moduleEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !/^(NODE_|npm_)/.test(name)) kept[name] = value;
  return kept;
}
