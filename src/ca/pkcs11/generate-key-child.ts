/** Child process that generates a CA key inside a token. */
import { randomBytes } from 'node:crypto';
import type * as graphene from 'graphene-pk11';
import { oid } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { mlDsaOf } from '../../pki/x509/key-pair.ts';
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { serve } from '../../process/serve.ts';
import { MlDsa, PARAMETER_SETS } from './formats.ts';
import { failureName, findObjects, findToken, keyName, mechanismsOf, openSession, type Token } from './token.ts';
import { type KeyGeneration, type NewKeyNames, TokenFault, type TokenKeyType } from './wire.ts';

/**
 * Generates a key pair that never leaves the token: a private, sensitive, non-extractable token object for signing
 * only.
 * @throws IsolatedError with a {@link TokenFault} code, also if the name is in use
 */
async function generateKey({ access, reference, type, label }: KeyGeneration): Promise<NewKeyNames> {
  const token = await findToken(access);
  try {
    const session = openSession(token, access.pin, 'read-write');
    for (const kind of ['PRIVATE_KEY', 'PUBLIC_KEY'] as const)
      if (findObjects(token, session, kind, reference).length > 0)
        throw new IsolatedError(TokenFault.KEY, `${token.name} already has a key ${keyName(reference)}`);
    const id = reference.key_id === undefined ? randomBytes(16) : Buffer.from(reference.key_id, 'hex');
    const names = { label: reference.key_label ?? label, id };
    generate(token, session, type, names);
    return names;
  } catch (error) {
    if (error instanceof IsolatedError) throw error;
    throw new IsolatedError(TokenFault.KEY, `${token.name} cannot create a ${type} key: ${failureName(error)}`);
  } finally {
    token.module.finalize();
  }
}

function generate(
  token: Token,
  session: graphene.Session,
  type: TokenKeyType,
  names: { label: string; id: Buffer },
): void {
  const mechanism = mechanismOf(token, type);
  if (!mechanismsOf(token).has(mechanism))
    throw new IsolatedError(
      TokenFault.KEY,
      `${token.name} cannot create ${type} keys: its PKCS#11 library does not support them`,
    );
  const both = { ...names, token: true };
  session.generateKeyPair(
    mechanism,
    { ...both, verify: true, ...parameters(token, type) },
    { ...both, private: true, sensitive: true, extractable: false, sign: true, decrypt: false, unwrap: false },
  );
}

function mechanismOf({ graphene: { KeyGenMechanism } }: Token, type: TokenKeyType): number {
  if (mlDsaOf(type) !== undefined) return MlDsa.CKM_ML_DSA_KEY_PAIR_GEN;
  return type.startsWith('rsa:') ? KeyGenMechanism.RSA : KeyGenMechanism.EC;
}

function parameters(token: Token, type: TokenKeyType): graphene.ITemplate {
  switch (type) {
    case 'ml-dsa:44':
    case 'ml-dsa:65':
    case 'ml-dsa:87':
      // graphene addresses attributes by name and lacks this one.
      token.graphene.registerAttribute('parameterSet', MlDsa.CKA_PARAMETER_SET, 'number');
      return { parameterSet: PARAMETER_SETS[type], keyType: MlDsa.CKK_ML_DSA };
    case 'ec:P-256':
      return { paramsEC: oid(OID.secp256r1) };
    case 'ec:P-384':
      return { paramsEC: oid(OID.secp384r1) };
    case 'rsa:2048':
    case 'rsa:3072':
    case 'rsa:4096':
      return { modulusBits: Number(type.slice(4)), publicExponent: Buffer.from([1, 0, 1]) };
  }
}

/** The parent is the same program, so the payload has this shape. */
const isOrder = (payload: unknown): payload is KeyGeneration =>
  isObject(payload) && 'access' in payload && 'reference' in payload;

let order: KeyGeneration | undefined;

serve({
  init(payload) {
    if (!isOrder(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    order = payload;
  },
  methods: {
    generate() {
      if (order === undefined) throw new IsolatedError('NOT_READY', 'called before init');
      return generateKey(order);
    },
  },
});
