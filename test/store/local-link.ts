/**
 * The database in the caller's own thread, for the many tests that are about something else than the threads: the two of a store cost a fifth of
 * a second each time. Everything else is as in a service: the messages are copied as between threads, and come in a turn of their own.
 */
import { fromPlainError, toPlainError, type Response } from '../../src/store/sqlite/calls.ts';
import { CallServer } from '../../src/store/sqlite/call-server.ts';
import { toEstuaryError } from '../../src/store/sqlite/errors.ts';
import { lost } from '../../src/store/sqlite/link.ts';
import { openReader, openWriter } from '../../src/store/sqlite/roles.ts';
import { type threadLink, withBuffers } from '../../src/store/sqlite/thread-link.ts';

const withOwnBuffers = (response: Response): Response =>
  'replies' in response
    ? {
        replies: response.replies.map((reply) =>
          'value' in reply ? { id: reply.id, value: withBuffers(reply.value) } : reply,
        ),
      }
    : response;

export const localLink: typeof threadLink = (options, now) => (events) => {
  try {
    const role = options.role === 'writer' ? openWriter(options, now()) : openReader(options);
    const session = new CallServer(role).connect({
      send(response) {
        const copy = withOwnBuffers(structuredClone(response));
        setImmediate(() => events.response(copy, Infinity));
      },
      end() {
        role.close();
        setImmediate(() => events.end(lost('closed')));
      },
    });
    return {
      send(request) {
        const copy = structuredClone(request);
        setImmediate(() => session.take(copy));
      },
    };
  } catch (error) {
    const reason = fromPlainError(toPlainError(toEstuaryError(error)));
    setImmediate(() => events.end(reason));
    return { send: () => undefined };
  }
};
