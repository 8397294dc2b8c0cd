/** One service beside others on a database, or alone on a file: who it is, what it does for all, and what it shares with them. */
import { hostname } from 'node:os';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import { describe, EstuaryError, unavailable } from '../errors.ts';
import { TicketSecret } from '../http/ticket-secret.ts';
import type { Logger } from '../log.ts';
import type { MakeMutex } from '../process/fair-limiter.ts';
import { postgresServer } from './postgres-server.ts';
import { connector } from '../store/postgres/connection.ts';
import { NodeLease } from '../store/postgres/nodes/node-lease.ts';
import { advanceSecret, shareSecret } from '../store/postgres/nodes/shared-secret.ts';
import { turnsOfNodes } from '../store/postgres/nodes/turns.ts';
import { lockStore } from '../store/sqlite/service-lock.ts';
import type { Store } from '../store/store.ts';

/** What a node is at a moment. */
export interface NodeStanding {
  /** The others take it for alive, for certain: what it begins can come to its end. */
  readonly held: boolean;
  /** It is the one that does what one of them does for all. */
  readonly onDuty: boolean;
}

export interface Nodes {
  readonly standing: NodeStanding;
  readonly clock: NodeClock;
  /** Of the TLS sessions that all nodes resume. */
  readonly ticketSecret: TicketSecret;
  /** Closes what was left open by those who died, now and from then on. */
  begin(store: Store): Promise<void>;
  /** Lets others have the name, or the store. */
  release(): Promise<void>;
}

/** The time that this node shares with the other nodes. */
export interface NodeClock {
  readonly now: () => number;
  /** Milliseconds that this machine's clock is ahead; absent: the node is alone. */
  readonly skew?: () => number;
}

/** The name of this node in audit records and leases. */
export const nodeName = ({ store }: Pick<Config, 'store'>): string => store.node_name ?? hostname();

/**
 * Takes the store, alone or as one of its nodes. Nothing of it is changed before.
 *
 * @param instance the owner of this process's reservations
 * @throws EstuaryError 500 `STORE_IN_USE` or `NODE_NAME_IN_USE`; 503 `STORE_UNAVAILABLE`
 */
export async function joinNodes(config: Config, material: Material, instance: string, log: Logger): Promise<Nodes> {
  return config.store.driver === 'sqlite' ? alone(config, log) : SharedNode.join(config, material, instance, log);
}

/** Turns over all nodes; undefined: the service is alone. */
export function turnsOver(config: Config, material: Material): MakeMutex | undefined {
  return config.store.driver === 'sqlite'
    ? undefined
    : turnsOfNodes({ connect: connector(postgresServer(config, material)) });
}

function alone({ store: { path } }: Config, log: Logger): Nodes {
  const lock = lockStore(path);
  return {
    standing: { held: true, onDuty: true },
    clock: { now: Date.now },
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
/** Milliseconds between two looks at whether the period of the shared secret is over. */
const ADVANCE = 600_000;

class SharedNode implements Nodes {
  readonly ticketSecret: TicketSecret;
  readonly #lease: NodeLease;
  readonly #closing: { store: Store | undefined };
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout | undefined;

  static async join(config: Config, material: Material, instance: string, log: Logger): Promise<SharedNode> {
    const connect = connector(postgresServer(config, material));
    const closing: { store: Store | undefined } = { store: undefined };
    const lease = await NodeLease.join({
      connect,
      name: nodeName(config),
      instance,
      log,
      closeLeftOpen: async (dead) => {
        if (closing.store !== undefined) await reconcile(closing.store, log, dead);
      },
    });
    try {
      return new SharedNode(lease, closing, log, await sharedTickets(config, connect, lease.clock, log));
    } catch (error) {
      await lease.stop();
      throw error;
    }
  }

  private constructor(
    lease: NodeLease,
    closing: { store: Store | undefined },
    log: Logger,
    { secret, advance }: Tickets,
  ) {
    this.#lease = lease;
    this.#closing = closing;
    this.#log = log;
    this.ticketSecret = secret;
    this.#timer = advance && setInterval(() => void advance(), ADVANCE).unref();
  }

  get standing(): NodeStanding {
    return { held: this.#lease.held, onDuty: this.#lease.onDuty };
  }

  get clock(): NodeClock {
    return this.#lease.clock;
  }

  begin(store: Store): Promise<void> {
    this.#closing.store = store;
    return Promise.resolve();
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.store = undefined;
    await this.#lease.stop();
    this.#log.info('the name of this node is free');
  }
}

interface Tickets {
  readonly secret: TicketSecret;
  /** Never rejects. */
  readonly advance?: () => Promise<void>;
}

/** Without a key for what lies in the database, sessions are resumed where they began, and nowhere else. */
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
        'what the nodes share is sealed under another key: TLS sessions are resumed where they began',
      );
      return { secret: own };
    }
    const secret = TicketSecret.of(shared, now);
    return { secret, advance: () => advanced(connect, key, secret, log) };
  } finally {
    await client.end();
  }
}

async function advanced(
  connect: ReturnType<typeof connector>,
  key: Buffer,
  secret: TicketSecret,
  log: Logger,
): Promise<void> {
  try {
    const client = await connect();
    await advanceSecret(client, key, TICKETS, secret.share()).finally(() => client.end());
  } catch (error) {
    log.warn({ detail: describe(error) }, 'the secret of TLS session tickets in the database could not be renewed');
  }
}

const leaseLost = (detail: string, cause?: unknown): EstuaryError =>
  unavailable('NODE_LEASE_LOST', 'the store is unavailable', { detail, cause });

/**
 * The same store for one node of several: while it may be dead to the others, nothing is begun that they would close, and what they have
 * closed may be repeated.
 */
export function amongNodes(store: Store, isHeld: () => boolean): Store {
  const guarded =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      isHeld() ? call(...args) : Promise.reject(leaseLost('the other nodes may take this one for dead'));
  return {
    ...store,
    reserve: guarded(store.reserve.bind(store)),
    claimRequest: guarded(store.claimRequest.bind(store)),
    submitRequest: guarded(store.submitRequest.bind(store)),
    claimCmcMessage: guarded(store.claimCmcMessage.bind(store)),
    checkWritable: guarded(store.checkWritable.bind(store)),
    recordCertificate: (...args) =>
      store.recordCertificate(...args).catch((error: unknown) => {
        if (error instanceof EstuaryError && error.code === 'RESERVATION_NOT_OPEN')
          throw leaseLost('another node took this one for dead and closed the reservation', error);
        throw error;
      }),
  };
}
