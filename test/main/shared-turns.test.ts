import { describe, expect, test } from 'vitest';
import { NoTurnError } from '../../src/process/turns.ts';
import { TurnKeeper, WorkerTurns, type TurnWorker } from '../../src/main/shared-turns.ts';

interface Member {
  readonly worker: TurnWorker;
  readonly turns: WorkerTurns;
}

/** A worker whose messages arrive later, as between processes. */
function join(keeper: TurnKeeper): Member {
  let listener: (message: unknown) => void = () => undefined;
  const worker: TurnWorker = { send: (message) => setImmediate(() => listener(message)) };
  const turns = new WorkerTurns({
    send: (message) => setImmediate(() => keeper.take(worker, message)),
    onMessage: (heard) => {
      listener = heard;
    },
  });
  return { worker, turns };
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe('turns that several processes take together', () => {
  test('one at a time has the turn of a name, and everybody gets it', async () => {
    const keeper = new TurnKeeper();
    const takers = [join(keeper), join(keeper), join(keeper)].map(({ turns }) => turns.of('ca', 10));
    let [held, most, had] = [0, 0, 0];
    await Promise.all(
      takers.flatMap((taker) =>
        [1, 2, 3].map(async () => {
          await taker.enter(5000);
          most = Math.max(most, ++held);
          had++;
          await pause();
          held--;
          taker.leave();
        }),
      ),
    );
    expect({ most, had }).toEqual({ most: 1, had: 9 });
  });

  test('another name is another turn', async () => {
    const keeper = new TurnKeeper();
    const { turns } = join(keeper);
    await turns.of('one', 1).enter(1000);
    await expect(turns.of('two', 1).enter(1000)).resolves.toBeUndefined();
  });

  test('who waits too long gets none, and stands in nobody’s way', async () => {
    const keeper = new TurnKeeper();
    const [first, second, third] = [join(keeper), join(keeper), join(keeper)].map(({ turns }) => turns.of('ca', 1));
    await first?.enter(1000);
    await expect(second?.enter(20)).rejects.toBeInstanceOf(NoTurnError);
    const waiting = third?.enter(5000);
    await pause();
    first?.leave();
    await expect(waiting).resolves.toBeUndefined();
  });

  test('a turn that comes when its worker has just given up goes on to the next', () => {
    const keeper = new TurnKeeper();
    const granted: string[] = [];
    const member = (name: string): TurnWorker => ({ send: () => granted.push(name) });
    const [first, second, third] = [member('first'), member('second'), member('third')];
    for (const worker of [first, second, third]) keeper.take(worker, { turn: 'enter', name: 'ca', id: 1 });
    keeper.take(first, { turn: 'leave', name: 'ca', id: 1 });
    keeper.take(second, { turn: 'leave', name: 'ca', id: 1 });
    expect(granted).toEqual(['first', 'second', 'third']);
  });

  test('a worker that dies loses its turn', async () => {
    const keeper = new TurnKeeper();
    const [holder, other] = [join(keeper), join(keeper)];
    await holder.turns.of('ca', 1).enter(1000);
    const waiting = other.turns.of('ca', 1).enter(5000);
    await pause();
    keeper.gone(holder.worker);
    await expect(waiting).resolves.toBeUndefined();
  });

  test.each([['listening'], [null], [{ turn: 'yours', id: 1 }], [{ turn: 'enter', name: 1, id: 1 }]])(
    'another message (%j) is left to others',
    (message) => {
      expect(new TurnKeeper().take({ send: () => undefined }, message)).toBe(false);
    },
  );
});
