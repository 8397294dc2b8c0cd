/**
 * Overload by handshakes: they cost more than anything that follows, and have cost it before there is a request to refuse. Where a crowd of
 * them is under way and the event loop is late, new connections are closed at once, so that those that have begun come to their end.
 * Neither alone is overload: many slow clients do not make the loop late, and a busy machine does without a crowd.
 */

/** Connections that have not become secure yet. */
const CROWD = 400;
/** Milliseconds that the event loop is late. */
const LATE = 250;
/** Milliseconds between looks. */
const INTERVAL = 50;

export class Crowd {
  #handshakes = 0;
  #lateness = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Whether one more handshake is one too many. */
  get isTooMuch(): boolean {
    return this.#handshakes >= CROWD && this.#lateness >= LATE;
  }

  /** A connection has come. @returns what is to be called when it is secure, or gone */
  began(): () => void {
    this.#handshakes++;
    this.#watch();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#handshakes--;
    };
  }

  /** Looks at the clock only as long as somebody shakes hands. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    let due = performance.now() + INTERVAL;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#lateness = now - due;
      due = now + INTERVAL;
      if (this.#handshakes > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#lateness = 0;
    }, INTERVAL);
    this.#timer.unref();
  }
}
