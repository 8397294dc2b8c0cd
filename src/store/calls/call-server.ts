/** Carries calls out for whoever is connected: one caller of the own process, or the processes of a service. */
import type { Call, Reply, Request, Response } from './calls.ts';
import { monotonic } from './clock.ts';
import { LEASE } from './revoked-serials.ts';
import type { Role } from './role.ts';

/** Calls that share a transaction at most: one that waits in the next does not wait long. */
const MAX_GROUP = 256;
/** Milliseconds until nobody goes by what he knew before: timers may be early. */
const UNTIL_FORGOTTEN = LEASE + 100;

/** The other end of a connection. */
export interface Peer {
  send(response: Response): void;
  /** Everything is answered that was asked. */
  end(): void;
}

/** A connection, as the one who reads from it sees it. */
export interface Session {
  take(request: Request): void;
  /** It is over; calls that have not begun are not carried out. */
  drop(): void;
}

interface Waiting {
  readonly session: Connected;
  readonly call: Call;
}

/** Replies that wait until every caller knows what was revoked with them. */
interface Held {
  readonly unaware: Set<Connected>;
  readonly release: () => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Collects the calls of all connections while a group is being carried out, and carries them out together: the more come, the more share a
 * commit. What is revoked is told to all before it is answered.
 */
export class CallServer {
  readonly #role: Role;
  readonly #connected = new Set<Connected>();
  #waiting: Waiting[] = [];
  readonly #held = new Map<number, Held>();
  #lastHeld = 0;
  #scheduled = false;
  /** The group that is being carried out, where that takes more than this turn. */
  #underWay: Promise<void> | undefined;
  /** Until then somebody who is not connected may go by what he knew. */
  #doubtUntil = -Infinity;

  constructor(role: Role) {
    this.#role = role;
  }

  /** There are, or may be, processes that do not know yet that they are not connected: what is revoked is answered once they do. */
  doubt(): void {
    this.#doubtUntil = monotonic() + UNTIL_FORGOTTEN;
  }

  connect(peer: Peer): Session {
    const session = new Connected(peer, this);
    this.#connected.add(session);
    peer.send({ ready: this.#role.operations, revoked: this.#role.revocations?.known() });
    return session;
  }

  /** Resolves when nothing is being carried out that was begun before. */
  async settled(): Promise<void> {
    await this.#underWay;
  }

  /** Tells everybody that it is there. */
  beat(): void {
    for (const session of this.#connected) session.send({ alive: true });
  }

  take(session: Connected, calls: readonly Call[]): void {
    for (const call of calls) this.#waiting.push({ session, call });
    this.#schedule();
  }

  drop(session: Connected): void {
    this.#connected.delete(session);
    this.#waiting = this.#waiting.filter((waiting) => waiting.session !== session);
    for (const id of this.#held.keys()) this.confirm(session, id);
  }

  confirm(session: Connected, id: number): void {
    const held = this.#held.get(id);
    held?.unaware.delete(session);
    if (held?.unaware.size !== 0) return;
    clearTimeout(held.timer);
    this.#held.delete(id);
    held.release();
  }

  /** After everything that has come by now: it shares the transaction. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay !== undefined || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#run(this.#waiting.splice(0, MAX_GROUP));
      this.#schedule();
    });
  }

  #run(group: readonly Waiting[]): void {
    if (group.length === 0) return;
    const replies = this.#role.carryOut(group.map(({ call }) => call));
    if (!(replies instanceof Promise)) {
      this.#answer(group, replies);
      return;
    }
    this.#underWay = replies.then((all) => {
      this.#underWay = undefined;
      this.#answer(group, all);
      this.#schedule();
    });
  }

  #answer(group: readonly Waiting[], replies: readonly Reply[]): void {
    const answers = new Map<Connected, Reply[]>();
    for (const [index, reply] of replies.entries()) {
      const session = group[index]?.session;
      if (session === undefined) continue;
      const own = answers.get(session);
      if (own === undefined) answers.set(session, [reply]);
      else own.push(reply);
    }
    const release = (): void => {
      for (const [session, own] of answers) session.answer(own);
    };
    const revoked = this.#role.revocations?.take() ?? [];
    if (revoked.length === 0) release();
    else this.#tellRevoked(revoked, release);
  }

  /** Whoever does not say that it knows will not go by what it knew after {@link LEASE}. */
  #tellRevoked(revoked: readonly string[], release: () => void): void {
    const id = ++this.#lastHeld;
    for (const session of this.#connected) session.send({ revoked, confirm: id });
    const doubt = this.#doubtUntil - monotonic();
    // To one alone, messages keep their order: it knows before it is answered.
    if (this.#connected.size < 2 && doubt <= 0) release();
    else if (doubt > 0) setTimeout(release, Math.max(doubt, UNTIL_FORGOTTEN));
    else this.#hold(id, release);
  }

  #hold(id: number, release: () => void): void {
    const unaware = new Set(this.#connected);
    const timer = setTimeout(() => {
      this.#held.delete(id);
      release();
    }, UNTIL_FORGOTTEN);
    this.#held.set(id, { unaware, release, timer });
  }
}

class Connected implements Session {
  readonly #peer: Peer;
  readonly #server: CallServer;
  /** Calls without an answer. */
  #open = 0;
  #closing = false;
  #over = false;

  constructor(peer: Peer, server: CallServer) {
    this.#peer = peer;
    this.#server = server;
  }

  take(request: Request): void {
    if (this.#over || this.#closing) return;
    if ('calls' in request) {
      this.#open += request.calls.length;
      this.#server.take(this, request.calls);
    } else if ('confirmed' in request) this.#server.confirm(this, request.confirmed);
    else if ('close' in request) {
      this.#closing = true;
      this.#endIfDone();
    }
  }

  send(response: Response): void {
    if (!this.#over) this.#peer.send(response);
  }

  answer(replies: readonly Reply[]): void {
    this.send({ replies });
    this.#open -= replies.length;
    this.#endIfDone();
  }

  drop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#server.drop(this);
  }

  #endIfDone(): void {
    if (!this.#closing || this.#open > 0 || this.#over) return;
    this.drop();
    this.#peer.end();
  }
}
