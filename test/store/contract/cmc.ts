import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { CmcMessage } from '../../../src/store/cmc-store.ts';
import { T0 } from '../rows.ts';
import type { NewDatabase } from './support.ts';

function message(more: Partial<CmcMessage> = {}): CmcMessage {
  return {
    key: randomBytes(32).toString('hex'),
    id: randomBytes(8).toString('hex'),
    transaction_key: 'transaction',
    instance: 'this-process',
    created_at: T0,
    ...more,
  };
}

const FINAL = { nonce: Buffer.from('nonce-1'), answer: Buffer.from('answer') };

export function cmcStoreContract(newDatabase: NewDatabase): void {
  describe('CmcStore', () => {
    test('RFC 5272 §6.6: a message is taken once, and its answer is the same ever after', async () => {
      const store = await newDatabase().open();
      const first = message();
      expect(await store.claimCmcMessage(first)).toEqual({ state: 'claimed', id: first.id });
      expect(await store.claimCmcMessage({ ...first, id: 'another', instance: 'another' })).toEqual({
        state: 'under-way',
      });
      await store.concludeCmcMessage(first.key, first.instance, FINAL);
      expect(await store.claimCmcMessage({ ...first, id: 'another' })).toEqual({
        state: 'answered',
        answer: FINAL.answer,
      });
      expect(await store.claimCmcMessage(message())).toMatchObject({ state: 'claimed' });
    });

    test('a message that was not answered for good is taken up again under its first id', async () => {
      const store = await newDatabase().open();
      const first = message();
      await store.claimCmcMessage(first);
      await store.concludeCmcMessage(first.key, first.instance, { nonce: null, answer: null });
      expect(await store.claimCmcMessage({ ...first, id: 'another' })).toEqual({ state: 'claimed', id: first.id });
    });

    test('a process takes up again what it could not conclude itself', async () => {
      const store = await newDatabase().open();
      const first = message();
      await store.claimCmcMessage(first);
      expect(await store.claimCmcMessage({ ...first, id: 'another' })).toEqual({ state: 'claimed', id: first.id });
    });

    test('what a dead process was at work on is free again, what a live one works on is not', async () => {
      const store = await newDatabase().open();
      const dead = message({ instance: 'dead' });
      const alive = message();
      await store.claimCmcMessage(dead);
      await store.claimCmcMessage(alive);
      await store.releaseCmcMessages('dead');
      const heir = { instance: 'heir' };
      expect(await store.claimCmcMessage({ ...dead, ...heir })).toEqual({ state: 'claimed', id: dead.id });
      expect(await store.claimCmcMessage({ ...alive, ...heir })).toEqual({ state: 'under-way' });
      await store.releaseCmcMessages();
      expect(await store.claimCmcMessage({ ...alive, ...heir })).toEqual({ state: 'claimed', id: alive.id });
    });

    test('only the process that holds a message concludes it', async () => {
      const store = await newDatabase().open();
      const first = message();
      await store.claimCmcMessage(first);
      await expect(store.concludeCmcMessage(first.key, 'another', FINAL)).rejects.toMatchObject({
        status: 500,
        code: 'CMC_MESSAGE_NOT_CLAIMED',
      });
      await store.concludeCmcMessage(first.key, first.instance, FINAL);
      await expect(store.concludeCmcMessage(first.key, first.instance, FINAL)).rejects.toMatchObject({
        code: 'CMC_MESSAGE_NOT_CLAIMED',
      });
    });

    test('RFC 5272 §6.6: the nonces of a transaction are those of its answers', async () => {
      const store = await newDatabase().open();
      const first = message();
      await store.claimCmcMessage(first);
      expect(await store.isCmcNonce('transaction', Buffer.from('nonce-1'))).toBe(false);
      await store.concludeCmcMessage(first.key, first.instance, FINAL);
      expect(await store.isCmcNonce('transaction', Buffer.from('nonce-1'))).toBe(true);
      expect(await store.isCmcNonce('transaction', Buffer.from('nonce-2'))).toBe(false);
      expect(await store.isCmcNonce('other', Buffer.from('nonce-1'))).toBe(false);
    });

    test('messages are forgotten after a while, but never one that is being worked on', async () => {
      const store = await newDatabase().open();
      const old = message();
      const underWay = message();
      const fresh = message({ created_at: T0 + 10 });
      for (const one of [old, underWay, fresh]) await store.claimCmcMessage(one);
      for (const one of [old, fresh]) await store.concludeCmcMessage(one.key, one.instance, FINAL);
      expect(await store.purgeCmcMessages(T0 + 9)).toBe(1);
      expect(await store.claimCmcMessage(old)).toMatchObject({ state: 'claimed' });
      expect(await store.claimCmcMessage({ ...underWay, instance: 'another' })).toMatchObject({ state: 'under-way' });
      expect(await store.claimCmcMessage(fresh)).toMatchObject({ state: 'answered' });
    });
  });
}
