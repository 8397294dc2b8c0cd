/** Sessions of one token, opened on demand and reused; one per concurrent operation. */
import { IsolatedError } from '../../process/protocol.ts';
import { Ck, failureName, type Handle, isLost, LostSession, NoSessionLeft } from './cryptoki.ts';
import type { Token } from './token.ts';
import { TokenFault } from './wire.ts';

/** CK_UNAVAILABLE_INFORMATION as pkcs11js gives it; 0 is CK_EFFECTIVELY_INFINITE. */
const UNKNOWN = 0xffff_ffff;

/** Milliseconds after which a session that fails counts as lost while idle: tokens and firewalls report it in many ways. */
const IDLE = 1000;

const bounded = (limit: number): number => (limit === 0 || limit === UNKNOWN ? Infinity : limit);

export class SessionPool {
  /** Sessions that the token allows at the same time. */
  readonly maximum: number;
  readonly #token: Token;
  readonly #idle: { readonly session: Handle; readonly since: number }[] = [];
  #flags: number = Ck.CKF_SERIAL_SESSION;
  #count = 0;
  /** Of {@link closeIdle}. */
  #generation = 0;

  constructor(token: Token, maximum: number) {
    const { maxSessions } = token.info;
    this.maximum = token.isSerial ? 1 : Math.min(maximum, bounded(maxSessions));
    this.#token = token;
  }

  /**
   * Runs `work` with a session for its exclusive use. The state of a session is unknown after an error of PKCS#11, so it
   * is closed.
   * @throws LostSession if it had been idle; NoSessionLeft if the token opens no more; an error of the module; the error of `work`
   */
  async use<T>(work: (session: Handle) => Promise<T> | T): Promise<T> {
    const idle = this.#idle.pop();
    const session = idle?.session ?? this.#open();
    const mayBeLost = idle !== undefined && performance.now() - idle.since >= IDLE;
    const generation = this.#generation;
    // One that was in use when others were lost may be lost too, although its work was done.
    const release = (): void => {
      if (generation === this.#generation) this.#idle.push({ session, since: performance.now() });
      else this.#close(session);
    };
    try {
      const result = await work(session);
      release();
      return result;
    } catch (error) {
      if (error instanceof IsolatedError) {
        release();
        throw error;
      }
      this.#close(session);
      throw mayBeLost ? new LostSession(failureName(error)) : error;
    }
  }

  /** Whatever took one idle session may have taken the others. */
  closeIdle(): void {
    this.#generation += 1;
    for (const { session } of this.#idle.splice(0)) this.#close(session);
  }

  #open(): Handle {
    if (this.#count >= this.maximum) throw new NoSessionLeft(this.#count);
    const { name } = this.#token;
    try {
      const session = this.#openWith(this.#flags);
      this.#count += 1;
      return session;
    } catch (error) {
      const code = failureName(error);
      if (code === 'CKR_SESSION_COUNT' || (this.#count > 0 && !isLost(error))) throw new NoSessionLeft(this.#count);
      throw new IsolatedError(TokenFault.SESSION, `${name} opens no session: ${code}`);
    }
  }

  #openWith(flags: number): Handle {
    const { lib, slot } = this.#token;
    try {
      return lib.C_OpenSession(slot, flags);
    } catch (error) {
      if (failureName(error) === 'CKR_SESSION_COUNT' || this.#count > 0) throw error;
      try {
        // Some tokens open only read-write sessions.
        const session = lib.C_OpenSession(slot, Ck.CKF_SERIAL_SESSION | Ck.CKF_RW_SESSION);
        this.#flags = Ck.CKF_SERIAL_SESSION | Ck.CKF_RW_SESSION;
        return session;
      } catch {
        throw error;
      }
    }
  }

  #close(session: Handle): void {
    this.#count -= 1;
    try {
      this.#token.lib.C_CloseSession(session);
    } catch {
      // It is already lost.
    }
  }
}
