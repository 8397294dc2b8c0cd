/** The store's thread: a writer with group commit, or a reader beside it. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { AuditLog } from './audit-log.ts';
import {
  type Call,
  type Reply,
  type Request,
  type Response,
  isWorkerOptions,
  toPlainError,
  type WorkerOptions,
} from './calls.ts';
import { openReadOnly, openWritable } from './database.ts';
import { toEstuaryError } from './errors.ts';
import { GroupCommit, type WriteOperation } from './group-commit.ts';
import { watchRevocations, type RevocationWatch } from './revoked-serials.ts';
import { settleLookups } from './token-lookups.ts';
import { readOperations, writeOperations } from './operations.ts';

/** Calls that share a transaction at most: one that waits in the next does not wait long. */
const MAX_GROUP = 256;

interface Role {
  /** The names of what it carries out. */
  readonly operations: readonly string[];
  carryOut(calls: readonly Call[]): readonly Reply[];
  readonly revocations?: RevocationWatch | undefined;
  close(): void;
}

function writer(options: WorkerOptions): Role {
  const db = openWritable(options.path);
  settleLookups(db, options.path, options.lookup_key, options.time);
  const log = new AuditLog(db, options.audit_file, options.node);
  const operations = new Map<string, WriteOperation>(Object.entries(writeOperations(db, log)));
  const group = new GroupCommit(db, log, operations);
  group.recover(options.time);
  return {
    operations: [...operations.keys()],
    revocations: options.tells_revocations ? watchRevocations(db) : undefined,
    carryOut: (calls) => group.run(calls, calls[0]?.time ?? options.time),
    close() {
      log.close();
      db.close();
    },
  };
}

function reader(options: WorkerOptions): Role {
  const db = openReadOnly(options.path);
  const operations = new Map<string, (...args: never[]) => unknown>(Object.entries(readOperations(db)));
  const read = (call: Call): Reply => {
    const operation = operations.get(call.operation);
    try {
      if (operation === undefined) throw new Error(`no such operation: ${call.operation}`);
      return { id: call.id, value: operation(...call.args) };
    } catch (error) {
      return { id: call.id, error: toPlainError(toEstuaryError(error)) };
    }
  };
  return { operations: [...operations.keys()], carryOut: (calls) => calls.map(read), close: () => db.close() };
}

/** Everything that waits now, after `first`. */
function drain(port: MessagePort, first: Request): { calls: Call[]; close: boolean } {
  const calls: Call[] = [];
  let request: Request | undefined = first;
  while (request !== undefined) {
    if ('close' in request) return { calls, close: true };
    calls.push(...request.calls);
    const next: { message: Request } | undefined = receiveMessageOnPort(port);
    request = next?.message;
  }
  return { calls, close: false };
}

function serve(port: MessagePort, role: Role): void {
  const send = (response: Response): void => port.postMessage(response);
  port.on('message', (first: Request) => {
    const { calls, close } = drain(port, first);
    for (let at = 0; at < calls.length; at += MAX_GROUP) {
      const replies = role.carryOut(calls.slice(at, at + MAX_GROUP));
      const revoked = role.revocations?.take() ?? [];
      send(revoked.length === 0 ? { replies } : { replies, revoked });
    }
    if (!close) return;
    role.close();
    port.close();
  });
  send({ ready: role.operations, revoked: role.revocations?.known });
}

function start(port: MessagePort, options: WorkerOptions): void {
  try {
    serve(port, options.role === 'writer' ? writer(options) : reader(options));
  } catch (error) {
    const response: Response = { failed: toPlainError(toEstuaryError(error)) };
    port.postMessage(response);
    port.close();
  }
}

const options: unknown = workerData;
if (parentPort === null || !isWorkerOptions(options)) throw new Error('this module is a worker thread of the store');
start(parentPort, options);
