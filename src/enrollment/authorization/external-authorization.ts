/** `[ca.authorization]`: somebody else's word on a request, once for each (docs/reference/authorization.md). */
import { clientTls } from '../../ca/remote/client-tls.ts';
import { type ClientTls, HttpClient, TransportError } from '../../https-client.ts';
import type { LabelMaterial } from '../../config/material/material.ts';
import type { CaConfig } from '../../config/schema.ts';
import { describe, type EstuaryError, forbidden, unavailable } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { InputError } from '../../pki/input-error.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import type { RequestOverride } from '../../store/request-store.ts';
import { type AuthorizationRequest, type Decision, readAnswer } from './messages.ts';

/** Limits of a service: at most 64 KiB per response. Servers close idle connections after five seconds or more. */
const LIMITS = { maxAnswer: 64 << 10, keepAlive: 4000 };

/** No valid response; the message is for the log. */
class ServiceError extends Error {}

type AuthorizationConfig = NonNullable<CaConfig['authorization']>;

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
  readonly #client: HttpClient;
  /** Path and query of the service's URL. */
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #limiter: FairLimiter;
  readonly #timeout: number;

  constructor({ url, bearer_token, timeout, max_calls: calls }: AuthorizationConfig, tls: ClientTls) {
    const { origin, pathname, search } = new URL(url);
    this.#client = new HttpClient(origin, tls, { ...LIMITS, maxConnections: calls });
    this.#path = `${pathname}${search}`;
    const token = bearer_token?.reveal().toString('utf8');
    this.#headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    };
    const queue = calls * WAITING_PER_CALL;
    this.#limiter = new FairLimiter({
      concurrency: calls,
      queue,
      perKey: { concurrency: Math.ceil(calls * SHARE_OF_ONE), queue },
      busy: (detail) => new ServiceError(detail),
    });
    this.#timeout = timeout * 1000;
  }

  /** One POST without retries or redirects. @throws ServiceError; TransportError; InputError */
  ask(request: AuthorizationRequest): Promise<Decision> {
    const deadline = Date.now() + this.#timeout;
    const body = Buffer.from(JSON.stringify(request), 'utf8');
    return this.#limiter.run(
      async () => {
        const call = { method: 'POST', path: this.#path, headers: this.#headers, body, deadline } as const;
        const answer = await this.#client.call(call);
        if (answer.status !== 200) throw new ServiceError(`responded with status ${answer.status}`);
        return readAnswer(answer.body);
      },
      { waitMs: this.#timeout },
    );
  }

  close(): void {
    this.#client.close();
  }
}

type AuthorizedCa = Pick<LabelMaterial, 'table' | 'authorization'>;

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
      services.set(label, new Service(authorization, clientTls(material ?? {})));
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
  async decide(recognition: string, request: AuthorizationRequest): Promise<RequestOverride> {
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
      if (error instanceof ServiceError || error instanceof TransportError || error instanceof InputError)
        throw this.failure(request, describe(error));
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
