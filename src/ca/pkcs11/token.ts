/** A PKCS#11 token through graphene-pk11. All calls block: use it only in a child process or a command. */
import type * as graphene from 'graphene-pk11';
import { IsolatedError } from '../../process/protocol.ts';
import { type KeyReference, type TokenAccess, TokenFault } from './wire.ts';

type Graphene = (typeof graphene)['default'];

export interface Token {
  readonly graphene: Graphene;
  readonly module: graphene.Module;
  readonly slot: graphene.Slot;
  /** `token "est"` or `slot 7`, for messages. */
  readonly name: string;
}

/** CKF_OS_LOCKING_OK: asynchronous calls reach the module from several threads. */
const OS_LOCKING_OK = 0x02;

/** Login failed with this PIN; further attempts may lock the token. */
const PIN_FAILURES = new Set([
  'CKR_PIN_INCORRECT',
  'CKR_PIN_INVALID',
  'CKR_PIN_LEN_RANGE',
  'CKR_PIN_EXPIRED',
  'CKR_PIN_LOCKED',
  'CKR_USER_PIN_NOT_INITIALIZED',
]);

/** The CKR_… name of a failed PKCS#11 call, or another error's message. */
export function failureName(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /CKR_[A-Z0-9_]+/.exec(message)?.[0] ?? message;
}

/** Loads the module and finds the token. @throws IsolatedError that says what is missing */
export async function findToken(access: TokenAccess): Promise<Token> {
  const loaded = await loadGraphene();
  let module: graphene.Module;
  try {
    module = loaded.Module.load(access.module, 'pkcs11');
    const { library_parameters: libraryParameters } = access;
    module.initialize({ flags: OS_LOCKING_OK, ...(libraryParameters === undefined ? {} : { libraryParameters }) });
  } catch (error) {
    throw new IsolatedError(TokenFault.MODULE, `cannot use the module ${access.module}: ${failureName(error)}`);
  }
  const name = access.token_label === undefined ? `slot ${String(access.slot)}` : `token "${access.token_label}"`;
  return { graphene: loaded, module, slot: findSlot(module, access, name), name };
}

async function loadGraphene(): Promise<Graphene> {
  try {
    return (await import('graphene-pk11')).default;
  } catch (error) {
    const hint =
      'the optional package graphene-pk11 cannot be loaded; install it with its build tools (python3, make, g++)';
    throw new IsolatedError(TokenFault.LIBRARY, `${hint}: ${failureName(error)}`);
  }
}

function findSlot(module: graphene.Module, access: TokenAccess, name: string): graphene.Slot {
  try {
    const found = slotsOf(module).filter((slot) =>
      access.token_label === undefined
        ? slotId(slot) === access.slot
        : slot.getToken().label.trimEnd() === access.token_label,
    );
    const [slot] = found;
    if (slot === undefined) throw new IsolatedError(TokenFault.SLOT, `there is no ${name}`);
    if (found.length > 1) throw new IsolatedError(TokenFault.SLOT, `${found.length} slots hold a ${name}; use slot`);
    return slot;
  } catch (error) {
    if (error instanceof IsolatedError) throw error;
    throw new IsolatedError(TokenFault.SLOT, `cannot read the slots: ${failureName(error)}`);
  }
}

function slotsOf(module: graphene.Module): graphene.Slot[] {
  const slots = module.getSlots(true);
  return Array.from({ length: slots.length }, (_, i) => slots.items(i));
}

/** The token's mechanisms, as CK_MECHANISM_TYPE. */
export function mechanismsOf({ slot }: Token): ReadonlySet<number> {
  const mechanisms = slot.getMechanisms();
  return new Set(Array.from({ length: mechanisms.length }, (_, i) => mechanisms.items(i).type));
}

/** CK_SLOT_ID, which graphene stores as the platform's unsigned long. */
function slotId(slot: graphene.Slot): number {
  return slot.handle.readUIntLE(0, Math.min(slot.handle.length, 6));
}

