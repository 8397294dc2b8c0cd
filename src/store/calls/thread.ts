/** A thread of the store: it has the database open, and either writes or reads in parallel to the writer. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { CallServer } from './call-server.ts';
import { type Request, type Response, toPlainError } from './calls.ts';
import { toStoreError } from './errors.ts';
import { openRole } from './open-role.ts';
import { isThreadOptions, type ThreadOptions } from './thread-link.ts';

async function start(port: MessagePort, options: ThreadOptions): Promise<void> {
  const send = (response: Response): void => port.postMessage(response);
  try {
    const role = await openRole(options, options.time);
    const server = new CallServer(role, {
      send,
      end() {
        void Promise.resolve(role.close()).finally(() => port.close());
      },
    });
    port.on('message', (request: Request) => server.take(request));
  } catch (error) {
    send({ failed: toPlainError(toStoreError(error)) });
    port.close();
  }
}

const options: unknown = workerData;
if (parentPort === null || !isThreadOptions(options)) throw new Error('this module is a thread of the store');
await start(parentPort, options);
