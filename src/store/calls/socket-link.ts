/** The link to the process that writes the database for all (writer-server.ts): a connection to its socket. */
import { connect } from 'node:net';
import type { EstuaryError } from '../../errors.ts';
import { describe } from '../../errors.ts';
import { fromPlainError, isResponse } from './calls.ts';
import { FrameReader, toFrame } from './frames.ts';
import { lost, type OpenLink } from './link.ts';

/** Octets that are read at once. */
const READ_SIZE = 1 << 16;

/** @param path the socket's. @param name who calls: of a worker, the owner of its reservations */
export function socketLink(path: string, name: string): OpenLink {
  return (events) => {
    const frames = new FrameReader();
    let reason: EstuaryError | undefined;
    const take = (chunk: Buffer): void => {
      try {
        for (const { message, at } of frames.push(chunk)) {
          if (!isResponse(message)) throw new TypeError('no response of the store');
          if ('failed' in message) reason = fromPlainError(message.failed);
          else events.response(message, at);
        }
      } catch (error) {
        socket.destroy(lost(`the writing process is not understood: ${describe(error)}`));
      }
    };
    const buffer = Buffer.allocUnsafeSlow(READ_SIZE);
    const socket = connect({
      path,
      // Past the machinery of streams, and without 64 KiB of memory for each message.
      onread: {
        buffer,
        callback(octets) {
          take(Buffer.from(buffer.subarray(0, octets)));
          return true;
        },
      },
    });
    socket.on('connect', () => socket.write(toFrame({ name })));
    socket.on('error', (error) => (reason ??= lost(`the writing process: ${error.message}`)));
    socket.on('close', () => events.end(reason ?? lost('the writing process has closed the connection')));
    return { send: (request) => void socket.write(toFrame(request)) };
  };
}
