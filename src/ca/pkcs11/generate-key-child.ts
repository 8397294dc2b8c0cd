/** Child process that generates a CA key inside a token. */
import { randomBytes } from 'node:crypto';
import { oid } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { mlDsaOf } from '../../pki/x509/key-pair.ts';
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { initialized, serve } from '../../process/serve.ts';
import { attribute, Ck, failureName, type Handle, named, type Template, toTemplate } from './cryptoki.ts';
import { PARAMETER_SETS } from './formats.ts';
import { keyName, mechanismsOf, objectsNamed } from './keys.ts';
import { describeToken, findToken, logIn, type Token } from './token.ts';
import { type KeyGeneration, type NewKeyNames, TokenFault, type TokenKeyType } from './wire.ts';

interface OpenToken {
  readonly order: KeyGeneration;
  readonly token: Token;
  readonly session: Handle;
}

async function openToken(order: KeyGeneration): Promise<OpenToken> {
  const token = await findToken(order.access);
  try {
    const session = token.lib.C_OpenSession(token.slot, Ck.CKF_SERIAL_SESSION | Ck.CKF_RW_SESSION);
    return { order, token, session };
  } catch (error) {
    throw new IsolatedError(TokenFault.SESSION, `${token.name} opens no session: ${failureName(error)}`);
  }
}

/**
 * Generates a key pair that never leaves the token: a private, sensitive, non-extractable token object for signing
 * only. The process's end closes the session: C_Finalize of some modules hangs or crashes.
 * @throws IsolatedError with a {@link TokenFault} code, also if the name is in use
 */
function generateKey({ order: { reference, type, label }, token, session }: OpenToken): NewKeyNames {
  const { name } = token;
  try {
    for (const kind of [Ck.CKO_PRIVATE_KEY, Ck.CKO_PUBLIC_KEY])
      if (reference.key_label !== undefined || reference.key_id !== undefined)
        if (objectsNamed(token, session, kind, reference).length > 0)
          throw new IsolatedError(TokenFault.KEY, `${name} already has a key ${keyName(reference)}`);
    const id = reference.key_id === undefined ? undefined : Buffer.from(reference.key_id, 'hex');
    return generate(token, session, type, { label: reference.key_label ?? label, id });
  } catch (error) {
    if (error instanceof IsolatedError) throw error;
    throw new IsolatedError(TokenFault.KEY, `${name} cannot create a ${type} key: ${failureName(error)}`);
  }
}

/** Restrictions that some tokens refuse to set, such as those of TPMs. */
const OPTIONAL: Template = [
  ['CKA_DECRYPT', false],
  ['CKA_UNWRAP', false],
];

/** @param id random unless given, or what the token chooses if it refuses that */
function generate(
  token: Token,
  session: Handle,
  type: TokenKeyType,
  { label, id }: { readonly label: string; readonly id: Buffer | undefined },
): NewKeyNames {
  const mechanism = mechanismOf(type);
  if (mechanismsOf(token)?.has(mechanism) === false)
    throw new IsolatedError(
      TokenFault.KEY,
      `${token.name} cannot create ${type} keys: its PKCS#11 library does not support them`,
    );
  const both: Template = [
    ['CKA_TOKEN', true],
    ['CKA_KEY_TYPE', keyTypeOf(type)],
    ['CKA_LABEL', label],
  ];
  const publicKey: Template = [...both, ['CKA_VERIFY', true], ...parameters(type)];
  const privateKey: Template = [
    ...both,
    ['CKA_PRIVATE', true],
    ['CKA_SENSITIVE', true],
    ['CKA_EXTRACTABLE', false],
    ['CKA_SIGN', true],
  ];
  const create = (more: Template, names: Template): Handle =>
    token.lib.C_GenerateKeyPair(
      session,
      { mechanism },
      toTemplate([['CKA_CLASS', Ck.CKO_PUBLIC_KEY], ...publicKey, ...names]),
      toTemplate([['CKA_CLASS', Ck.CKO_PRIVATE_KEY], ...privateKey, ...names, ...more]),
    ).privateKey;
  const named: Template = [['CKA_ID', id ?? randomBytes(16)]];
  let problem: unknown;
  // Some tokens have IDs of one octet, or choose them.
  for (const names of id === undefined ? [named, []] : [named])
    for (const more of [OPTIONAL, []])
      try {
        const key = create(more, names);
        const leftOut = more === OPTIONAL ? [] : OPTIONAL.map(([name]) => `${name} false`);
        // The token may have shortened it.
        return { label, id: attribute(token.lib, session, key, 'CKA_ID') ?? Buffer.alloc(0), leftOut };
      } catch (error) {
        problem ??= error;
      }
  throw problem;
}

function keyTypeOf(type: TokenKeyType): number {
  if (mlDsaOf(type) !== undefined) return Ck.CKK_ML_DSA;
  return type.startsWith('rsa:') ? Ck.CKK_RSA : Ck.CKK_EC;
}

function mechanismOf(type: TokenKeyType): number {
  if (mlDsaOf(type) !== undefined) return Ck.CKM_ML_DSA_KEY_PAIR_GEN;
  return type.startsWith('rsa:') ? Ck.CKM_RSA_PKCS_KEY_PAIR_GEN : Ck.CKM_EC_KEY_PAIR_GEN;
}

function parameters(type: TokenKeyType): Template {
  switch (type) {
    case 'ml-dsa:44':
    case 'ml-dsa:65':
    case 'ml-dsa:87':
      return [['CKA_PARAMETER_SET', PARAMETER_SETS[type]]];
    case 'ec:P-256':
      return [['CKA_EC_PARAMS', oid(OID.secp256r1)]];
    case 'ec:P-384':
      return [['CKA_EC_PARAMS', oid(OID.secp384r1)]];
    case 'rsa:2048':
    case 'rsa:3072':
    case 'rsa:4096':
      return [
        ['CKA_MODULUS_BITS', Number(type.slice(4))],
        ['CKA_PUBLIC_EXPONENT', Buffer.from([1, 0, 1])],
      ];
  }
}

/** The parent is the same program, so the payload has this shape. */
const isOrder = (payload: unknown): payload is KeyGeneration =>
  isObject(payload) && 'access' in payload && 'reference' in payload;

let opened: OpenToken | undefined;

serve({
  async init(payload) {
    if (!isOrder(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    opened = await openToken(payload);
    return describeToken(opened.token);
  },
  methods: {
    logIn: () =>
      named(() => {
        const { token, session } = initialized(opened);
        logIn(token, session);
      }),
    generate: () => generateKey(initialized(opened)),
  },
});