/** Opens a session and logs in. @throws IsolatedError; permanent if a retry could lock the token */
export function openSession(token: Token, pin: string, mode: 'read-only' | 'read-write'): graphene.Session {
  const { SERIAL_SESSION, RW_SESSION } = token.graphene.SessionFlag;
  const { slot } = token;
  const flags = mode === 'read-only' ? SERIAL_SESSION : SERIAL_SESSION | RW_SESSION;
  const session = new token.graphene.Session(slot.lib.C_OpenSession(slot.handle, flags), slot, slot.lib);
  try {
    session.login(pin);
    return session;
  } catch (error) {
    session.close();
    const name = failureName(error);
    if (!PIN_FAILURES.has(name)) throw error;
    throw new IsolatedError(TokenFault.PIN, `${token.name} refuses the PIN (${name})`, { permanent: true });
  }
}

export function keyName({ key_label, key_id }: KeyReference): string {
  return key_label === undefined ? `with the id ${String(key_id)}` : `labeled "${key_label}"`;
}

/** All objects of a class that match the reference. */
export function findObjects(
  { graphene: { ObjectClass } }: Token,
  session: graphene.Session,
  objectClass: 'PRIVATE_KEY' | 'PUBLIC_KEY',
  { key_label, key_id }: KeyReference,
): graphene.SessionObject[] {
  const found = session.find({
    class: ObjectClass[objectClass],
    ...(key_label === undefined ? {} : { label: key_label }),
    ...(key_id === undefined ? {} : { id: Buffer.from(key_id, 'hex') }),
  });
  return Array.from({ length: found.length }, (_, i) => found.items(i));
}

/** @throws IsolatedError unless exactly one private key matches the reference */
export function findPrivateKey(
  token: Token,
  session: graphene.Session,
  reference: KeyReference,
): graphene.SessionObject {
  const keys = findObjects(token, session, 'PRIVATE_KEY', reference);
  const [key] = keys;
  const what = `private key ${keyName(reference)}`;
  if (key === undefined) throw new IsolatedError(TokenFault.KEY, `${token.name} has no ${what}`);
  if (keys.length > 1) throw new IsolatedError(TokenFault.KEY, `${token.name} has ${keys.length} ${what}; use key_id`);
  return key;
}

/** Security problems of a private key, one sentence each. */
export function keyWarnings(key: graphene.SessionObject): string[] {
  const { extractable, sensitive } = key.getAttribute({ extractable: null, sensitive: null });
  const warnings: string[] = [];
  if (extractable !== false) warnings.push('the private key is extractable (CKA_EXTRACTABLE): it can leave the token');
  if (sensitive !== true)
    warnings.push('the private key is not sensitive (CKA_SENSITIVE): the token reveals it in plaintext');
  return warnings;
}

/** Sessions of one token, opened on demand and reused; one per concurrent operation. */
export class SessionPool {
  readonly #open: () => graphene.Session;
  readonly #maximum: number;
  readonly #idle: graphene.Session[] = [];
  #count = 0;

  /** @param open opens a logged-in session */
  constructor(maximum: number, open: (first: boolean) => graphene.Session) {
    this.#maximum = maximum;
    this.#open = () => open(this.#count === 0);
  }

  /**
   * A session for exclusive use; give it back or discard it.
   * @throws RangeError if all are in use (the caller limits itself); an error of the module if it has no more
   */
  take(): graphene.Session {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#count >= this.#maximum) throw new RangeError('CKR_SESSION_COUNT: all sessions are in use');
    const session = this.#open();
    this.#count += 1;
    return session;
  }

  giveBack(session: graphene.Session): void {
    this.#idle.push(session);
  }

  /** A session's state is unknown after an error, so it is closed. */
  discard(session: graphene.Session): void {
    this.#count -= 1;
    try {
      session.close();
    } catch {
      // It is already lost.
    }
  }
}
