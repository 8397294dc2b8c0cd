/** The private key of a CA in a token: finds it, proves it with a signature, and signs. */
import { randomBytes } from 'node:crypto';
import { InputError } from '../../pki/input-error.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm, verifySignature } from '../../pki/x509/signature-algorithms.ts';
import { IsolatedError } from '../../process/protocol.ts';
import {
  attribute,
  Ck,
  failureName,
  findObjects,
  flag,
  type Handle,
  isLost,
  LostSession,
  type Pkcs11,
  type Template,
  ulong,
} from './cryptoki.ts';
import { ecPublicKey, mlDsaPublicKey, rsaPublicKey, type TokenSignature, tokenSignatures } from './formats.ts';
import { isLoggedIn, logIn, shortened, type Token, trimmed } from './token.ts';
import { type KeyReference, TokenFault } from './wire.ts';

/** Above the largest signature: ML-DSA-87 has 4,627 octets. */
const MAX_SIGNATURE = 5120;

export interface SigningKey {
  readonly object: Handle;
  readonly spki: Buffer;
  /** Best first; those before `way` were rejected by the token. */
  readonly ways: readonly TokenSignature[];
  way: number;
  /** CKA_ALWAYS_AUTHENTICATE: each signature needs a login. undefined: not known; false: the token has no such login. */
  contextLogin: boolean | undefined;
}

/** The token listed a mechanism that it does not have. Some hash only short data: CKR_DATA_LEN_RANGE. */
const NO_MECHANISM = new Set(['CKR_MECHANISM_INVALID', 'CKR_MECHANISM_PARAM_INVALID', 'CKR_FUNCTION_NOT_SUPPORTED']);

const UNUSABLE_KEY = new Set(['CKR_KEY_FUNCTION_NOT_PERMITTED', 'CKR_KEY_TYPE_INCONSISTENT', 'CKR_KEY_SIZE_RANGE']);

/** @throws an error of the module; IsolatedError `TokenFault.PIN` */
export async function signWith(token: Token, session: Handle, key: SigningKey, tbs: Buffer): Promise<Buffer> {
  for (;;) {
    const { way } = key;
    const how = key.ways[way];
    if (how === undefined) throw new IsolatedError(TokenFault.KEY, `${token.name} has no mechanism for the key`);
    try {
      beginSignature(token, session, how.mechanism, key.object);
      if (key.contextLogin === true) key.contextLogin = logIn(token, session, Ck.CKU_CONTEXT_SPECIFIC);
      return how.output(await rawSignature(token, session, how.input(tbs)));
    } catch (error) {
      const name = failureName(error);
      // Some tokens do not show CKA_ALWAYS_AUTHENTICATE.
      if (name === 'CKR_USER_NOT_LOGGED_IN' && key.contextLogin === undefined && isLoggedIn(token, session)) {
        key.contextLogin = true;
        continue;
      }
      const isOther = NO_MECHANISM.has(name) || name === 'CKR_DATA_LEN_RANGE';
      if (!isOther || way + 1 >= key.ways.length) throw error;
      // Concurrent signatures may have found out too.
      key.way = Math.max(key.way, way + 1);
    }
  }
}

/** @throws LostSession unless the failure is about the mechanism or the key: nothing was signed yet */
function beginSignature({ lib }: Token, session: Handle, mechanism: number, key: Handle): void {
  try {
    lib.C_SignInit(session, { mechanism }, key);
  } catch (error) {
    const name = failureName(error);
    if (NO_MECHANISM.has(name) || UNUSABLE_KEY.has(name)) throw error;
    throw new LostSession(name);
  }
}

async function rawSignature({ lib, isSerial }: Token, session: Handle, input: Buffer): Promise<Buffer> {
  const output = Buffer.alloc(MAX_SIGNATURE);
  if (isSerial) return Buffer.from(lib.C_Sign(session, input, output));
  const raw = await lib.C_SignAsync(session, input, output);
  return keep(raw, input, output);
}

/**
 * Returns the value and keeps the buffers referenced: the library's threads use them, and an unreferenced buffer may be
 * collected during an await.
 */
function keep(value: Buffer, ...buffers: readonly Buffer[]): Buffer {
  return buffers.length > 0 ? Buffer.from(value) : value;
}

/**
 * The private key that matches the reference and makes signatures for the expected public key.
 * @param expected DER SubjectPublicKeyInfo; undefined: the token's own public key, and only one private key may match
 * @throws IsolatedError `TokenFault.KEY` or `TokenFault.KEY_MISMATCH`; an error of the module
 */
