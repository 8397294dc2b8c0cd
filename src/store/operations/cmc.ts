import { failed } from '../../errors.ts';
import { done, undone } from '../calls/calls.ts';
import type { CmcMessage } from '../cmc-store.ts';
import { PURGED_AT_ONCE } from '../retention-store.ts';
import type { Database, Reads, Writes } from './port.ts';

interface Stored {
  readonly id: string;
  readonly instance: string | null;
  readonly status: number | null;
  readonly answer: Buffer | null;
}

export function cmcReads(db: Database) {
  const byNonce = db.prepare<[string, Buffer], { id: string }>(
    'SELECT id FROM cmc_message WHERE transaction_key = ? AND nonce = ? LIMIT 1',
  );
  return {
    *isCmcNonce(transaction_key, nonce) {
      return (yield* byNonce.get(transaction_key, nonce)) !== undefined;
    },
  } satisfies Reads;
}

/** @param ofDead condition on an instance without a living node */
export function cmcWrites(db: Database, ofDead: string) {
  const insert = db.prepare<CmcMessage>(
    `INSERT INTO cmc_message (key, id, transaction_key, instance, created_at)
     VALUES (@key, @id, @transaction_key, @instance, @created_at) ON CONFLICT (key) DO NOTHING`,
  );
  const find = db.prepare<[string], Stored>(
    `SELECT id, instance, status, answer FROM cmc_message WHERE key = ? ${db.dialect.forUpdate}`,
  );
  const take = db.prepare<{ key: string; instance: string }>(
    'UPDATE cmc_message SET instance = @instance WHERE key = @key',
  );
  const conclude = db.prepare<{
    key: string;
    instance: string;
    nonce: Buffer | null;
    status: number | null;
    answer: Buffer | null;
  }>(
    `UPDATE cmc_message SET instance = NULL, nonce = coalesce(@nonce, nonce), status = @status, answer = @answer
     WHERE key = @key AND instance = @instance`,
  );
  const release = db.prepare<[string]>('UPDATE cmc_message SET instance = NULL WHERE instance = ?');
  const releaseDead = db.prepare<[]>(`UPDATE cmc_message SET instance = NULL WHERE instance IS NOT NULL AND ${ofDead}`);
  const purge = db.prepare<[number]>(
    `DELETE FROM cmc_message WHERE ${db.dialect.among(
      'cmc_message',
      'position',
      `WHERE created_at <= ? AND instance IS NULL LIMIT ${PURGED_AT_ONCE}`,
    )}`,
  );

  return {
    *claimCmcMessage(message) {
      const { key, instance } = message;
      if ((yield* insert.run(message)) === 1) return done({ state: 'claimed', id: message.id }, []);
      const known = yield* find.get(key);
      if (known === undefined) throw new Error(`the message ${key} was purged while it was claimed`);
      if (known.status !== null && known.answer !== null)
        return undone({ state: 'answered', answer: { status: known.status, der: known.answer } });
      if (known.instance !== null && known.instance !== instance) return undone({ state: 'under-way' });
      yield* take.run({ key, instance });
      return done({ state: 'claimed', id: known.id }, []);
    },
    *concludeCmcMessage(key, instance, { nonce, answer }) {
      const [status, der] = answer === null ? [null, null] : [answer.status, answer.der];
      if ((yield* conclude.run({ key, instance, nonce, status, answer: der })) === 0)
        throw failed('CMC_MESSAGE_NOT_CLAIMED', 'the response could not be stored', { detail: `message ${key}` });
      return done(undefined, []);
    },
    *releaseCmcMessages(instance) {
      yield* instance === undefined ? releaseDead.run() : release.run(instance);
      return done(undefined, []);
    },
    *purgeCmcMessages(before) {
      return done(yield* purge.run(before), []);
    },
  } satisfies Writes;
}
