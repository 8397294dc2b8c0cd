/** Finds a token and logs in to it. All calls block: use it only in a child process. */
import { IsolatedError } from '../../process/protocol.ts';
import { Ck, failureName, type Handle, isLost, type Pkcs11 } from './cryptoki.ts';
import { type FoundToken, type TokenAccess, TokenFault } from './wire.ts';

/** CK_TOKEN_INFO without padding. */
interface TokenInfo {
  readonly label: string;
  readonly manufacturer: string;
  readonly model: string;
  readonly serial: string;
  readonly flags: number;
  readonly maxSessions: number;
}

export interface Token {
  readonly lib: Pkcs11;
  readonly slot: Handle;
  readonly info: TokenInfo;
  /** `token "est"` or `slot 7`, for messages. */
  readonly name: string;
  /** The same for every name of the token. */
  readonly identity: string;
  /** The module must not be called from two threads. */
  readonly isSerial: boolean;
  readonly pin: string | undefined;
  /** Why a login failed: there is no other. */
  refusal?: IsolatedError;
}

/** Loads the module and finds the token. @throws IsolatedError that says what is missing */
export async function findToken(access: TokenAccess): Promise<Token> {
  const { lib, isSerial } = initialize(await loadLibrary(access.module), access);
  const wanted = wantedName(access);
  const shown = tokensOf(lib, access, wanted);
  const [found, ...others] = shown.filter(({ slot, info }) => matches(access, slot, info));
  if (found === undefined) throw new IsolatedError(TokenFault.SLOT, `there is no ${wanted}; ${listed(shown)}`);
  if (others.length > 0)
    throw new IsolatedError(
      TokenFault.SLOT,
      `${others.length + 1} slots hold a ${wanted}; use slot, or uri with a serial: ${listed([found, ...others])}`,
    );
  const { slot, info } = found;
  const { label, manufacturer, model, serial } = info;
  const isTwin = (other: ShownToken): boolean =>
    other !== found && other.info.serial === serial && other.info.label === label && other.info.model === model;
  const identity = [access.library_parameters ?? '', label, manufacturer, model, serial];
  if (shown.some(isTwin)) identity.push(slotNumber(slot));
  const name = access.token_label === undefined && label !== '' ? `token "${label}"` : wanted;
  return { lib, slot, info, name, identity: identity.join('\0'), isSerial, pin: access.pin };
}

async function loadLibrary(path: string): Promise<Pkcs11> {
  let loaded;
  try {
    loaded = (await import('graphene-pk11')).default;
  } catch (error) {
    const hint =
      'the optional package graphene-pk11 cannot be loaded; run "npm rebuild graphene-pk11 pkcs11js", which needs python3, make and g++';
    throw new IsolatedError(TokenFault.LIBRARY, `${hint}: ${failureName(error)}`);
  }
  try {
    return loaded.Module.load(path).lib;
  } catch (error) {
    throw new IsolatedError(TokenFault.MODULE, `cannot use the module ${path}: ${failureName(error)}`);
  }
}

function initialize(lib: Pkcs11, { module, library_parameters }: TokenAccess): { lib: Pkcs11; isSerial: boolean } {
  // pkcs11js drops the last octet.
  const parameters = library_parameters === undefined ? {} : { libraryParameters: `${library_parameters} ` };
  // Signatures come from several threads.
  for (const flags of [Ck.CKF_OS_LOCKING_OK, 0])
    try {
      lib.C_Initialize({ flags, ...parameters });
      return { lib, isSerial: flags === 0 };
    } catch (error) {
      const name = failureName(error);
      if (name === 'CKR_CRYPTOKI_ALREADY_INITIALIZED') break;
      if (name !== 'CKR_CANT_LOCK' || flags === 0) {
        const hint = name === 'CKR_ARGUMENTS_BAD' && library_parameters === undefined;
        const advice = hint ? '; it may need library_parameters' : '';
        throw new IsolatedError(TokenFault.MODULE, `cannot initialize the module ${module}: ${name}${advice}`);
      }
    }
  return { lib, isSerial: false };
}

interface ShownToken {
  readonly slot: Handle;
  readonly info: TokenInfo;
}

/** The tokens whose information can be read. @throws IsolatedError if the configured slot's cannot */
function tokensOf(lib: Pkcs11, access: TokenAccess, wanted: string): ShownToken[] {
  const tokens: ShownToken[] = [];
  for (const slot of slotsOf(lib))
    try {
      tokens.push({ slot, info: tokenInfo(lib, slot) });
    } catch (error) {
      if (isSlot(access, slot))
        throw new IsolatedError(TokenFault.SLOT, `cannot read the token in ${wanted}: ${failureName(error)}`);
    }
  return tokens;
}

/** Reads the list again if it is empty, as YKCS11's may be at first, or grew between its length and its content. */
function slotsOf(lib: Pkcs11): Handle[] {
  for (let look = 1; ; look++)
    try {
      const slots = lib.C_GetSlotList(true);
      if (slots.length > 0 || look === 3) return slots;
    } catch (error) {
      const name = failureName(error);
      if (name !== 'CKR_BUFFER_TOO_SMALL' || look === 3)
        throw new IsolatedError(TokenFault.SLOT, `cannot read the list of slots: ${name}`);
    }
}

function tokenInfo(lib: Pkcs11, slot: Handle): TokenInfo {
  const { label, manufacturerID, model, serialNumber, flags, maxSessionCount } = lib.C_GetTokenInfo(slot);
  return {
    label: trimmed(label),
    manufacturer: trimmed(manufacturerID),
    model: trimmed(model),
    serial: trimmed(serialNumber),
    flags,
    maxSessions: maxSessionCount,
  };
}

