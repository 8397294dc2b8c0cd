/**
 * The logins of this process. A rejected PIN counts against the token's limit of tries, so it is tried once for all CAs
 * with keys in the token, whatever names they use for it, until the next reload.
 */
import { createHash } from 'node:crypto';
import type { ChildCall } from '../../process/isolated-process.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { type FoundToken, isFoundToken, TokenFault } from './wire.ts';

/** By token and PIN: why the login failed. */
const rejected = new Map<string, string>();
/** By token: the end of the last login. Two concurrent logins would both see a token that allows one more try. */
const turns = new Map<string, Promise<unknown>>();

/** A reload allows one more try of each PIN. */
export function forgetRejectedPins(): void {
  rejected.clear();
}

const idOf = (token: string, pin: string | undefined): string =>
  createHash('sha256')
    .update(`${token}\0${pin ?? ''}`)
    .digest('hex');

/** A login for one signature failed. */
export function rememberRejectedPin(token: FoundToken | undefined, pin: string | undefined, reason: string): void {
  const id = idOf(token?.identity ?? '', pin);
  if (!rejected.has(id)) rejected.set(id, reason);
}

/**
 * Logs in unless this PIN was rejected before. A token may refuse a login that it does not require.
 * @throws IsolatedError `TokenFault.PIN`, permanent, if the login failed now or before; another error of `login`
 */
export async function logInOnce(
  { identity: token, loginRequired }: FoundToken,
  pin: string | undefined,
  login: () => Promise<unknown>,
): Promise<void> {
  const id = idOf(token, pin);
  const attempt = async (): Promise<void> => {
    const reason = rejected.get(id);
    if (reason !== undefined)
      throw new IsolatedError(TokenFault.PIN, `${reason}; it is not tried again before a reload`, { permanent: true });
    try {
      await login();
    } catch (error) {
      if (error instanceof IsolatedError && error.code === TokenFault.PIN) rejected.set(id, error.message);
      throw error;
    }
  };
  const turn = (turns.get(token) ?? Promise.resolve()).then(attempt);
  turns.set(
    token,
    turn.catch(() => undefined),
  );
  try {
    await turn;
  } catch (error) {
    if (loginRequired || !(error instanceof IsolatedError && error.code === TokenFault.PIN)) throw error;
  }
}

/** The `opened` of a process whose `init` returns the token, and which has a method `logIn`. */
export const loggedIn =
  (pin: string | undefined) =>
  async (call: ChildCall, found: unknown): Promise<void> => {
    if (!isFoundToken(found)) throw new TypeError('not a token');
    if (found.loginWanted) await logInOnce(found, pin, () => call('logIn'));
  };
