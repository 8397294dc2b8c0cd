/**
 * The link to a thread of this process. Messages are structured clones: measured, packing them ourselves or with `v8.serialize` costs as
 * much (docs/performance.md).
 */
import { Worker } from 'node:worker_threads';
import type { EstuaryError } from '../../errors.ts';
import { siblingModule } from '../../process/protocol.ts';
import { type Call, fromPlainError, type Reply, type Response } from './calls.ts';
import { lost, type OpenLink } from './link.ts';
import { type DatabaseOptions, isDatabaseOptions } from './database-options.ts';

/** What a thread gets as `workerData`. */
export type ThreadOptions = DatabaseOptions & {
  readonly role: 'writer' | 'reader';
  /** Milliseconds since the epoch, for records about what it finds. */
  readonly time: number;
};

export function isThreadOptions(value: unknown): value is ThreadOptions {
  return isDatabaseOptions(value) && 'role' in value;
}

/** Starts a thread for each life of the link. */
export function threadLink(
  options: DatabaseOptions & { readonly role: ThreadOptions['role'] },
  now: () => number,
): OpenLink {
  return (events) => {
    const worker = new Worker(siblingModule(import.meta.url, './thread'), {
      workerData: { ...options, time: now() } satisfies ThreadOptions,
      name: `estuary-store-${options.role}`,
    });
    let died: EstuaryError | undefined;
    worker.on('message', (response: Response) => {
      if ('failed' in response) died = fromPlainError(response.failed);
      else
        events.response('replies' in response ? { ...response, replies: response.replies.map(asReceived) } : response);
    });
    worker.on('error', (error: unknown) => {
      died = lost(error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
    worker.on('exit', (code) => events.end(died ?? lost(`the ${options.role} thread ended with code ${code}`)));
    return {
      send: (request) => worker.postMessage('calls' in request ? { calls: request.calls.map(forTransfer) } : request),
    };
  };
}

const forTransfer = (call: Call): Call => ({ ...call, args: call.args.map(ownBytes) as never[] });

const asReceived = (reply: Reply): Reply =>
  reply.error === undefined ? { id: reply.id, value: withBuffers(reply.value) } : reply;

/**
 * A value with a copy of its own for each Buffer in it: the clone of a slice would carry the whole memory block it lies
 * in. What holds no Buffer is passed on as it is.
 */
export function ownBytes(value: unknown): unknown {
  if (!holdsBytes(value)) return value;
  if (value instanceof Uint8Array) return copyOf(value);
  if (Array.isArray(value)) return value.map(ownBytes);
  const copy = { ...value };
  for (const [key, member] of Object.entries(value)) if (holdsBytes(member)) Reflect.set(copy, key, ownBytes(member));
  return copy;
}

function holdsBytes(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Uint8Array) return true;
  // Without a list of the members: every call of the store comes by here, with its audit events.
  for (const key in value) if (holdsBytes(Reflect.get(value, key))) return true;
  return false;
}

function copyOf(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

/** The same value with Buffers: a BLOB arrives from the thread as a Uint8Array. It is ours alone, and is changed in place. */
export function withBuffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value !== 'object' || value === null) return value;
  for (const [key, member] of Object.entries(value))
    if (typeof member === 'object') Reflect.set(value, key, withBuffers(member));
  return value;
}
