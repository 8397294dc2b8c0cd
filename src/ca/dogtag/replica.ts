/** One Dogtag replica: its availability and the agent's session. */
import { FairLimiter } from '../../process/fair-limiter.ts';
import { HttpClient, TransportError, type ClientTls, type HttpAnswer, type HttpCall } from '../remote/http.ts';
import { complaint, readJson } from './json.ts';
import { measured } from '../../dependency-calls.ts';

/** A subsystem of a Dogtag server, with its own paths and sessions. */
export type Subsystem = 'ca' | 'kra';

/** This replica cannot serve the call; another one may. */
export class ReplicaFault extends Error {
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = 'ReplicaFault';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** The replica works but does not have the object; another one may, since replication lags. */
export class NotHere extends ReplicaFault {
  constructor(message: string) {
    super(message, true);
    this.name = 'NotHere';
  }
}

/** Consecutive faults that take a replica out of use; a failed connection does so at once. */
const FAULTS = 3;
/** Calls that may wait for the agent's session. */
const SESSION_QUEUE = 256;

export type SessionCall = (call: Pick<HttpCall, 'method' | 'path' | 'headers' | 'body'>) => Promise<HttpAnswer>;

export class Replica {
  readonly url: string;
  readonly #subsystem: Subsystem;
  readonly #client: HttpClient;
  readonly #session = new FairLimiter({
    concurrency: 1,
    queue: SESSION_QUEUE,
    busy: (detail) => new NotHere(`the agent's session is busy: ${detail}`),
  });
  #cookie: string | undefined;
  #faults = 0;
  #problem: string | undefined;

  constructor(url: string, subsystem: Subsystem, tls: ClientTls) {
    this.#client = new HttpClient(url, tls);
    this.#subsystem = subsystem;
    this.url = this.#client.url;
  }

  /** Why the replica is out of use; undefined while in use. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @throws ReplicaFault without a complete response */
  async call(call: HttpCall): Promise<HttpAnswer> {
    try {
      return await measured({ dependency: 'dogtag' }, () =>
        this.#client.call({ ...call, headers: { Accept: 'application/json', ...call.headers } }),
      );
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      throw new ReplicaFault(error.message, error.mayHaveArrived, error);
    }
  }

  /**
   * Runs `work` exclusively in the agent's session: nonces are bound to it, and concurrent first calls would open two
   * sessions.
   * @throws ReplicaFault; NotHere if the session is not free before the deadline
   */
  session<T>(deadline: number, work: (call: SessionCall) => Promise<T>): Promise<T> {
    const waitMs = Math.max(0, deadline - Date.now());
    return this.#session.run(() => work((call) => this.#inSession({ ...call, deadline })), { waitMs });
  }

  async #inSession(call: HttpCall): Promise<HttpAnswer> {
    const headers = this.#cookie === undefined ? call.headers : { ...call.headers, Cookie: this.#cookie };
    const answer = await this.call({ ...call, ...(headers === undefined ? {} : { headers }) });
    this.#cookie = cookieOf(answer, this.#subsystem) ?? this.#cookie;
    if (answer.status === 401) this.#cookie = undefined;
    return answer;
  }

  /**
   * Logs in as the agent, which checks the web application, its directory and the account, and puts the replica into or
   * out of use.
   */
  async check(deadline: number): Promise<void> {
    try {
      const answer = await this.session(deadline, (call) =>
        call({ method: 'GET', path: `/${this.#subsystem}/rest/account/login` }),
      );
      if (answer.status === 200 && readJson(answer) !== undefined) this.succeeded();
      else this.#problem = `the agent cannot log in: ${complaint(answer)}`;
    } catch (error) {
      if (error instanceof NotHere) return;
      this.#problem = error instanceof Error ? error.message : String(error);
    }
  }

  succeeded(): void {
    this.#faults = 0;
    this.#problem = undefined;
  }

  /** Counts a fault; {@link check} puts the replica back into use. */
  failed(fault: ReplicaFault): void {
    if (fault instanceof NotHere) return;
    this.#faults += 1;
    if (this.#faults >= FAULTS || !fault.mayHaveArrived) this.#problem = fault.message;
  }

  close(): void {
    this.#client.close();
  }
}

/** The subsystem's session cookie; cookies are bound to a path. */
function cookieOf({ headers }: HttpAnswer, subsystem: Subsystem): string | undefined {
  for (const cookie of headers['set-cookie'] ?? []) {
    const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim());
    const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length);
    if (pair.startsWith('JSESSIONID=') && (path === undefined || path === `/${subsystem}`)) return pair;
  }
  return undefined;
}
