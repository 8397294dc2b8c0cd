/**
 * Worker thread of an isolated child: kills the process when its parent is gone. The `disconnect` event does so too,
 * but not while the main thread is stuck in a native call.
 */
import { workerData } from 'node:worker_threads';

const POLL_MS = 1000;

// The parent's ID comes from the main thread: when this thread runs, the parent may already be gone.
setInterval(() => {
  if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL');
}, POLL_MS);
