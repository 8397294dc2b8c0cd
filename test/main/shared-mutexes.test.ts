import { describe, expect, test } from 'vitest';
import { NoPermitError } from '../../src/process/semaphore.ts';
import { SharedMutexes, WorkerMutexes, type MutexWorker } from '../../src/main/shared-mutexes.ts';

interface Member {
  readonly worker: MutexWorker;
  readonly mutexes: WorkerMutexes;
}

/** A worker whose messages arrive later, as between processes. */
function join(keeper: SharedMutexes): Member {
  let listener: (message: unknown) => void = () => undefined;
  const worker: MutexWorker = { send: (message) => setImmediate(() => listener(message)) };
  const mutexes = new WorkerMutexes({
    send: (message) => setImmediate(() => keeper.take(worker, message)),
    onMessage: (heard) => {
      listener = heard;
    },
  });
  return { worker, mutexes };
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe('mutexes that several processes take together', () => {
  test('one at a time holds the mutex of a name, and everybody gets it', async () => {
    const keeper = new SharedMutexes();
    const takers = [join(keeper), join(keeper), join(keeper)].map(({ mutexes }) => mutexes.of('ca', 10));
    let [held, most, had] = [0, 0, 0];
    await Promise.all(
      takers.flatMap((taker) =>
        [1, 2, 3].map(async () => {
          await taker.acquire(5000);
          most = Math.max(most, ++held);
          had++;
          await pause();
          held--;
          taker.release();
        }),
      ),
    );
    expect({ most, had }).toEqual({ most: 1, had: 9 });
  });

  test('another name is another mutex', async () => {
    const keeper = new SharedMutexes();
    const { mutexes } = join(keeper);
    await mutexes.of('one', 1).acquire(1000);
    await expect(mutexes.of('two', 1).acquire(1000)).resolves.toBeUndefined();
  });

  test('who waits too long gets none, and stands in nobody’s way', async () => {
    const keeper = new SharedMutexes();
    const [first, second, third] = [join(keeper), join(keeper), join(keeper)].map(({ mutexes }) => mutexes.of('ca', 1));
    await first?.acquire(1000);
    await expect(second?.acquire(20)).rejects.toBeInstanceOf(NoPermitError);
    const waiting = third?.acquire(5000);
    await pause();
    first?.release();
    await expect(waiting).resolves.toBeUndefined();
  });

  test('a grant that comes when its worker has just given up goes on to the next', () => {
    const keeper = new SharedMutexes();
    const granted: string[] = [];
    const member = (name: string): MutexWorker => ({ send: () => granted.push(name) });
    const [first, second, third] = [member('first'), member('second'), member('third')];
    for (const worker of [first, second, third]) keeper.take(worker, { mutex: 'acquire', name: 'ca', id: 1 });
    keeper.take(first, { mutex: 'release', name: 'ca', id: 1 });
    keeper.take(second, { mutex: 'release', name: 'ca', id: 1 });
    expect(granted).toEqual(['first', 'second', 'third']);
  });

  test('a worker that dies loses what it held', async () => {
    const keeper = new SharedMutexes();
    const [holder, other] = [join(keeper), join(keeper)];
    await holder.mutexes.of('ca', 1).acquire(1000);
    const waiting = other.mutexes.of('ca', 1).acquire(5000);
    await pause();
    keeper.gone(holder.worker);
    await expect(waiting).resolves.toBeUndefined();
  });

  test.each([['listening'], [null], [{ mutex: 'granted', id: 1 }], [{ mutex: 'acquire', name: 1, id: 1 }]])(
    'another message (%j) is left to others',
    (message) => {
      expect(new SharedMutexes().take({ send: () => undefined }, message)).toBe(false);
    },
  );
});
