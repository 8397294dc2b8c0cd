import { failed } from '../../errors.ts';
import { done, type Outcome, undone } from '../calls/outcome.ts';
import type { CmcClaim, CmcConclusion, CmcMessage } from '../cmc-store.ts';
import { PURGED_AT_ONCE } from '../retention-store.ts';
import type { Queries } from './queries.ts';

interface Stored {
  readonly id: string;
  readonly instance: string | null;
  readonly status: number | null;
  readonly answer: Buffer | null;
}

/** The reads of CMC messages. */
export function cmcReads(db: Queries) {
  const byNonce = db.prepare<[string, Buffer], { id: string }>(
    'SELECT id FROM cmc_message WHERE transaction_key = ? AND nonce = ? LIMIT 1',
  );
  return {
    isCmcNonce: async (transaction_key: string, nonce: Buffer): Promise<boolean> =>
      (await byNonce.get(transaction_key, nonce)) !== undefined,
  };
}

/** The writes of CMC messages. */
export function cmcWrites(db: Queries) {
  const insert = db.prepare<CmcMessage>(
    `INSERT INTO cmc_message (key, id, transaction_key, instance, created_at)
     VALUES (@key, @id, @transaction_key, @instance, @created_at) ON CONFLICT (key) DO NOTHING`,
  );
  const find = db.prepare<[string], Stored>(
    'SELECT id, instance, status, answer FROM cmc_message WHERE key = ? FOR UPDATE',
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
  // Of all nodes: the one that starts takes nothing from the others that work.
  const releaseDead = db.prepare<[]>(
    `UPDATE cmc_message SET instance = NULL WHERE instance IS NOT NULL
     AND NOT EXISTS (SELECT FROM node WHERE node.instance = cmc_message.instance)`,
  );
  const purge = db.prepare<[number]>(
    `DELETE FROM cmc_message WHERE position = ANY(ARRAY(SELECT position FROM cmc_message
     WHERE created_at <= ? AND instance IS NULL LIMIT ${PURGED_AT_ONCE} FOR UPDATE SKIP LOCKED))`,
  );

  return {
    async claimCmcMessage(message: CmcMessage): Promise<Outcome<CmcClaim>> {
      const { key, instance } = message;
      if ((await insert.run(message)) === 1) return done({ state: 'claimed', id: message.id }, []);
      const known = await find.get(key);
      if (known === undefined) throw new Error(`the message ${key} was purged while it was claimed`);
      if (known.status !== null && known.answer !== null)
        return undone({ state: 'answered', answer: { status: known.status, der: known.answer } });
      if (known.instance !== null && known.instance !== instance) return undone({ state: 'under-way' });
      await take.run({ key, instance });
      return done({ state: 'claimed', id: known.id }, []);
    },
    async concludeCmcMessage(
      key: string,
      instance: string,
      { nonce, answer }: CmcConclusion,
    ): Promise<Outcome<undefined>> {
      const changes = await conclude.run({
        key,
        instance,
        nonce,
        status: answer?.status ?? null,
        answer: answer?.der ?? null,
      });
      if (changes === 0)
        throw failed('CMC_MESSAGE_NOT_CLAIMED', 'the answer could not be kept', { detail: `message ${key}` });
      return done(undefined, []);
    },
    async releaseCmcMessages(instance?: string): Promise<Outcome<undefined>> {
      await (instance === undefined ? releaseDead.run() : release.run(instance));
      return done(undefined, []);
    },
    async purgeCmcMessages(before: number): Promise<Outcome<number>> {
      return done(await purge.run(before), []);
    },
  };
}
