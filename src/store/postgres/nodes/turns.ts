/** What one process at a time does, of all nodes of a database. */
import type { Client } from 'pg';
import { FairLimiter, NoPermitError, type Limiter } from '../../../process/fair-limiter.ts';

export interface TurnsOptions {
  /** A connection for as long as the turn lasts. */
  readonly connect: () => Promise<Client>;
}

/** Of the advisory locks on turns. */
const TURNS = 0x6573_7402;
/** Seconds after which the database takes the turn of whoever is silent: nobody may stop all others by being stopped. */
const LONGEST_TURN = 120;

/** Makes the turns of a name. */
export function turnsOfNodes({ connect }: TurnsOptions): (name: string, queueLimit: number) => Limiter {
  return (name, queueLimit) => {
    // One of this process asks the database; the others wait here.
    const here = new FairLimiter({ concurrency: 1, queue: queueLimit });
    return {
      acquire: async ({ waitMs }) => {
        const until = performance.now() + waitMs;
        const release = await here.acquire({ waitMs });
        try {
          const client = await begin(connect, name, Math.max(1, until - performance.now()));
          return () => {
            // The lock ends with the connection, even if the connection is already broken.
            void client.end().catch(() => undefined);
            release();
          };
        } catch (error) {
          release();
          throw new NoPermitError(`no permit within ${waitMs} ms: ${error instanceof Error ? error.message : ''}`);
        }
      },
    };
  };
}

async function begin(connect: () => Promise<Client>, name: string, waitMs: number): Promise<Client> {
  const client = await connect();
  // A connection that is lost meanwhile has let the turn go; whoever has it is about to end it anyhow.
  client.on('error', () => undefined);
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL lock_timeout = ${Math.ceil(waitMs)}`);
    await client.query(`SET LOCAL statement_timeout = 0`);
    await client.query(`SET LOCAL idle_in_transaction_session_timeout = '${LONGEST_TURN}s'`);
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [TURNS, name]);
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}
