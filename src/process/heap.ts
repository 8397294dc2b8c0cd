/** V8's settings for a process that serves requests. */
import { setFlagsFromString } from 'node:v8';

/**
 * A request leaves short-lived objects. A large young generation is collected seldom, and waking V8's threads for it
 * costs more than they save. V8 reads these flags at each collection; others take effect only on its command line.
 */
export function prepareHeapForRequests(): void {
  setFlagsFromString('--semi-space-growth-factor=16');
  setFlagsFromString('--no-parallel-scavenge');
}
