/** PKCS#11 calls through pkcs11js, which graphene-pk11 loads: constants, names of failures, attributes, objects. */
import type * as graphene from 'graphene-pk11';
import { IsolatedError } from '../../process/protocol.ts';

export type Pkcs11 = graphene.Module['lib'];
/** A CK_ULONG in the platform's byte order. */
export type Handle = Buffer;

/** Of pkcs11t.h. */
export const Ck = {
  CKF_OS_LOCKING_OK: 0x2,
  CKF_RW_SESSION: 0x2,
  CKF_SERIAL_SESSION: 0x4,
  CKF_LOGIN_REQUIRED: 0x4,
  CKF_PROTECTED_AUTHENTICATION_PATH: 0x100,
  CKF_TOKEN_INITIALIZED: 0x400,
  CKF_USER_PIN_FINAL_TRY: 0x2_0000,
  CKF_USER_PIN_LOCKED: 0x4_0000,
  CKU_USER: 1,
  CKU_CONTEXT_SPECIFIC: 2,
  /** CK_STATE of a session with a logged-in user: read-only, read-write. */
  CKS_RO_USER_FUNCTIONS: 1,
  CKS_RW_USER_FUNCTIONS: 3,
  CKO_CERTIFICATE: 1,
  CKO_PUBLIC_KEY: 2,
  CKO_PRIVATE_KEY: 3,
  CKM_RSA_PKCS_KEY_PAIR_GEN: 0,
  CKM_EC_KEY_PAIR_GEN: 0x1040,
  CKM_ML_DSA_KEY_PAIR_GEN: 0x1c,
  CKK_RSA: 0,
  CKK_EC: 3,
  CKK_ML_DSA: 0x4a,
  CKA_CLASS: 0,
  CKA_TOKEN: 1,
  CKA_PRIVATE: 2,
  CKA_LABEL: 3,
  CKA_VALUE: 0x11,
  CKA_KEY_TYPE: 0x100,
  CKA_ID: 0x102,
  CKA_SENSITIVE: 0x103,
  CKA_DECRYPT: 0x105,
  CKA_UNWRAP: 0x107,
  CKA_SIGN: 0x108,
  CKA_VERIFY: 0x10a,
  CKA_MODULUS: 0x120,
  CKA_MODULUS_BITS: 0x121,
  CKA_PUBLIC_EXPONENT: 0x122,
  CKA_EXTRACTABLE: 0x162,
  CKA_EC_PARAMS: 0x180,
  CKA_EC_POINT: 0x181,
  CKA_ALWAYS_AUTHENTICATE: 0x202,
  CKA_PARAMETER_SET: 0x61d,
} as const;

type AttributeName = Extract<keyof typeof Ck, `CKA_${string}`>;

export type Template = readonly (readonly [AttributeName, number | boolean | string | Buffer])[];

export const toTemplate = (template: Template): { type: number; value: number | boolean | string | Buffer }[] =>
  template.map(([name, value]) => ({ type: Ck[name], value }));

/**
 * The CKR_… name of a failed PKCS#11 call, with the number of a code that has no name here, or another error's message.
 */
export function failureName(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const name = /CKR_[A-Z0-9_]+/.exec(message)?.[0];
  if (name !== 'CKR_VENDOR_DEFINED') return name ?? message;
  const given = error instanceof Error && 'code' in error ? error.code : undefined;
  const code = typeof given === 'number' && given > 0 ? given : Number(/CKR_VENDOR_DEFINED:(\d+)/.exec(message)?.[1]);
  return code >= 0x8000_0000 ? `${name} 0x${code.toString(16)}` : `CKR 0x${code.toString(16)}`;
}

/** An attribute's bytes; undefined if the token does not have or show it. */
export function attribute(lib: Pkcs11, session: Handle, object: Handle, name: AttributeName): Buffer | undefined {
  try {
    const value: unknown = lib.C_GetAttributeValue(session, object, [{ type: Ck[name] }])[0]?.value;
    return Buffer.isBuffer(value) ? value : undefined;
  } catch (error) {
    if (isLost(error)) throw error;
    return undefined;
  }
}

export function flag(lib: Pkcs11, session: Handle, object: Handle, name: AttributeName): boolean | undefined {
  const value = attribute(lib, session, object, name);
  return value?.length === 1 ? value[0] !== 0 : undefined;
}

/** A CK_ULONG attribute of at most 32 bits. */
export function ulong(lib: Pkcs11, session: Handle, object: Handle, name: AttributeName): number | undefined {
  const value = attribute(lib, session, object, name);
  return value !== undefined && value.length >= 4 ? value.readUInt32LE(0) : undefined;
}

/** Above any sensible number of objects with one name; a token that never ends its list must not hang. */
const MAX_OBJECTS = 1000;

export function findObjects(lib: Pkcs11, session: Handle, template: Template): Handle[] {
  lib.C_FindObjectsInit(session, toTemplate(template));
  try {
    const found: Handle[] = [];
    while (found.length < MAX_OBJECTS) {
      const object = lib.C_FindObjects(session);
      if (object === null) break;
      found.push(object);
    }
    return found;
  } finally {
    lib.C_FindObjectsFinal(session);
  }
}

/** A session, the login or the object handles are gone; a new session may have them again. */
const LOST = new Set([
  'CKR_SESSION_HANDLE_INVALID',
  'CKR_SESSION_CLOSED',
  'CKR_USER_NOT_LOGGED_IN',
  'CKR_KEY_HANDLE_INVALID',
  'CKR_OBJECT_HANDLE_INVALID',
  'CKR_OPERATION_NOT_INITIALIZED',
  'CKR_OPERATION_ACTIVE',
  'CKR_DEVICE_REMOVED',
  'CKR_TOKEN_NOT_PRESENT',
]);

/** The token refuses another session; so many are open. */
export class NoSessionLeft extends Error {
  readonly sessions: number;

  constructor(sessions: number) {
    super('CKR_SESSION_COUNT');
    this.sessions = sessions;
  }
}

/** The failure of a call that a new session may not have. */
export class LostSession extends Error {}

export const isLost = (error: unknown): boolean => error instanceof LostSession || LOST.has(failureName(error));

/** With the PKCS#11 name as the error code, so that the parent process can classify the failure. */
export function isolated(error: unknown): IsolatedError {
  if (error instanceof IsolatedError) return error;
  const name = failureName(error);
  return new IsolatedError(name, name);
}

/** @throws IsolatedError; {@link NoSessionLeft} */
export async function named<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof NoSessionLeft ? error : isolated(error);
  }
}
