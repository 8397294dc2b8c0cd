/** What the process counts, in Prometheus' text format; with several workers, what all of them count. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Registry } from 'prom-client';
import type { AuditEvent } from './audit/event.ts';

/** How often the event loop is asked whether it is late, in milliseconds. */
const RESOLUTION = 20;

/** What is known of a CA when somebody asks for the metrics. */
export interface CaGauge {
  readonly label: string;
  readonly up: boolean;
  /** Milliseconds since the epoch; undefined while it is not known. */
  readonly not_after: number | undefined;
}

/** A request as it is counted. */
export interface AnsweredRequest {
  /** One of a fixed few, never what a client made up. */
  readonly operation: string | undefined;
}

/** The metrics of one process as prom-client aggregates them: plain objects that pass between processes as JSON. */
export type MetricFamilies = readonly object[];

/** Asks all processes of the service, this one among them; resolves with their sum in Prometheus' text format. */
export type CollectFromAll = () => Promise<string>;

export class Metrics {
  /** Its own, not prom-client's global one: a test has many in a process. */
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: 'estuary_requests_total',
    help: 'Answers, by operation.',
    labelNames: ['listener', 'operation', 'status'],
    registers: [this.#registry],
  });
  readonly #issued = new Counter({
    name: 'estuary_certificates_issued_total',
    help: 'Certificates issued.',
    labelNames: ['ca'],
    registers: [this.#registry],
  });
  readonly #authenticationFailures = new Counter({
    name: 'estuary_authentication_failures_total',
    help: 'Credentials that were refused.',
    labelNames: ['method'],
    registers: [this.#registry],
  });
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #collectFromAll: CollectFromAll;

  /** @param share where several processes serve: gets what tells this one's metrics, gives what collects those of all */
  constructor(share?: (own: () => Promise<MetricFamilies>) => CollectFromAll) {
    observeProcess(this.#registry, () => this.#eventLoopDelay());
    this.#collectFromAll = share?.(() => this.#registry.getMetricsAsJSON()) ?? (() => this.#registry.metrics());
  }

  /** Begins to measure the event loop. */
  start(): void {
    this.#delay.enable();
  }

  /** Counts an answer, or a request that nobody was there to be answered any more. */
  countRequest(listener: string, { operation }: AnsweredRequest, status: number | undefined): void {
    this.#requests.inc({ listener, operation: operation ?? 'unknown', status: status ?? 'none' });
  }

  /** Counts what these committed events tell of. */
  observe(events: readonly AuditEvent[]): void {
    for (const { type, outcome, ca } of events) {
      if (type === 'certificate.issued') this.#issued.inc({ ca: ca ?? '' });
      else if (type.startsWith('auth.') && outcome === 'failure')
        this.#authenticationFailures.inc({ method: type.slice('auth.'.length) });
    }
  }

  /**
   * Prometheus' text format 0.0.4: the counts of all processes, and the CAs as this one sees them.
   *
   * @throws EstuaryError 503 when a process does not tell its counts: a sum without them would look like a restart
   */
  async render(cas: readonly CaGauge[]): Promise<string> {
    const counts = await this.#collectFromAll();
    return counts + (await caRegistry(cas).metrics());
  }

  close(): void {
    this.#delay.disable();
  }

  /** Seconds by quantile that timers were late since the last time that somebody asked; a fresh histogram has nothing to tell. */
  #eventLoopDelay(): [quantile: number, seconds: number][] {
    // What is measured is the whole time between two questions.
    const seconds = (nanoseconds: number): number =>
      this.#delay.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000);
    const delays: [number, number][] = [0.5, 0.99].map((quantile) => [
      quantile,
      seconds(this.#delay.percentile(quantile * 100)),
    ]);
    delays.push([1, seconds(this.#delay.max)]);
    this.#delay.reset();
    return delays;
  }
}

/** What a process tells of itself, read when it is asked for; `aggregator` says how processes add up. */
function observeProcess(registry: Registry, eventLoopDelay: () => [quantile: number, seconds: number][]): void {
  const registers = [registry];
  new Gauge({
    name: 'estuary_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape.',
    labelNames: ['quantile'],
    registers,
    aggregator: 'max',
    collect() {
      for (const [quantile, seconds] of eventLoopDelay()) this.set({ quantile }, seconds);
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
    help: 'When the process started.',
    registers,
    aggregator: 'max',
  }).set(start);
}

/** Made anew for each scrape, so that nothing of the last one stays. */
function caRegistry(cas: readonly CaGauge[]): Registry {
  const registry = new Registry();
  const registers = [registry];
  const labelNames = ['ca'];
  const up = new Gauge({ name: 'estuary_ca_up', help: '1 while the CA can sign.', labelNames, registers });
  const expiry = new Gauge({
    name: 'estuary_ca_certificate_expiry_timestamp_seconds',
    help: "notAfter of the CA's certificate.",
    labelNames,
    registers,
  });
  for (const { label: ca, up: isUp, not_after: notAfter } of cas) {
    up.set({ ca }, isUp ? 1 : 0);
    if (notAfter !== undefined) expiry.set({ ca }, notAfter / 1000);
  }
  return registry;
}
