import { failed } from '../../errors.ts';
import type { CmcAnswer, CmcClaim, CmcConclusion, CmcMessage } from '../cmc-store.ts';
import { PURGED_AT_ONCE } from '../retention-store.ts';
import type { Db } from './database.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';

interface Stored {
  readonly id: string;
  readonly instance: string | null;
  readonly status: number | null;
  readonly answer: Buffer | null;
}

/** The reads of CMC messages. */
export function cmcReads(db: Db) {
  const byNonce = db.prepare<[string, Buffer], { id: string }>(
    'SELECT id FROM cmc_message WHERE transaction_key = ? AND nonce = ? LIMIT 1',
  );
  return {
    isCmcNonce: (transaction_key: string, nonce: Buffer): boolean => byNonce.get(transaction_key, nonce) !== undefined,
  };
}

/** The writes of CMC messages. */
export function cmcWrites(db: Db) {
  const find = db.prepare<[string], Stored>('SELECT id, instance, status, answer FROM cmc_message WHERE key = ?');
  const insert = db.prepare<[CmcMessage]>(
    `INSERT INTO cmc_message (key, id, transaction_key, instance, created_at)
     VALUES (@key, @id, @transaction_key, @instance, @created_at)`,
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
  const release = db.prepare<[string | null]>('UPDATE cmc_message SET instance = NULL WHERE instance = ?');
  const releaseAll = db.prepare('UPDATE cmc_message SET instance = NULL WHERE instance IS NOT NULL');
  const purge = db.prepare<[number]>(
    `DELETE FROM cmc_message WHERE position IN
     (SELECT position FROM cmc_message WHERE created_at <= ? AND instance IS NULL LIMIT ${PURGED_AT_ONCE})`,
  );

  return {
    claimCmcMessage(message: CmcMessage): Outcome<CmcClaim> {
      const known = find.get(message.key);
      if (known === undefined) {
        insert.run(message);
        return done({ state: 'claimed', id: message.id }, []);
      }
      if (known.status !== null && known.answer !== null)
        return undone({ state: 'answered', answer: { status: known.status, der: known.answer } });
      if (known.instance !== null && known.instance !== message.instance) return undone({ state: 'under-way' });
      take.run({ key: message.key, instance: message.instance });
      return done({ state: 'claimed', id: known.id }, []);
    },
    concludeCmcMessage(key: string, instance: string, { nonce, answer }: CmcConclusion): Outcome<undefined> {
      const final: CmcAnswer | null = answer;
      const { changes } = conclude.run({
        key,
        instance,
        nonce,
        status: final?.status ?? null,
        answer: final?.der ?? null,
      });
      if (changes === 0)
        throw failed('CMC_MESSAGE_NOT_CLAIMED', 'the answer could not be kept', { detail: `message ${key}` });
      return done(undefined, []);
    },
    releaseCmcMessages(instance: string | undefined): Outcome<undefined> {
      if (instance === undefined) releaseAll.run();
      else release.run(instance);
      return done(undefined, []);
    },
    purgeCmcMessages(before: number): Outcome<number> {
      return done(purge.run(before).changes, []);
    },
  };
}
