import { Worker } from 'node:worker_threads';
import { INIT, IsolatedError, parseRequest, type Reply, startedModule, toFailure } from './protocol.ts';

interface Service {
  /** Receives the start payload; a rejection is reported to the parent, and no call follows. */
  init(payload: unknown): unknown;
  readonly methods: Readonly<Record<string, (args: unknown) => unknown>>;
  /** Called once before an orderly end. */
  close?(): Promise<void> | void;
}

/** What `init` has made. @throws IsolatedError before: the parent calls nothing then */
export function initialized<T>(made: T | undefined): T {
  if (made === undefined) throw new IsolatedError('NOT_READY', 'called before init');
  return made;
}

function send(reply: Reply): void {
  // The parent may be gone; `disconnect` then ends this process.
  if (process.connected) process.send?.(reply, () => undefined);
}

async function answer(service: Service, method: string, args: unknown): Promise<unknown> {
  if (method === INIT) return await service.init(args);
  const call = Object.hasOwn(service.methods, method) ? service.methods[method] : undefined;
  if (call === undefined) throw new IsolatedError('NO_SUCH_METHOD', `no method ${method}`);
  return await call(args);
}

/**
 * The child side of an {@link IsolatedProcess}; call it once, at the end of the child's module. The process ends only
 * when the parent disconnects or dies: signals to the process group are ignored, since the parent's requests in flight
 * still need this child.
 */
export function serve(service: Service): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
    process.on(signal, () => undefined);
  new Worker(startedModule('process/orphan-watch'), { workerData: process.ppid }).unref();

  process.on('disconnect', () => {
    void Promise.resolve()
      .then(() => service.close?.())
      .catch(() => undefined)
      .finally(() => process.exit(0));
  });
  process.on('message', (message: unknown) => {
    const request = parseRequest(message);
    if (request === undefined) return;
    const { id, method, args } = request;
    answer(service, method, args).then(
      (value) => send({ id, ok: true, value }),
      (error: unknown) => send({ id, ok: false, error: toFailure(error) }),
    );
  });
}
