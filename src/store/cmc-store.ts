import { failed } from '../errors.ts';
import { done, undone } from './calls/calls.ts';
import { beginWork, type Calls, EVERYTHING, lock, quickRead, write } from './operation.ts';
import { type Database, insertInto, type Operation, PURGED_AT_ONCE, type Write } from './port.ts';

/** A message to be processed once, even if it is repeated (RFC 5272 §6.6). */
export interface CmcMessage {
  /** Identifies the message: a hash of CA, sender, transactionId, senderNonce and content. */
  readonly key: string;
  /** Assigned the first time; kept when the message is processed again. */
  readonly id: string;
  /** A hash of CA, sender and transactionId. */
  readonly transaction_key: string;
  /** The process that is working on it. */
  readonly instance: string;
  readonly created_at: number;
}

export type CmcClaim =
  | { readonly state: 'claimed'; readonly id: string }
  | { readonly state: 'under-way' }
  | { readonly state: 'answered'; readonly answer: Buffer };

/** How the work on a message ended. */
export interface CmcConclusion {
  /** The senderNonce of the answer. */
  readonly nonce: Buffer | null;
  /** DER of a definitive answer; null: a repeated message is processed again. */
  readonly answer: Buffer | null;
}

interface Stored {
  readonly id: string;
  readonly instance: string | null;
  readonly answer: Buffer | null;
}

export function cmcReads(db: Database) {
  return {
    /** Whether one of our latest answers in this transaction contained the nonce. */
    isCmcNonce: quickRead(function* (transaction_key: string, nonce: Buffer): Operation<boolean> {
      const row =
        yield* db.get`SELECT id FROM cmc_message WHERE transaction_key = ${transaction_key} AND nonce = ${nonce}
        LIMIT 1`;
      return row !== undefined;
    }),
  };
}

const ADD = `${insertInto('cmc_message', 'key, id, transaction_key, instance, created_at')} ON CONFLICT (key) DO NOTHING`;

const claimed = ({ key }: CmcMessage) => lock.message(key);

/** @param ofDead condition on an instance without a living node */
export function cmcWrites(db: Database, ofDead: string) {
  const over = `WHERE created_at <= ? AND instance IS NULL LIMIT ${PURGED_AT_ONCE}`;
  const purge = `DELETE FROM cmc_message WHERE ${db.dialect.among('cmc_message', 'position', over)}`;
  return {
    /**
     * Claims a message for this process, unless it has a definitive answer or another node is working on it. The caller
     * tracks its own work.
     */
    claimCmcMessage: beginWork(claimed, function* (message: CmcMessage): Write<CmcClaim> {
      const { key, instance } = message;
      if ((yield* db.run(ADD, message)) === 1) return done({ state: 'claimed', id: message.id }, []);
      const known = yield* db.get<Stored>`SELECT id, instance, answer FROM cmc_message WHERE key = ${key} FOR UPDATE`;
      if (known === undefined) throw new Error(`the message ${key} was purged while it was claimed`);
      if (known.answer !== null) return undone({ state: 'answered', answer: known.answer });
      if (known.instance !== null && known.instance !== instance) return undone({ state: 'under-way' });
      yield* db.run`UPDATE cmc_message SET instance = ${instance} WHERE key = ${key}`;
      return done({ state: 'claimed', id: known.id }, []);
    }),
    /** Ends the work on a claimed message. @throws {EstuaryError} 500 `CMC_MESSAGE_NOT_CLAIMED` */
    concludeCmcMessage: write(
      lock.message,
      function* (key: string, instance: string, { nonce, answer }: CmcConclusion): Write<void> {
        const changes = yield* db.run`UPDATE cmc_message
        SET instance = NULL, nonce = coalesce(${nonce}, nonce), answer = ${answer}
        WHERE key = ${key} AND instance = ${instance}`;
        if (changes === 0)
          throw failed('CMC_MESSAGE_NOT_CLAIMED', 'the response could not be stored', { detail: `message ${key}` });
        return done(undefined, []);
      },
    ),
    /**
     * Releases the messages of a dead process; without an argument, at start, those of all processes except living nodes.
     */
    releaseCmcMessages: write(EVERYTHING, function* (instance?: string): Write<void> {
      yield* instance === undefined
        ? db.run(`UPDATE cmc_message SET instance = NULL WHERE instance IS NOT NULL AND ${ofDead}`)
        : db.run`UPDATE cmc_message SET instance = NULL WHERE instance = ${instance}`;
      return done(undefined, []);
    }),
    /** Deletes a batch of messages up to this time and returns the number (see retention-store.ts). */
    purgeCmcMessages: write(EVERYTHING, function* (before: number): Write<number> {
      return done(yield* db.run(purge, before), []);
    }),
  };
}

export type CmcStore = Calls<ReturnType<typeof cmcReads> & ReturnType<typeof cmcWrites>>;
