/**
 * A crowd of slow clients beside a benchmark: a process of its own, started by enroll.ts with the places, that says when
 * all are there and keeps their number up until it is ended.
 */
import { beSlow, crowd, SLOW_KINDS, type Place, type SlowKind } from '../../../test/support/slow-crowd.ts';

/** Connections that have a request behind them and wait for the next, on each listener. */
export const IDLE = 1000;
/** Slow clients of every other kind, on each listener. */
export const SLOW = 10;

async function stay(kind: SlowKind, place: Place): Promise<never> {
  for (;;) {
    const socket = await beSlow(kind, place);
    if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function isPlaces(value: unknown): value is readonly Place[] {
  return Array.isArray(value) && value.every((place) => typeof place === 'object' && place !== null && 'port' in place);
}

const places: unknown = JSON.parse(process.argv[2] ?? '');
if (!isPlaces(places)) throw new Error('not a list of places');
for (const place of places) {
  await crowd('idle keep-alive', IDLE, place);
  for (const kind of SLOW_KINDS) if (kind !== 'idle keep-alive') for (let i = 0; i < SLOW; i++) void stay(kind, place);
}
// What those that never read have asked for is answered by then.
await new Promise((resolve) => setTimeout(resolve, 3000));
process.send?.('ready');
