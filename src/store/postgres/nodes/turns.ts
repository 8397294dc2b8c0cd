/** Mutexes across all nodes of a database. */
import type { Client } from 'pg';
import { FairLimiter, NoPermitError, type Limiter } from '../../../process/fair-limiter.ts';

/** Class of the advisory locks on mutexes. */
const TURNS = 0x6573_7402;
/**
 * Seconds after which the database ends a silent holder's connection, so that a suspended one does not block the
 * others.
 */
const LONGEST_TURN = 120;

/** Creates the mutexes by name. @param connect opens a connection for the duration of a lock */
export function turnsOfNodes(connect: () => Promise<Client>): (name: string, queueLimit: number) => Limiter {
  return (name, queueLimit) => {
    // One caller of this process asks the database; the others wait here.
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
  // A lost connection has released the lock; its holder closes it anyway.
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
