/** `[ca.authorization]`: somebody else's word on a request, once for each (docs/reference/authorization.md). */
import { Agent, request as httpsRequest } from 'node:https';
import { type ClientTls, clientTls } from '../../ca/remote/http.ts';
import type { ServiceMaterial } from '../../config/material/material.ts';
import type { CaConfig } from '../../config/schema.ts';
import { describe, type EstuaryError, forbidden, unavailable } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { InputError } from '../../pki/input-error.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import { type AuthorizationRequest, type Decision, type Override, readAnswer } from './messages.ts';

/** The connection to the service: verified TLS, keep-alive, no redirects, bounded time and size. */

/** No valid response; the message is for the log. */
class ServiceError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ServiceError';
  }
}

/** Octets. */
const MAX_ANSWER = 64 << 10;
/** Milliseconds to keep an idle connection: servers close theirs after five seconds or more. */
const KEEP_ALIVE = 4000;

class HttpsService {
  readonly #url: URL;
  readonly #agent: Agent;
  readonly #token: string | undefined;

  /** @param connections maximum */
  constructor(url: string, tls: ClientTls, token: string | undefined, connections: number) {
    this.#url = new URL(url);
    this.#token = token;
    this.#agent = new Agent({
      keepAlive: true,
      timeout: KEEP_ALIVE,
      maxSockets: connections,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true,
      ...tls,
    });
  }

  /**
   * Sends one POST without retries.
   * @param timeout milliseconds until the response is complete
   * @returns the body of a 200
   * @throws ServiceError
   */
  post(json: string, timeout: number): Promise<Buffer> {
    const body = Buffer.from(json, 'utf8');
    return new Promise((resolve, reject) => {
      const request = httpsRequest(this.#url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': body.length,
          Accept: 'application/json',
          ...(this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` }),
        },
      });
      const late = setTimeout(() => request.destroy(new Error('no response in time')), Math.max(0, timeout));
      const fail = (error: Error): void => {
        clearTimeout(late);
        reject(new ServiceError(error.message, error));
      };
      request.on('error', fail);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        if (response.statusCode !== 200) request.destroy(new Error(`responded with status ${response.statusCode}`));
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size > MAX_ANSWER) request.destroy(new Error(`responded with more than ${MAX_ANSWER} bytes`));
        });
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(late);
          resolve(Buffer.concat(chunks));
        });
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

type AuthorizationOutcome = 'allowed' | 'denied' | 'failed';

interface AuthorizationContext {
  readonly log: Pick<Logger, 'warn'>;
  /** Counts a call. */
  readonly observe: (ca: string, outcome: AuthorizationOutcome, seconds: number) => void;
  readonly retryAfter: number;
}

/** Requests that may wait, per concurrent call. */
const WAITING_PER_CALL = 16;
/** One requester's share of the calls, so that others find a free one even while the service is slow. */
const SHARE_OF_ONE = 3 / 4;

class Service {
  readonly #https: HttpsService;
  readonly #limiter: FairLimiter;
  readonly #timeout: number;

  constructor(https: HttpsService, calls: number, timeout: number) {
    this.#https = https;
    const queue = calls * WAITING_PER_CALL;
    this.#limiter = new FairLimiter({
      concurrency: calls,
      queue,
      perKey: { concurrency: Math.ceil(calls * SHARE_OF_ONE), queue },
      busy: (detail) => new ServiceError(detail),
    });
    this.#timeout = timeout;
  }

  /** @throws ServiceError; InputError */
  ask(request: AuthorizationRequest): Promise<Decision> {
    const deadline = performance.now() + this.#timeout;
    return this.#limiter.run(
      async () => readAnswer(await this.#https.post(JSON.stringify(request), deadline - performance.now())),
      { waitMs: this.#timeout },
    );
  }

  close(): void {
    this.#https.close();
  }
}

interface AuthorizedCa {
  readonly table: Pick<CaConfig, 'label' | 'authorization'>;
  readonly authorization: ServiceMaterial | undefined;
}

/** The services of one configuration, by label. */
export class AuthorizationServices {
  readonly #services: ReadonlyMap<string, Service>;

  private constructor(services: ReadonlyMap<string, Service>) {
    this.#services = services;
  }

  /** Creates the services of all labels. Connects to none. */
  static of({ cas, labels }: AuthorizedCas): AuthorizationServices {
    const services = new Map<string, Service>();
    for (const { table, authorization: material } of [...cas, ...[...labels.values()].flat()]) {
      const { label, authorization } = table;
      if (authorization === undefined) continue;
      const { url, bearer_token, timeout, max_calls } = authorization;
      const https = new HttpsService(
        url,
        clientTls(material ?? {}),
        bearer_token?.reveal().toString('utf8'),
        max_calls,
      );
      services.set(label, new Service(https, max_calls, timeout * 1000));
    }
    return new AuthorizationServices(services);
  }

  find(label: string): Service | undefined {
    return this.#services.get(label);
  }

  /** Calls in progress fail. */
  close(): void {
    for (const service of this.#services.values()) service.close();
  }
}

interface AuthorizedCas {
  readonly cas: readonly AuthorizedCa[];
  readonly labels: ReadonlyMap<string, readonly AuthorizedCa[]>;
}

/** The part that requests use. */
export type Authorizer = Pick<ExternalAuthorization, 'concerns' | 'decide' | 'failure'>;

export class ExternalAuthorization {
  #services: AuthorizationServices | undefined;
  readonly #context: AuthorizationContext;
  /** Calls in progress by recognition: identical concurrent requests share one. */
  readonly #underWay = new Map<string, Promise<Decision>>();

  /** Calls no service before {@link take}. */
  constructor(context: AuthorizationContext) {
    this.#context = context;
  }

  /** Puts these services in force. @returns the old ones, to be closed once no call uses them */
  take(services: AuthorizationServices): AuthorizationServices | undefined {
    const former = this.#services;
    this.#services = services;
    return former;
  }

  /** Whether the CA has a service. */
  concerns(ca: string): boolean {
    return this.#services?.find(ca) !== undefined;
  }

  /**
   * @param recognition equal for identical requests
   * @returns the override of the requested content
   * @throws EstuaryError 403 `AUTHORIZATION_DENIED` with the reason; 503 `AUTHORIZATION_FAILED` without a decision
   */
  async decide(recognition: string, request: AuthorizationRequest): Promise<Override> {
    let decision: Promise<Decision> | undefined = this.#underWay.get(recognition);
    if (decision === undefined) {
      decision = this.#ask(request).finally(() => this.#underWay.delete(recognition));
      this.#underWay.set(recognition, decision);
    }
    const decided = await decision;
    if (!decided.allow) throw forbidden('AUTHORIZATION_DENIED', decided.reason);
    return decided.override;
  }

  async #ask(request: AuthorizationRequest): Promise<Decision> {
    const service = this.#services?.find(request.ca);
    if (service === undefined) return { allow: true, override: {} };
    const start = performance.now();
    let outcome: AuthorizationOutcome = 'failed';
    try {
      const decision = await service.ask(request);
      outcome = decision.allow ? 'allowed' : 'denied';
      return decision;
    } catch (error) {
      if (error instanceof ServiceError || error instanceof InputError) throw this.failure(request, describe(error));
      throw error;
    } finally {
      this.#context.observe(request.ca, outcome, (performance.now() - start) / 1000);
    }
  }

  /** 503: no response, or an unusable one. */
  failure({ ca, request_id }: Pick<AuthorizationRequest, 'ca' | 'request_id'>, detail: string): EstuaryError {
    const { log, retryAfter } = this.#context;
    log.warn({ ca, request_id, detail }, 'the authorization service did not decide');
    return unavailable('AUTHORIZATION_FAILED', 'The authorization service is unavailable. Try again later.', {
      detail,
      retryAfter,
    });
  }

  close(): void {
    this.#services?.close();
  }
}
