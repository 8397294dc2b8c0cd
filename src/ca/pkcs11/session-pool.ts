import type * as graphene from 'graphene-pk11';

/** Sessions of one token, one for each operation in flight, opened when needed and kept. */
export class SessionPool {
  readonly #open: () => graphene.Session;
  readonly #maximum: number;
  readonly #idle: graphene.Session[] = [];
  #count = 0;

  /** @param open opens a session, logged in */
  constructor(maximum: number, open: (first: boolean) => graphene.Session) {
    this.#maximum = maximum;
    this.#open = () => open(this.#count === 0);
  }

  /**
   * A session of the caller's own, to be given back or discarded.
   * @throws RangeError when all are taken; the caller limits itself. What the module throws when it has no more.
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

  /** After an error nobody knows what state a session is in: it is closed. */
  discard(session: graphene.Session): void {
    this.#count -= 1;
    try {
      session.close();
    } catch {
      // It was lost already, which is as good as closed.
    }
  }
}
