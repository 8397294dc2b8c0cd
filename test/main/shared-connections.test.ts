/** Contract §11: the limits of connections hold over all workers. */
import { expect, test } from 'vitest';
import { ConnectionKeeper, WorkerConnections, type ConnectionRefusal } from '../../src/main/shared-connections.ts';

/** A worker and its supervisor in one process. */
function worker(keeper: ConnectionKeeper): { connections: WorkerConnections; ends: () => void } {
  const listeners: ((message: unknown) => void)[] = [];
  const member = { send: (message: ConnectionRefusal) => listeners.forEach((listener) => listener(message)) };
  const connections = new WorkerConnections({
    send: (message) => keeper.take(member, message),
    onMessage: (listener) => listeners.push(listener),
  });
  return { connections, ends: () => keeper.gone(member) };
}

/** Opens one and says whether it was refused. */
function open(
  connections: WorkerConnections,
  listener: string,
  address: string,
): { refused: boolean; close: () => void } {
  const state = { refused: false, close: (): void => undefined };
  state.close = connections.opened(listener, address, () => (state.refused = true));
  return state;
}

test('two workers share the limits; the end of a refused connection frees nothing', () => {
  const keeper = new ConnectionKeeper({ total: 3, perAddress: 2 });
  const [one, two] = [worker(keeper).connections, worker(keeper).connections];
  const first = open(one, 'est', 'a');
  expect([first, open(two, 'est', 'a')].map(({ refused }) => refused)).toEqual([false, false]);
  const third = open(two, 'est', 'a');
  expect(third.refused, 'a third from one address').toBe(true);
  third.close();
  expect(open(one, 'est', 'a').refused, 'still').toBe(true);
  expect(open(one, 'est', 'b').refused, 'from another').toBe(false);
  expect(open(two, 'est', 'c').refused, 'a fourth in all').toBe(true);
  expect(open(two, 'admin', 'a').refused, 'another listener').toBe(false);
  first.close();
  expect(open(two, 'est', 'a').refused, 'after one has ended').toBe(false);
});

test('a worker that dies loses its connections', () => {
  const keeper = new ConnectionKeeper({ total: 2, perAddress: 2 });
  const [dying, other] = [worker(keeper), worker(keeper).connections];
  open(dying.connections, 'est', 'a');
  open(dying.connections, 'est', 'a');
  expect(open(other, 'est', 'b').refused).toBe(true);
  dying.ends();
  expect(open(other, 'est', 'b').refused).toBe(false);
});

test('what is no matter of connections is left to others', () => {
  const keeper = new ConnectionKeeper({ total: 1, perAddress: 1 });
  const nobody = { send: () => undefined };
  for (const message of [undefined, 'listening', { turn: 'enter', name: 'x', id: 1 }, { connection: 'opened', id: 1 }])
    expect(keeper.take(nobody, message)).toBe(false);
});
