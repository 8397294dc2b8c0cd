/** What the process counts, in Prometheus' text format. docs/reference/metrics.md lists it. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { AuditEvent } from './audit/event.ts';
import { onDependencyCall } from './dependency-calls.ts';
import { logState } from './log.ts';
import { Rejections } from './rejections.ts';
import { renderState, type ServiceState } from './service-state-metrics.ts';

/** Milliseconds between samples of the event loop delay. */
const RESOLUTION = 20;

interface AnsweredRequest {
  /** From a fixed set, never client text. */
  readonly operation: string | undefined;
  /** A configured label. */
  readonly ca?: string | undefined;
  readonly code?: string | undefined;
  /** For the log. A missing credential has none. */
  readonly detail?: string | undefined;
  readonly ms: number;
}

const REQUEST_BUCKETS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const CALL_BUCKETS = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5];

/** Label value for administrators' authentication. */
const ADMIN = 'admin';

export class Metrics {
  /** For the overview. */
  readonly rejections = new Rejections();
  /** Not prom-client's global registry: a test has several in a process. */
  readonly #registry = new Registry();
  readonly #requests = this.#counter(
    'estuary_requests_total',
    'Responses by listener, operation, CA and status. Status none: the client disconnected first.',
    ...(['listener', 'operation', 'ca', 'status'] as const),
  );
  readonly #durations = this.#histogram(
    'estuary_request_duration_seconds',
    'Seconds from the head of a request to the end of its response.',
    REQUEST_BUCKETS,
    ...(['listener', 'operation', 'ca', 'status'] as const),
  );
  readonly #refusals = this.#counter(
    'estuary_refusals_total',
    'Error responses by code (docs/reference/errors.md).',
    ...(['listener', 'code'] as const),
  );
  readonly #handshakes = this.#counter('estuary_tls_handshake_failures_total', 'Failed TLS handshakes.', 'listener');
  readonly #issued = this.#counter('estuary_certificates_issued_total', 'Certificates issued.', 'ca');
  readonly #revoked = this.#counter('estuary_certificates_revoked_total', 'Certificates revoked.', 'ca');
  readonly #notifications = this.#counter(
    'estuary_notifications_total',
    'Events for receivers of notifications: delivered, failed attempts, and given up.',
    ...(['name', 'outcome'] as const),
  );
  readonly #queued = this.#counter('estuary_requests_queued_total', 'Requests queued for approval.', 'ca');
  readonly #authentications = this.#counter(
    'estuary_authentications_total',
    'Accepted and rejected credentials by method.',
    ...(['method', 'outcome'] as const),
  );
  readonly #authenticationFailures = this.#counter(
    'estuary_authentication_failures_total',
    'Rejected credentials.',
    'method',
  );
  readonly #calls = this.#histogram(
    'estuary_dependency_call_duration_seconds',
    'Seconds of calls to CAs (signatures), HSM, GSSAPI, Dogtag and the store (store_write ends with the commit).',
    CALL_BUCKETS,
    ...(['dependency', 'ca', 'outcome'] as const),
  );
  readonly #authorizations = this.#histogram(
    'estuary_authorization_seconds',
    'Calls to external authorization services ([ca.authorization]).',
    CALL_BUCKETS,
    ...(['ca', 'outcome'] as const),
  );
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  #endCalls: () => void = () => undefined;

  constructor() {
    observeProcess(this.#registry, () => this.#eventLoopDelay());
  }

  /** Starts measuring the event loop, and calls to dependencies. */
  start(): void {
    this.#delay.enable();
    this.#endCalls = onDependencyCall(({ seconds, ...labels }) => this.#calls.observe(labels, seconds));
  }

  /** Counts a response, or a request whose client disconnected first. */
  countRequest(listener: string, request: AnsweredRequest, status: number | undefined): void {
    const { operation = 'unknown', ca = '', code, detail, ms } = request;
    const labels = { listener, operation, ca, status: status ?? 'none' };
    this.#requests.inc(labels);
    this.#durations.observe(labels, ms / 1000);
    if (code === undefined) return;
    this.#refusals.inc({ listener, code });
    if (listener === 'est' || (listener === ADMIN && status === 401 && detail !== undefined))
      this.rejections.count(ca, code);
  }

  countHandshakeFailure(listener: string): void {
    this.#handshakes.inc({ listener });
  }

  countNotification(name: string, outcome: 'delivered' | 'failed' | 'given_up', count: number): void {
    this.#notifications.inc({ name, outcome }, count);
  }

  /** Counts a call of an external service, and its duration. */
  countAuthorization(ca: string, outcome: 'allowed' | 'denied' | 'failed', seconds: number): void {
    this.#authorizations.observe({ ca, outcome }, seconds);
  }

  /** Counts committed events. */
  observe(events: readonly AuditEvent[]): void {
    for (const { type, outcome, ca = '', label = ca } of events) {
      if (type === 'certificate.issued') this.#issued.inc({ ca: label });
      else if (type === 'certificate.revoked') this.#revoked.inc({ ca: label });
      else if (type === 'request.queued') this.#queued.inc({ ca });
      // Administrators are counted per call.
      else if (type === 'auth.admin' && outcome === 'success') continue;
      else if (type.startsWith('auth.')) this.#countAuthentication(type.slice('auth.'.length), outcome);
    }
  }

  /** Counts an administrator's valid credential, which has no audit event. */
  countAdmin(): void {
    this.#countAuthentication(ADMIN, 'success');
  }

  #countAuthentication(method: string, outcome: AuditEvent['outcome']): void {
    this.#authentications.inc({ method, outcome });
    if (outcome === 'failure') this.#authenticationFailures.inc({ method });
  }

  /** Prometheus' text format 0.0.4: counters of this process, and the state of the service. */
  async render(state: ServiceState): Promise<string> {
    const counts = await this.#registry.metrics();
    return counts + (await renderState(state));
  }

  close(): void {
    this.#delay.disable();
    this.#endCalls();
  }

  /** The timer delay since the last call, in seconds by percentile; 0 without samples. */
  #eventLoopDelay(): [percentile: number, seconds: number][] {
    // Samples include the whole interval.
    const seconds = (nanoseconds: number): number =>
      this.#delay.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000);
    const delays: [number, number][] = [50, 99].map((percentile) => [
      percentile,
      seconds(this.#delay.percentile(percentile)),
    ]);
    delays.push([100, seconds(this.#delay.max)]);
    this.#delay.reset();
    return delays;
  }

  #counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: Label[]
  ): Histogram<Label> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }
}
/** Process metrics, read at each scrape. */
function observeProcess(registry: Registry, eventLoopDelay: () => [percentile: number, seconds: number][]): void {
  const registers = [registry];
  new Gauge({
    name: 'estuary_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape.',
    // Prometheus reserves the label `quantile` for summaries.
    labelNames: ['percentile'],
    registers,
    collect() {
      for (const [percentile, seconds] of eventLoopDelay()) this.set({ percentile }, seconds);
    },
  });
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time used.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Counter({
    name: 'estuary_log_lines_lost_total',
    help: 'Log lines that standard output did not accept.',
    registers,
    collect() {
      this.reset();
      this.inc(logState().lost);
    },
  });
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory used.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  const start = Math.round(Date.now() / 1000 - process.uptime());
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start time of the process.',
    registers,
  }).set(start);
}
