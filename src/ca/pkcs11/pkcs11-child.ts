/** Child process that holds a token's library: it finds the key and signs. */
import type * as graphene from 'graphene-pk11';
import { isObject, IsolatedError } from '../../process/protocol.ts';
import { serve } from '../../process/serve.ts';
import { publicKeyOf, tokenSignature, type TokenSignature } from './formats.ts';
import {
  failureName,
  findObjects,
  findPrivateKey,
  findToken,
  keyWarnings,
  mechanismsOf,
  openSession,
  SessionPool,
  type Token,
} from './token.ts';
import { type KeyDescription, type SignerInit, TokenFault } from './wire.ts';

/** Above the largest signature: ML-DSA-87 has 4,627 octets. */
const MAX_SIGNATURE = 5120;

interface Signing {
  readonly init: SignerInit;
  readonly token: Token;
  readonly key: graphene.SessionObject;
  readonly sessions: SessionPool;
  readonly how: TokenSignature;
  readonly description: KeyDescription;
}

let signing: Signing | undefined;

async function open(init: SignerInit): Promise<Signing> {
  const token = await findToken(init);
  const sessions = new SessionPool(init.max_sessions, (first) =>
    // Login applies to the whole process: the first session logs in, again after all sessions were lost.
    first ? openSession(token, init.pin, 'read-only') : token.slot.open(token.graphene.SessionFlag.SERIAL_SESSION),
  );
  const session = sessions.take();
  const key = findPrivateKey(token, session, init);
  const spki = expectedKey(publicKeyOf(token, session, key), init);
  const how = tokenSignature(spki, mechanismsOf(token));
  const description = { spki, warnings: keyWarnings(key) };
  sessions.giveBack(session);
  return { init, token, key, sessions, how, description };
}

function expectedKey(found: Buffer | undefined, { expectedSpki }: SignerInit): Buffer {
  const expected = expectedSpki === undefined ? undefined : Buffer.from(expectedSpki);
  if (found !== undefined && expected !== undefined && !found.equals(expected))
    throw new IsolatedError(TokenFault.KEY_MISMATCH, 'the private key does not belong to the CA certificate');
  const spki = found ?? expected;
  if (spki === undefined)
    throw new IsolatedError(TokenFault.KEY, 'the token does not contain the public key of the pair');
  return spki;
}

function ready(): Signing {
  if (signing === undefined) throw new IsolatedError('NOT_READY', 'called before init');
  return signing;
}

async function sign(tbs: Buffer): Promise<Buffer> {
  const { key, sessions, how } = ready();
  const input = how.input(tbs);
  const output = Buffer.alloc(MAX_SIGNATURE);
  const session = sessions.take();
  let raw: Buffer;
  try {
    session.lib.C_SignInit(session.handle, { mechanism: how.mechanism }, key.handle);
    raw = await session.lib.C_SignAsync(session.handle, input, output);
  } catch (error) {
    sessions.discard(session);
    throw error;
  }
  sessions.giveBack(session);
  return how.output(keep(raw, input, output));
}

/**
 * Returns the value and keeps the buffers referenced: the library's threads use them, and an unreferenced buffer may be
 * collected during an await.
 */
function keep(value: Buffer, ...buffers: readonly Buffer[]): Buffer {
  return buffers.length > 0 ? Buffer.from(value) : value;
}

/** Checks that the key still exists: a token that vanished shows no objects. */
function check(): void {
  const { token, sessions, init } = ready();
  const session = sessions.take();
  let count: number;
  try {
    count = findObjects(token, session, 'PRIVATE_KEY', init).length;
  } catch (error) {
    sessions.discard(session);
    throw error;
  }
  sessions.giveBack(session);
  if (count !== 1) throw new IsolatedError(TokenFault.KEY, `${token.name} no longer shows its key`);
}

/** Uses the PKCS#11 name as the error code, so that the parent can classify the failure. */
async function named<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof IsolatedError) throw error;
    throw new IsolatedError(failureName(error), error instanceof Error ? error.message : String(error));
  }
}

/** The parent is the same program, so the payload has this shape. */
const isInit = (payload: unknown): payload is SignerInit =>
  isObject(payload) && 'module' in payload && 'pin' in payload;

serve({
  async init(payload) {
    if (!isInit(payload)) throw new IsolatedError('NOT_READY', 'not a start payload');
    signing = await named(() => open(payload));
  },
  methods: {
    describe: () => ready().description,
    sign: (tbs) =>
      named(() => {
        if (!(tbs instanceof Uint8Array)) throw new IsolatedError('NOT_READY', 'nothing to sign');
        return sign(Buffer.from(tbs.buffer, tbs.byteOffset, tbs.byteLength));
      }),
    check: () => named(check),
  },
  close() {
    signing?.token.module.finalize();
  },
});