export async function chooseKey(
  token: Token,
  session: Handle,
  reference: KeyReference,
  expected: Buffer | undefined,
): Promise<SigningKey> {
  const { lib, name } = token;
  const found = requirePrivateKeys(token, session, reference);
  if (expected === undefined && found.length > 1)
    throw new IsolatedError(
      TokenFault.KEY,
      `${name} has ${found.length} private keys ${keyName(reference)}; use key_id: ${listedKeys(lib, session, found)}`,
    );
  const offered = mechanismsOf(token);
  const keys = found.map((object) => ({ object, publicKeys: publicKeysOf(lib, session, object) }));
  // Attributes may be wrong or missing; they only save signatures.
  if (expected !== undefined)
    keys.sort((a, b) => Number(holds(b.publicKeys, expected)) - Number(holds(a.publicKeys, expected)));
  let problem: unknown;
  for (const { object, publicKeys } of keys)
    for (const spki of expected === undefined ? publicKeys : [expected])
      try {
        const contextLogin = flag(lib, session, object, 'CKA_ALWAYS_AUTHENTICATE') === true ? true : undefined;
        const key = { object, spki, ways: tokenSignatures(spki, offered), way: 0, contextLogin };
        if (await isProven(token, session, key)) return key;
      } catch (error) {
        if (isLost(error) || (error instanceof IsolatedError && error.permanent)) throw error;
        problem ??= error;
      }
  if (problem instanceof IsolatedError) throw problem;
  if (problem !== undefined)
    throw new IsolatedError(
      TokenFault.KEY,
      `${name} does not sign with the private key ${keyName(reference)}: ${failureName(problem)}`,
    );
  if (expected === undefined && keys.every(({ publicKeys }) => publicKeys.length === 0))
    throw new IsolatedError(
      TokenFault.KEY,
      'the token does not contain the public key of the pair, of type RSA, P-256, P-384 or ML-DSA',
    );
  throw new IsolatedError(
    TokenFault.KEY_MISMATCH,
    expected === undefined
      ? `${name} signs with another key than its public key ${keyName(reference)} says`
      : 'the private key does not belong to the CA certificate',
  );
}

const holds = (keys: readonly Buffer[], wanted: Buffer): boolean => keys.some((key) => key.equals(wanted));

/**
 * Signs a test value in the best way that works.
 * @throws the first failure if none does
 */
async function isProven(token: Token, session: Handle, key: SigningKey): Promise<boolean> {
  let problem: { readonly error: unknown } | undefined;
  for (; key.way < key.ways.length; key.way++)
    try {
      if (await signsRight(token, session, key)) return true;
    } catch (error) {
      if (isLost(error) || error instanceof IsolatedError) throw error;
      problem ??= { error };
    }
  if (problem !== undefined) throw problem.error;
  return false;
}

/** Signs again if it fails: one failed signature says nothing about the key. */
async function signsRight(token: Token, session: Handle, key: SigningKey): Promise<boolean> {
  const probe = Buffer.concat([Buffer.from('estuary start-up check '), randomBytes(16)]);
  const sign = (): Promise<Buffer> => signWith(token, session, key, probe);
  const signature = await sign().catch((error: unknown) => {
    if (failureName(error) === 'CKR_FUNCTION_FAILED') return sign();
    throw error;
  });
  const publicKey = parsePublicKey(key.spki);
  const algorithm = defaultSignatureAlgorithm(publicKey.keyType);
  return algorithm !== undefined && verifySignature(algorithm, publicKey, probe, signature);
}

/** CK_MECHANISM_TYPE; undefined if the token does not list them. */
export function mechanismsOf({ lib, slot }: Token): ReadonlySet<number> | undefined {
  try {
    const listed = lib.C_GetMechanismList(slot);
    return listed.length === 0 ? undefined : new Set(listed);
  } catch (error) {
    if (isLost(error)) throw error;
    return undefined;
  }
}

export const privateKeys = (token: Token, session: Handle, reference: KeyReference): Handle[] =>
  objectsNamed(token, session, Ck.CKO_PRIVATE_KEY, reference);

/** @throws IsolatedError `TokenFault.KEY` that lists the keys that are there */
export function requirePrivateKeys(token: Token, session: Handle, reference: KeyReference): Handle[] {
  const found = privateKeys(token, session, reference);
  if (found.length === 0) throw notFound(token, session, reference);
  return found;
}

/** Objects of a class with these attributes, also in a token that cannot search for one of them. */
function searched(
  lib: Pkcs11,
  session: Handle,
  objectClass: number,
  wanted: readonly (readonly ['CKA_LABEL' | 'CKA_ID', Buffer])[],
): Handle[] {
  const ofClass: Template = [['CKA_CLASS', objectClass]];
  try {
    return findObjects(lib, session, [...ofClass, ...wanted]);
  } catch (error) {
    if (!failureName(error).startsWith('CKR_ATTRIBUTE_')) throw error;
    return findObjects(lib, session, ofClass).filter((object) =>
      wanted.every(([name, value]) => attribute(lib, session, object, name)?.equals(value)),
    );
  }
}

