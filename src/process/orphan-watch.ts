/**
 * Worker thread of an isolated child: ends the process when its parent is gone. The `disconnect` event does that too,
 * but only while the main thread is not stuck in a native call, which is what isolated processes are for.
 */
import { workerData } from 'node:worker_threads';

const POLL_MS = 1000;

// The parent's id comes from the main thread: by the time this thread runs, the parent may be gone already.
setInterval(() => {
  if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL');
}, POLL_MS);
