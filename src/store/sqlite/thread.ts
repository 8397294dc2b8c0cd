/** A thread of the store: it has the database for the process that it belongs to, and writes, or reads beside the writer. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { CallServer } from './call-server.ts';
import { type Request, type Response, toPlainError } from './calls.ts';
import { toEstuaryError } from './errors.ts';
import { openReader, openWriter } from './roles.ts';
import { isThreadOptions, type ThreadOptions } from './thread-link.ts';

function start(port: MessagePort, options: ThreadOptions): void {
  const send = (response: Response): void => port.postMessage(response);
  try {
    const role = options.role === 'writer' ? openWriter(options, options.time) : openReader(options);
    const server = new CallServer(role);
    const session = server.connect({
      send,
      end() {
        role.close();
        port.close();
      },
    });
    port.on('message', (request: Request) => session.take(request));
  } catch (error) {
    send({ failed: toPlainError(toEstuaryError(error)) });
    port.close();
  }
}

const options: unknown = workerData;
if (parentPort === null || !isThreadOptions(options)) throw new Error('this module is a thread of the store');
start(parentPort, options);
