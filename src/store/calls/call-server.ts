/** Carries out the calls of the one caller that a thread of the store has. */
import type { Call, Request, Response } from './calls.ts';
import type { Role } from './role.ts';

/** Most calls in one transaction, so that a call in the next transaction does not wait long. */
const MAX_GROUP = 256;

/** The caller's end of the connection. */
export interface Peer {
  send(response: Response): void;
  /** Called once, after every call is answered. */
  end(): void;
}

/**
 * Collects calls while a group is being carried out, and carries them out together: the more calls arrive, the more share a commit. A
 * response names the serial numbers that its group revoked, so the caller knows them before it reads an answer.
 */
export class CallServer {
  readonly #role: Role;
  readonly #peer: Peer;
  #waiting: Call[] = [];
  #scheduled = false;
  /** A group whose replies take more than one turn of the event loop. */
  #underWay = false;
  #closing = false;

  constructor(role: Role, peer: Peer) {
    this.#role = role;
    this.#peer = peer;
    peer.send({ ready: role.operations, revoked: role.revocations?.known() });
  }

  take(request: Request): void {
    if (this.#closing) return;
    if ('calls' in request) this.#waiting.push(...request.calls);
    else this.#closing = true;
    this.#schedule();
  }

  /** Runs after every message that has arrived by now, so that their calls share the transaction. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay) return;
    if (this.#waiting.length === 0) {
      if (this.#closing) this.#peer.end();
      return;
    }
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#run(this.#waiting.splice(0, MAX_GROUP));
    });
  }

  #run(group: readonly Call[]): void {
    const replies = this.#role.carryOut(group);
    if (!(replies instanceof Promise)) {
      this.#peer.send({ replies, revoked: this.#role.revocations?.take() });
      this.#schedule();
      return;
    }
    this.#underWay = true;
    void replies.then((all) => {
      this.#underWay = false;
      this.#peer.send({ replies: all });
      this.#schedule();
    });
  }
}
