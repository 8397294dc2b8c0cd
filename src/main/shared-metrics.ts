/**
 * `GET /metrics` over all worker processes (`server.workers` above 1): the worker that is asked asks its supervisor, which
 * collects from all and answers with their sum.
 *
 * prom-client aggregates; its own transport (`AggregatorRegistry.clusterMetrics`) is not used: it asks workers that do not
 * listen yet, whose first message has to be their share, ends the supervisor with an unhandled error where a worker is
 * killed meanwhile, and forgets what a dead worker has counted, which Prometheus would take for a restart of them all.
 */
import { AggregatorRegistry } from 'prom-client';
import { unavailable } from '../errors.ts';
import type { MetricFamilies } from '../metrics.ts';

/** Milliseconds that workers have to tell their metrics: less than Prometheus waits for an answer. */
const LONGEST_WAIT = 3000;

/** What a worker tells its supervisor; `id` is the worker's own in `ask`, the supervisor's in `told`. */
type MetricsRequest =
  | { readonly metrics: 'ask'; readonly id: number }
  | { readonly metrics: 'told'; readonly id: number; readonly families: MetricFamilies };

/** What the supervisor tells a worker. */
export type MetricsMessage =
  | { readonly metrics: 'tell'; readonly id: number }
  | { readonly metrics: 'sum'; readonly id: number; readonly text: string };

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isRequest(value: unknown): value is MetricsRequest {
  if (!isObject(value) || typeof value['id'] !== 'number') return false;
  const { metrics, families } = value;
  return metrics === 'ask' || (metrics === 'told' && Array.isArray(families) && families.every(isObject));
}

function isMessage(value: unknown): value is MetricsMessage {
  if (!isObject(value) || typeof value['id'] !== 'number') return false;
  return value['metrics'] === 'tell' || (value['metrics'] === 'sum' && typeof value['text'] === 'string');
}

/** A worker, as the keeper sees it. */
export interface MetricsWorker {
  /** `done` is told of failures, too: a worker that is ending is no error. */
  send(message: MetricsMessage, done: () => void): unknown;
}

interface Collection {
  readonly asker: MetricsWorker;
  /** The asker's. */
  readonly id: number;
  /** Who has not told yet. */
  readonly missing: Set<MetricsWorker>;
  readonly timer: NodeJS.Timeout;
}

/** In the supervisor: collects the metrics of the workers. */
export class MetricsKeeper {
  /** What each worker that listens has told last. */
  readonly #workers = new Map<MetricsWorker, MetricFamilies>();
  readonly #collections = new Map<number, Collection>();
  /** The counters of those that are gone: a sum that only grows must not fall when one dies. */
  #past: Promise<MetricFamilies> = Promise.resolve([]);
  #lastId = 0;

  /** The worker listens, and can be asked. */
  add(worker: MetricsWorker): void {
    if (!this.#workers.has(worker)) this.#workers.set(worker, []);
  }

  /** Takes what a worker sent; `false`: it is no matter of metrics. */
  take(worker: MetricsWorker, message: unknown): boolean {
    if (!isRequest(message)) return false;
    this.add(worker);
    if (message.metrics === 'ask') {
      this.#collect(worker, message.id);
    } else {
      this.#workers.set(worker, message.families);
      this.#expectNoMore(worker, message.id);
    }
    return true;
  }

  /** The worker is gone; nobody waits for it any more. */
  gone(worker: MetricsWorker): void {
    const counters = (this.#workers.get(worker) ?? []).filter(
      (family) => 'type' in family && (family.type === 'counter' || family.type === 'histogram'),
    );
    this.#workers.delete(worker);
    this.#past = this.#past.then((past) => AggregatorRegistry.aggregate([past, counters]).getMetricsAsJSON());
    for (const id of this.#collections.keys()) this.#expectNoMore(worker, id);
  }

  #collect(asker: MetricsWorker, id: number): void {
    const collectionId = ++this.#lastId;
    // The asker gives up by itself after the same time.
    const timer = setTimeout(() => this.#collections.delete(collectionId), LONGEST_WAIT);
    this.#collections.set(collectionId, { asker, id, missing: new Set(this.#workers.keys()), timer });
    for (const worker of this.#workers.keys()) tell(worker, { metrics: 'tell', id: collectionId });
  }

  #expectNoMore(worker: MetricsWorker, collectionId: number): void {
    const collection = this.#collections.get(collectionId);
    collection?.missing.delete(worker);
    if (collection?.missing.size !== 0) return;
    clearTimeout(collection.timer);
    this.#collections.delete(collectionId);
    void this.#sum().then((text) => tell(collection.asker, { metrics: 'sum', id: collection.id, text }));
  }

  async #sum(): Promise<string> {
    const past = await this.#past;
    return AggregatorRegistry.aggregate([past, ...this.#workers.values()]).metrics();
  }
}

const ignore = (): void => undefined;

const tell = (worker: MetricsWorker, message: MetricsMessage): unknown => worker.send(message, ignore);

/** The worker's side of the channel to its supervisor. */
export interface SupervisorChannel {
  send(message: unknown): unknown;
  onMessage(listener: (message: unknown) => void): void;
}

/** In a worker: tells its metrics, and asks for those of all. */
export class WorkerMetrics {
  readonly #channel: SupervisorChannel;
  readonly #asked = new Map<number, (text: string) => void>();
  #lastId = 0;

  /** @param own the metrics of this process */
  constructor(channel: SupervisorChannel, own: () => Promise<MetricFamilies>) {
    this.#channel = channel;
    channel.onMessage((message) => {
      if (!isMessage(message)) return;
      const { id } = message;
      if (message.metrics === 'sum') this.#asked.get(id)?.(message.text);
      // A process that cannot read its own numbers (no file descriptor is left) tells none: whoever asks has a 503.
      else void own().then((families) => this.#tell({ metrics: 'told', id, families }), ignore);
    });
  }

  /**
   * The metrics of all workers in Prometheus' text format.
   *
   * @throws EstuaryError 503 `METRICS_INCOMPLETE` when one of them does not tell its own
   */
  async collect(): Promise<string> {
    const id = ++this.#lastId;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<string>((resolve, reject) => {
        timer = setTimeout(
          () => reject(unavailable('METRICS_INCOMPLETE', 'A worker process does not tell its metrics.')),
          LONGEST_WAIT,
        );
        this.#asked.set(id, resolve);
        this.#tell({ metrics: 'ask', id });
      });
    } finally {
      clearTimeout(timer);
      this.#asked.delete(id);
    }
  }

  #tell(request: MetricsRequest): void {
    this.#channel.send(request);
  }
}
