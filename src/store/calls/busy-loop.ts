/** Whether the event loop was busy for most of the last 100 ms. */
import { performance, type EventLoopUtilization } from 'node:perf_hooks';

/** Share of the time in which it was at work. */
const BUSY = 0.7;
/** Milliseconds over which that is looked at. */
const WINDOW = 100;

export function busyLoop(): () => boolean {
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  let lookedAt = performance.now();
  let busy = false;
  return () => {
    const now = performance.now();
    if (now - lookedAt >= WINDOW) {
      const current = performance.eventLoopUtilization();
      busy = performance.eventLoopUtilization(current, last).utilization >= BUSY;
      last = current;
      lookedAt = now;
    }
    return busy;
  };
}