/** Without blanks at the end, and up to a NUL. */
export const trimmed = (text: string): string => text.replace(/\0.*$/s, '').replace(/ +$/, '');

const isSlot = ({ slot }: TokenAccess, handle: Handle): boolean =>
  slot !== undefined && BigInt(slot) === BigInt(slotNumber(handle));

/** All bits of a CK_SLOT_ID. */
const slotNumber = (handle: Handle): string =>
  (handle.length === 8 ? handle.readBigUInt64LE() : handle.readUIntLE(0, handle.length)).toString();

function matches(access: TokenAccess, slot: Handle, info: TokenInfo): boolean {
  const { token_label, manufacturer, model, serial } = access;
  const isSame = (wanted: string | undefined, found: string): boolean =>
    wanted === undefined || trimmed(wanted) === found;
  return (
    (access.slot === undefined || isSlot(access, slot)) &&
    isSame(token_label, info.label) &&
    isSame(manufacturer, info.manufacturer) &&
    isSame(model, info.model) &&
    isSame(serial, info.serial)
  );
}

function wantedName({ token_label, slot, manufacturer, model, serial }: TokenAccess): string {
  const parts = [
    ...(token_label === undefined ? [] : [`token "${token_label}"`]),
    ...(slot === undefined ? [] : [`slot ${slot}`]),
    ...(serial === undefined ? [] : [`serial number "${serial}"`]),
    ...(model === undefined ? [] : [`model "${model}"`]),
    ...(manufacturer === undefined ? [] : [`manufacturer "${manufacturer}"`]),
  ];
  return parts.length === 0 ? 'token' : parts.join(', ');
}

/** Names in a message. */
const MAX_LISTED = 20;

function listed(tokens: readonly ShownToken[]): string {
  const named = tokens
    .filter(({ info }) => info.label !== '' || (info.flags & Ck.CKF_TOKEN_INITIALIZED) !== 0)
    .map(({ slot, info }) => `"${info.label}" (slot ${slotNumber(slot)}, serial number "${info.serial}")`);
  return named.length === 0 ? 'the module shows no token' : `the module shows ${shortened(named)}`;
}

export const shortened = (names: readonly string[]): string =>
  `${names.slice(0, MAX_LISTED).join(', ')}${names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : ''}`;

/** Failures that say nothing about the PIN; a later login may work. */
const isNoAnswer = (name: string): boolean =>
  name === 'CKR_TOKEN_NOT_PRESENT' || name === 'CKR_DEVICE_REMOVED' || name.startsWith('CKR_SESSION_');

/** Failures of a login with CKU_CONTEXT_SPECIFIC in tokens that do not have it. */
const NO_CONTEXT = new Set(['CKR_OPERATION_NOT_INITIALIZED', 'CKR_USER_TYPE_INVALID', 'CKR_FUNCTION_NOT_SUPPORTED']);

/** The token may mean another PIN: these name it, the others only say that the login failed. */
const isPinFailure = (name: string): boolean => name.startsWith('CKR_PIN_') || name === 'CKR_USER_PIN_NOT_INITIALIZED';

/** An empty PIN means no login; without a PIN, a token that requires a login may ask for it. */
export function describeToken({ identity, info, pin }: Token): FoundToken {
  const loginRequired = (info.flags & Ck.CKF_LOGIN_REQUIRED) !== 0;
  return { identity, loginRequired, loginWanted: pin !== '' && (pin !== undefined || loginRequired) };
}

/** Whether the user is logged in; undefined: the token does not say. @throws an error of the module: the session is lost */
export function isLoggedIn({ lib }: Token, session: Handle): boolean | undefined {
  try {
    const { state } = lib.C_GetSessionInfo(session);
    return state === Ck.CKS_RO_USER_FUNCTIONS || state === Ck.CKS_RW_USER_FUNCTIONS;
  } catch (error) {
    if (isLost(error)) throw error;
    return undefined;
  }
}

/**
 * Logs in, of the whole process or, for one signature, with CKU_CONTEXT_SPECIFIC. Leaves the final try alone.
 * @returns whether the token knows this login
 * @throws IsolatedError `TokenFault.PIN`, permanent: another login could lock the token
 */
export function logIn(token: Token, session: Handle, user: number = Ck.CKU_USER): boolean {
  const { lib, slot, name, pin } = token;
  if (token.refusal !== undefined) throw token.refusal;
  const refuse = (reason: string): never => {
    throw (token.refusal = new IsolatedError(TokenFault.PIN, `${name} ${reason}`, { permanent: true }));
  };
  const { flags } = tokenInfo(lib, slot);
  const isProtected = (flags & Ck.CKF_PROTECTED_AUTHENTICATION_PATH) !== 0;
  const advice = 'log in with another tool, or reset the PIN, and then reload';
  if ((flags & Ck.CKF_USER_PIN_LOCKED) !== 0) refuse(`has locked its PIN (CKF_USER_PIN_LOCKED): ${advice}`);
  if ((flags & Ck.CKF_USER_PIN_FINAL_TRY) !== 0)
    refuse(`allows one more try of its PIN (CKF_USER_PIN_FINAL_TRY), which Estuary does not use: ${advice}`);
  if (pin === undefined && !isProtected) refuse('requires a PIN: set pin_file or pin_env');
  try {
    // With a PIN pad or the like, the token asks for the PIN.
    lib.C_Login(session, user, isProtected ? '' : pin);
    return true;
  } catch (error) {
    const code = failureName(error);
    if (code === 'CKR_USER_ALREADY_LOGGED_IN') return true;
    if (user === Ck.CKU_CONTEXT_SPECIFIC && NO_CONTEXT.has(code)) return false;
    if (isNoAnswer(code)) throw error;
    return refuse(isPinFailure(code) ? `refuses the PIN (${code})` : `refuses the login (${code})`);
  }
}
