/** Seeded mutations of CMC messages: whatever comes, the readers throw CmcError or DerError, or nothing. */
import { describe, expect, test } from 'vitest';
import { isRefusal, readMessage, seeds } from './cmc-target.ts';
import { mutate, mutateTree, random } from './mutation.ts';

const ROUNDS = 1500;
const messages = await seeds();

test('the messages to begin with are read', async () => {
  for (const message of messages) await expect(readMessage(message)).resolves.toBeUndefined();
});

describe.each([1, 2, 3, 4])('seed %i', (seed) => {
  test.each([
    ['octets', mutate],
    ['elements', (bytes: Buffer, next: ReturnType<typeof random>) => mutateTree(bytes, messages[1] ?? bytes, next)],
  ])('a message with other %s is read or refused', async (_, change) => {
    const next = random(seed);
    const strange: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const message = change(messages[round % messages.length] ?? Buffer.alloc(0), next);
      try {
        await readMessage(message);
      } catch (error) {
        if (!isRefusal(error)) strange.push(`round ${round}: ${String(error)} for ${message.toString('hex')}`);
      }
    }
    expect(strange).toEqual([]);
  });
});
