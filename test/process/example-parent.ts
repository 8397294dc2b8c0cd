/** A parent to be killed: starts the example child, prints its pid, then hangs the child's main thread if asked to. */
import { IsolatedProcess } from '../../src/process/isolated-process.ts';

const child = new IsolatedProcess({
  module: new URL('./example-child.ts', import.meta.url),
  code: 'PKCS11',
  subject: 'the example',
  env: {},
  init: 'hello',
  startTimeoutMs: 20_000,
  concurrency: 4,
  queueLimit: 4,
  retryAfter: 1,
  log: { info: () => undefined, warn: () => undefined, error: () => undefined },
});
await child.start();
if (process.argv[2] === 'hang') void child.call('hang', undefined, { deadlineMs: 600_000 });
setTimeout(() => process.stdout.write(`${String(child.pid)}\n`), 200);
