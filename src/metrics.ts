/** What the process counts, in Prometheus' text format. Each process counts for itself. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { AuditEvent } from './audit/event.ts';

/** How often the event loop is asked whether it is late, in milliseconds. */
const RESOLUTION = 20;

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

/** A number that only grows, one for each set of labels. */
class Counter {
  readonly #samples = new Map<string, { readonly labels: Labels; value: number }>();

  increment(labels: Labels): void {
    const key = JSON.stringify(labels);
    const sample = this.#samples.get(key) ?? { labels, value: 0 };
    sample.value++;
    this.#samples.set(key, sample);
  }

  samples(): Sample[] {
    return [...this.#samples.values()].map(({ labels, value }) => [labels, value]);
  }
}

/** What is known of a CA when somebody asks for the metrics. */
export interface CaGauge {
  readonly label: string;
  readonly up: boolean;
  /** Milliseconds since the epoch; undefined while it is not known. */
  readonly not_after: number | undefined;
}

export class Metrics {
  readonly #requests = new Counter();
  readonly #issued = new Counter();
  readonly #authenticationFailures = new Counter();
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #labels: Labels;

  /** @param worker tells the processes apart that share the listeners */
  constructor(worker: string) {
    this.#labels = { worker };
    this.#delay.enable();
  }

  /** Counts an answer. `operation` is one of a fixed few, never what a client made up. */
  countRequest(listener: 'est' | 'admin', operation: string, status: number): void {
    this.#requests.increment({ listener, operation, status: String(status) });
  }

  /** Counts what these committed events tell of. */
  observe(events: readonly AuditEvent[]): void {
    for (const { type, outcome, ca } of events) {
      if (type === 'certificate.issued') this.#issued.increment({ ca: ca ?? '' });
      else if (type.startsWith('auth.') && outcome === 'failure')
        this.#authenticationFailures.increment({ method: type.slice('auth.'.length) });
    }
  }

  /** Prometheus' text format 0.0.4. */
  render(cas: readonly CaGauge[]): string {
    const cpu = process.cpuUsage();
    const lines = [
      ...this.#family('estuary_requests_total', 'counter', 'Answers, by operation.', this.#requests.samples()),
      ...this.#family('estuary_certificates_issued_total', 'counter', 'Certificates issued.', this.#issued.samples()),
      ...this.#family(
        'estuary_authentication_failures_total',
        'counter',
        'Credentials that were refused.',
        this.#authenticationFailures.samples(),
      ),
      ...this.#family(
        'estuary_ca_up',
        'gauge',
        '1 while the CA can sign.',
        caSamples(cas, ({ up }) => (up ? 1 : 0)),
      ),
      ...this.#family(
        'estuary_ca_certificate_expiry_timestamp_seconds',
        'gauge',
        "notAfter of the CA's certificate.",
        caSamples(cas, ({ not_after }) => (not_after === undefined ? undefined : not_after / 1000)),
      ),
      ...this.#eventLoopDelay(),
      ...this.#family('process_cpu_seconds_total', 'counter', 'CPU time used.', [[{}, (cpu.user + cpu.system) / 1e6]]),
      ...this.#family('process_resident_memory_bytes', 'gauge', 'Memory used.', [[{}, process.memoryUsage.rss()]]),
      ...this.#family('process_start_time_seconds', 'gauge', 'When the process started.', [
        [{}, Math.round(Date.now() / 1000 - process.uptime())],
      ]),
    ];
    return `${lines.join('\n')}\n`;
  }

  close(): void {
    this.#delay.disable();
  }

  /** How late timers were since the last time that somebody asked; a fresh histogram has nothing to tell. */
  #eventLoopDelay(): string[] {
    // What is measured is the whole time between two questions.
    const seconds = (nanoseconds: number): number =>
      this.#delay.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000);
    const samples: Sample[] = [0.5, 0.99].map((quantile) => [
      { quantile: String(quantile) },
      seconds(this.#delay.percentile(quantile * 100)),
    ]);
    const help = 'Delay of the event loop since the last scrape.';
    const lines = this.#family('estuary_event_loop_delay_seconds', 'gauge', help, [
      ...samples,
      [{ quantile: '1' }, seconds(this.#delay.max)],
    ]);
    this.#delay.reset();
    return lines;
  }

  #family(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string[] {
    return [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...samples.map(([labels, value]) => `${name}{${labelText({ ...labels, ...this.#labels })}} ${value}`),
    ];
  }
}

function caSamples(cas: readonly CaGauge[], value: (ca: CaGauge) => number | undefined): Sample[] {
  return cas.flatMap((ca): Sample[] => {
    const known = value(ca);
    return known === undefined ? [] : [[{ ca: ca.label }, known]];
  });
}

const labelText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(',');

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
