/** What a supervisor and its workers tell each other, beside the mutexes of shared-mutexes.ts, and the worker's end of it. */
import { unpackConfig } from '../config/transfer.ts';
import type { Config } from '../config/schema.ts';
import { describe } from '../errors.ts';
import type { SharedTicketSecret } from '../http/ticket-secret.ts';
import type { ServiceCondition } from '../http/admin/dependencies.ts';
import type { CollectFromAll, MetricFamilies } from '../metrics.ts';
import type { ReloadOrder, ReloadOutcome } from '../config/reload.ts';
import type { Prepared } from './reloads.ts';
import type { NodeStanding } from './nodes.ts';
import { WorkerConnections } from './shared-connections.ts';
import { WorkerMetrics, type SupervisorChannel } from './shared-metrics.ts';
import { WorkerMutexes } from './shared-mutexes.ts';

/** What a worker gets from its supervisor before it starts. */
export interface WorkerShare {
  /** The owner of its reservations. */
  readonly instance: string;
  /** So that TLS session tickets of one worker resume on another. */
  readonly ticketSecret: SharedTicketSecret;
  /** What the node is to others at this moment. */
  readonly standing: NodeStanding;
  /** Path of the socket of the process that writes the store. */
  readonly writer: string;
  /** The configuration in force, which the file may not hold any more: packed. */
  readonly config: unknown;
}

/** Supervisor to worker. */
export type ToWorker =
  | { readonly share: WorkerShare }
  | { readonly condition: ServiceCondition }
  | { readonly standing: NodeStanding }
  | { readonly prepare: number; readonly config: unknown }
  | { readonly reloaded: number; readonly outcome: ReloadOutcome }
  | { readonly apply: number }
  | { readonly drop: number };

/** Worker to supervisor. */
export type FromWorker =
  | { readonly says: 'asks for its share' | 'listens' }
  | { readonly says: 'asks for a reload'; readonly id: number; readonly order: ReloadOrder }
  /** `problem`: why it cannot; undefined: it is ready to apply it. */
  | { readonly says: 'prepared'; readonly id: number; readonly problem?: string };

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

export function isFromWorker(value: unknown): value is FromWorker {
  if (!isObject(value)) return false;
  const { says, id, order } = value;
  if (says === 'asks for a reload') return typeof id === 'number' && isObject(order);
  return says === 'asks for its share' || says === 'listens' || (says === 'prepared' && typeof id === 'number');
}

function isToWorker(value: unknown): value is ToWorker {
  return (
    isObject(value) &&
    ['share', 'condition', 'standing', 'prepare', 'reloaded', 'apply', 'drop'].some((kind) => kind in value)
  );
}

/** What takes a new configuration in a worker, which reads by itself what that names. */
export type PrepareWorker = (config: Config) => Promise<Prepared>;

/** A worker's line to its supervisor. */
export class SupervisorLink {
  readonly mutexes: WorkerMutexes;
  readonly connections: WorkerConnections;
  readonly #channel: SupervisorChannel = {
    send: (message: unknown) => process.send?.(message, () => undefined),
    onMessage: (listener: (message: unknown) => void) => process.on('message', listener),
  };
  readonly #share = Promise.withResolvers<WorkerShare>();
  readonly #prepare = Promise.withResolvers<PrepareWorker>();
  readonly #prepared = new Map<number, Prepared>();
  readonly #reloads = new Map<number, (outcome: ReloadOutcome) => void>();
  #lastReload = 0;
  /** Numbers of reloads only rise. */
  #lastDropped = 0;
  #standing: NodeStanding = { held: false, onDuty: false };
  #condition: ServiceCondition = { workersDown: [], reloadFailed: false };

  constructor() {
    this.mutexes = new WorkerMutexes(this.#channel);
    this.connections = new WorkerConnections(this.#channel);
    process.on('message', (message: unknown) => {
      if (isToWorker(message)) this.#take(message);
    });
  }

  get condition(): ServiceCondition {
    return this.#condition;
  }

  /** Of the node, as the supervisor last told. */
  get standing(): NodeStanding {
    return this.#standing;
  }

  /** Asks for the share and waits for it. */
  async share(): Promise<WorkerShare & { readonly inForce: Config }> {
    this.#tell({ says: 'asks for its share' });
    const share = await this.#share.promise;
    this.#standing = share.standing;
    return { ...share, inForce: unpackConfig(share.config) };
  }

  /** Asks the supervisor, which reloads for all of its workers. A supervisor that is gone takes this process with it. */
  reload(order: ReloadOrder): Promise<ReloadOutcome> {
    const id = ++this.#lastReload;
    const outcome = new Promise<ReloadOutcome>((resolve) => this.#reloads.set(id, resolve));
    this.#tell({ says: 'asks for a reload', id, order });
    return outcome;
  }

  /** Adds the metrics of this process to the others'. */
  shareMetrics(own: () => Promise<MetricFamilies>): CollectFromAll {
    const metrics = new WorkerMetrics(this.#channel, own);
    return () => metrics.collect();
  }

  /** Tells the supervisor that the listeners are up; from now on reloads are carried out. */
  listens(prepare: PrepareWorker): void {
    this.#prepare.resolve(prepare);
    this.#tell({ says: 'listens' });
  }

  #take(message: ToWorker): void {
    if ('share' in message) this.#share.resolve(message.share);
    else if ('condition' in message) this.#condition = message.condition;
    else if ('standing' in message) this.#standing = message.standing;
    else if ('prepare' in message) void this.#prepareOne(message.prepare, message.config);
    else if ('reloaded' in message) {
      this.#reloads.get(message.reloaded)?.(message.outcome);
      this.#reloads.delete(message.reloaded);
    } else if ('apply' in message) this.#end(message.apply)?.apply();
    else {
      this.#lastDropped = message.drop;
      this.#end(message.drop)?.drop();
    }
  }

  async #prepareOne(id: number, config: unknown): Promise<void> {
    try {
      const prepare = await this.#prepare.promise;
      const prepared = await prepare(unpackConfig(config));
      // The supervisor may have given it up meanwhile.
      if (id <= this.#lastDropped) {
        prepared.drop();
        return;
      }
      this.#prepared.set(id, prepared);
      this.#tell({ says: 'prepared', id });
    } catch (error) {
      this.#tell({ says: 'prepared', id, problem: describe(error) });
    }
  }

  #end(id: number): Prepared | undefined {
    const prepared = this.#prepared.get(id);
    this.#prepared.delete(id);
    return prepared;
  }

  #tell(message: FromWorker): void {
    // A supervisor that is gone ends this process by itself.
    process.send?.(message, () => undefined);
  }
}
