import { describe, expect, test } from 'vitest';

import type { PresentedIntermediate } from '../../../src/store/intermediate-store.ts';
import { T0 } from '../rows.ts';
import type { NewDatabase } from './support.ts';

const DAY = 86_400_000;
const certificate = (fingerprint: string): PresentedIntermediate => ({ fingerprint, der: Buffer.from(fingerprint) });

export function intermediateStoreContract(newDatabase: NewDatabase): void {
  describe('IntermediateStore', () => {
    describe('what clients sent with their certificates', () => {
      test('comes back in its order, also after a restart; of an unknown client there is nothing', async () => {
        const database = newDatabase();
        const store = await database.open();
        const intermediates = [certificate('b'), certificate('a')];
        await store.rememberIntermediates({ leaf: 'leaf', intermediates }, T0);
        await store.close();
        const again = await database.open();
        expect(await again.recallIntermediates('leaf')).toEqual(intermediates);
        expect(await again.recallIntermediates('other')).toEqual([]);
      });

      test('the latest of a client replaces what was there; clients share certificates', async () => {
        const store = await newDatabase().open();
        await store.rememberIntermediates({ leaf: 'one', intermediates: [certificate('a')] }, T0);
        await store.rememberIntermediates({ leaf: 'two', intermediates: [certificate('a')] }, T0);
        await store.rememberIntermediates({ leaf: 'one', intermediates: [certificate('b')] }, T0);
        expect(await store.recallIntermediates('one')).toEqual([certificate('b')]);
        expect(await store.recallIntermediates('two')).toEqual([certificate('a')]);
      });

      test('what has not been used for 30 days is forgotten', async () => {
        const store = await newDatabase().open();
        for (const leaf of ['old', 'used'])
          await store.rememberIntermediates({ leaf, intermediates: [certificate('a'), certificate(leaf)] }, T0);
        await store.rememberIntermediates({ leaf: 'used', intermediates: [certificate('a')] }, T0 + 29 * DAY);
        await store.rememberIntermediates({ leaf: 'new', intermediates: [certificate('b')] }, T0 + 30 * DAY);
        expect(await store.recallIntermediates('old')).toEqual([]);
        expect(await store.recallIntermediates('used')).toEqual([certificate('a')]);
      });
    });
  });
}