/** All objects of a class that match the reference. */
export function objectsNamed(
  { lib }: Token,
  session: Handle,
  objectClass: number,
  { key_label, key_id }: KeyReference,
): Handle[] {
  const id = key_id === undefined ? undefined : Buffer.from(key_id, 'hex');
  const named = searched(lib, session, objectClass, [
    ...(key_label === undefined ? [] : ([['CKA_LABEL', Buffer.from(key_label)]] as const)),
    ...(id === undefined ? [] : ([['CKA_ID', id]] as const)),
  ]);
  if (named.length > 0) return named;
  // Some tokens pad labels.
  return findObjects(lib, session, [['CKA_CLASS', objectClass]]).filter((object) => {
    const label = attribute(lib, session, object, 'CKA_LABEL')?.toString('utf8');
    return (
      (key_label === undefined || (label !== undefined && trimmed(label) === trimmed(key_label))) &&
      (id === undefined || attribute(lib, session, object, 'CKA_ID')?.equals(id) === true)
    );
  });
}

/** Such as `labeled "issuing", with the id 01`. */
export function keyName({ key_label, key_id }: KeyReference): string {
  const parts = [
    ...(key_label === undefined ? [] : [`labeled "${key_label}"`]),
    ...(key_id === undefined ? [] : [`with the id ${key_id}`]),
  ];
  return parts.length === 0 ? 'of any name' : parts.join(', ');
}

function notFound({ lib, name }: Token, session: Handle, reference: KeyReference): IsolatedError {
  const all = findObjects(lib, session, [['CKA_CLASS', Ck.CKO_PRIVATE_KEY]]);
  const others = all.length === 0 ? 'it shows no private key' : `it has ${listedKeys(lib, session, all)}`;
  return new IsolatedError(TokenFault.KEY, `${name} has no private key ${keyName(reference)}; ${others}`);
}

function listedKeys(lib: Pkcs11, session: Handle, keys: readonly Handle[]): string {
  return shortened(
    keys.map((key) => {
      const label = trimmed(attribute(lib, session, key, 'CKA_LABEL')?.toString('utf8') ?? '');
      return `"${label}" (id ${attribute(lib, session, key, 'CKA_ID')?.toString('hex') ?? 'unknown'})`;
    }),
  );
}

/** DER SubjectPublicKeyInfo: what the private key, and public keys and certificates of the same id or label, say. */
function publicKeysOf(lib: Pkcs11, session: Handle, key: Handle): Buffer[] {
  const found = [publicKey(lib, session, key)];
  const modulus = attribute(lib, session, key, 'CKA_MODULUS');
  for (const name of ['CKA_ID', 'CKA_LABEL'] as const) {
    const value = attribute(lib, session, key, name);
    if (value === undefined || value.length === 0) continue;
    for (const other of searched(lib, session, Ck.CKO_PUBLIC_KEY, [[name, value]]))
      found.push(publicKey(lib, session, other));
    for (const other of searched(lib, session, Ck.CKO_CERTIFICATE, [[name, value]]))
      found.push(certifiedKey(attribute(lib, session, other, 'CKA_VALUE')));
  }
  // Nearly every RSA key has this exponent.
  if (modulus !== undefined) found.push(rsaPublicKey(modulus, Buffer.from([1, 0, 1])));
  const keys = found.filter((key) => key !== undefined);
  return keys.filter((key, n) => keys.findIndex((other) => other.equals(key)) === n);
}

function publicKey(lib: Pkcs11, session: Handle, key: Handle): Buffer | undefined {
  const read = (name: Parameters<typeof attribute>[3]): Buffer | undefined => attribute(lib, session, key, name);
  switch (ulong(lib, session, key, 'CKA_KEY_TYPE')) {
    case Ck.CKK_RSA: {
      const [modulus, exponent] = [read('CKA_MODULUS'), read('CKA_PUBLIC_EXPONENT')];
      return modulus && exponent && rsaPublicKey(modulus, exponent);
    }
    case Ck.CKK_EC: {
      const point = read('CKA_EC_POINT');
      return point && ecPublicKey(point);
    }
    case Ck.CKK_ML_DSA: {
      // A private key's CKA_VALUE is secret.
      const isPublic = ulong(lib, session, key, 'CKA_CLASS') === Ck.CKO_PUBLIC_KEY;
      const value = isPublic ? read('CKA_VALUE') : undefined;
      return value && mlDsaPublicKey(value);
    }
    default:
      return undefined;
  }
}

function certifiedKey(der: Buffer | undefined): Buffer | undefined {
  try {
    return der && parseCertificate(der).spki;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return undefined;
  }
}

/** Security problems of a private key, one sentence each. An attribute that the token does not show is no problem. */
export function keyWarnings({ lib }: Token, session: Handle, key: Handle): string[] {
  const warnings: string[] = [];
  if (flag(lib, session, key, 'CKA_EXTRACTABLE') === true)
    warnings.push('the private key is extractable (CKA_EXTRACTABLE): it can leave the token');
  if (flag(lib, session, key, 'CKA_SENSITIVE') === false)
    warnings.push('the private key is not sensitive (CKA_SENSITIVE): the token reveals it in plaintext');
  return warnings;
}
