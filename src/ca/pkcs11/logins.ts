/**
 * The logins of this process. A rejected PIN counts against the token's limit of tries, so it is tried once for all CAs
 * with keys in the token, whatever names they use for it, until the next reload.
 */
import { createHash } from 'node:crypto';
import { IsolatedError } from '../../process/protocol.ts';
import { TokenFault } from './wire.ts';

/** By token and PIN: why the login failed. */
const rejected = new Map<string, string>();
/** By token: the end of the last login. Two concurrent logins would both see a token that allows one more try. */
const turns = new Map<string, Promise<unknown>>();

/** A reload allows one more try of each PIN. */
export function forgetRejectedPins(): void {
  rejected.clear();
}

/**
 * Logs in unless this PIN was rejected before.
 * @param token the same for every name of the token
 * @throws IsolatedError `TokenFault.PIN`, permanent, if the login failed now or before; another error of `login`
 */
export async function logInOnce(token: string, pin: string, login: () => Promise<unknown>): Promise<void> {
  const id = createHash('sha256').update(`${token}\0${pin}`).digest('hex');
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
  await turn;
}
