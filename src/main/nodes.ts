/**
 * This node, alone on a file or next to others on a database: its name, its tasks for all nodes, and shared secrets.
 */
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import { describe } from '../errors.ts';
import { TicketSecret } from '../http/ticket-secret.ts';
import type { Logger } from '../log.ts';
import { FairLimiter, type MakeMutex } from '../process/fair-limiter.ts';
import { atIntervals } from '../process/turns.ts';
import { nodeName, postgresServer } from './open-store.ts';
import { connector } from '../store/postgres/connection.ts';
import { migrateDatabase } from '../store/postgres/migrate.ts';
import { NodeLease } from '../store/postgres/nodes/node-lease.ts';
import { advanceSecret, shareSecret } from '../store/postgres/nodes/shared-secret.ts';
import { turnsOfNodes } from '../store/postgres/nodes/turns.ts';
import { lockStore } from '../store/sqlite/service-lock.ts';
import type { Store } from '../store/store.ts';

export interface NodeState {
  /** Other nodes certainly consider it alive, so work that it begins can complete. */
  readonly held: boolean;
  /** It performs the tasks that only one node performs. */
  readonly onDuty: boolean;
}

export interface Nodes {
  readonly state: NodeState;
  readonly clock: NodeClock;
  /** Mutexes across all nodes. */
  readonly makeMutex: MakeMutex;
  /** For TLS sessions that all nodes resume. */
  readonly ticketSecret: TicketSecret;
  /** Closes what dead nodes left open, now and later. */
  begin(store: Store): Promise<void>;
  /** Releases the name or the store. */
  release(): Promise<void>;
}

export interface NodeClock {
  readonly now: () => number;
  /** Milliseconds that this machine's clock is ahead; absent on a single node. */
  readonly skew?: () => number;
}

/**
 * Takes the store exclusively, or migrates the shared database and joins its nodes, before any other change.
 * @param instance the owner of this process's reservations
 * @throws EstuaryError 500 `STORE_IN_USE` or `NODE_NAME_IN_USE`; 503 `STORE_UNAVAILABLE`
 */
export async function joinNodes(config: Config, material: Material, instance: string, log: Logger): Promise<Nodes> {
  return config.store.driver === 'sqlite' ? alone(config, log) : amongOthers(config, material, instance, log);
}

function alone({ store: { path } }: Config, log: Logger): Nodes {
  const lock = lockStore(path);
  return {
    state: { held: true, onDuty: true },
    clock: { now: Date.now },
    makeMutex: (_name, queue) => new FairLimiter({ concurrency: 1, queue }),
    ticketSecret: TicketSecret.random(),
    begin: async (store) => {
      await reconcile(store, log);
    },
    release: () => {
      lock.release();
      return Promise.resolve();
    },
  };
}

const TICKETS = 'tls session tickets';
/** Milliseconds between checks of the shared secret's period. */
const ADVANCE = 600_000;

async function amongOthers(config: Config, material: Material, instance: string, log: Logger): Promise<Nodes> {
  const server = postgresServer(config, material);
  // Includes the table of live nodes.
  await migrateDatabase(server);
  const connect = connector(server);
  let begun: Store | undefined;
  const lease = await NodeLease.join({
    connect,
    name: nodeName(config),
    instance,
    log,
    closeLeftOpen: async (dead) => {
      if (begun !== undefined) await reconcile(begun, log, dead);
    },
  });
  const { clock } = lease;
  const { secret, advance } = await sharedTickets(config, connect, clock, log).catch(async (error: unknown) => {
    await lease.stop();
    throw error;
  });
  const stopAdvancing = advance && atIntervals(ADVANCE, () => void advance());
  return {
    get state() {
      return { held: lease.held, onDuty: lease.onDuty };
    },
    clock,
    makeMutex: turnsOfNodes(connect),
    ticketSecret: secret,
    begin: (store) => {
      begun = store;
      return Promise.resolve();
    },
    release: async () => {
      stopAdvancing?.();
      begun = undefined;
      await lease.stop();
      log.info('released the name of this node');
    },
  };
}

interface Tickets {
  readonly secret: TicketSecret;
  /** Never rejects. */
  readonly advance?: () => Promise<void>;
}

/** Without a key for the secret in the database, a session resumes only at the node where it began. */
async function sharedTickets(
  { store }: Config,
  connect: ReturnType<typeof connector>,
  { now }: NodeClock,
  log: Logger,
): Promise<Tickets> {
  const key = store.shared_key?.reveal();
  const own = TicketSecret.random(now);
  if (key === undefined) return { secret: own };
  const client = await connect();
  try {
    const shared = await shareSecret(client, key, TICKETS, own.share());
    if (shared === undefined) {
      log.warn(
        { key: 'store.shared_key' },
        'store.shared_key differs from the key of the other nodes: each node resumes only its own TLS sessions',
      );
      return { secret: own };
    }
    const secret = TicketSecret.of(shared, now);
    const advance = async (): Promise<void> => {
      try {
        const client = await connect();
        await advanceSecret(client, key, TICKETS, secret.share()).finally(() => client.end());
      } catch (error) {
        log.warn({ detail: describe(error) }, 'cannot renew the secret of TLS session tickets in the database');
      }
    };
    return { secret, advance };
  } finally {
    await client.end();
  }
}
