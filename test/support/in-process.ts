/**
 * The server of a test in the test's process, in place of the built one (server-process.ts): it starts sooner, runs code that is
 * already compiled, and has the mutants of scripts/mutate.
 */
import type { DestinationStream } from '../../src/log.ts';
import { loadService } from '../../src/main/commands/serve.ts';
import { startService, type RunningService } from '../../src/main/start.ts';
import { describe } from '../../src/errors.ts';
import { parseRecord, type Exit, type ListenerName, type ServerProcess, type StartOptions } from './server-process.ts';
import { ALWAYS_IN_PROCESS } from './wanted-server.ts';

/** @throws {Error} with the output when it does not start */
export async function startInProcess({ config: configFile }: StartOptions): Promise<ServerProcess> {
  const server = new InProcess();
  try {
    const loaded = await loadService(configFile, { env: process.env, now: Date.now });
    server.run(await startService({ ...loaded, configFile, logTo: server }));
    return server;
  } catch (error) {
    server.write(`estuary: ${describe(error)}`);
    throw new Error(`the server stopped (1):\n${server.output()}`, { cause: error });
  }
}

class InProcess implements ServerProcess, DestinationStream {
  readonly #lines: string[] = [];
  readonly #records: Readonly<Record<string, unknown>>[] = [];
  #read = 0;
  readonly #exited = Promise.withResolvers<Exit>();
  readonly exited = this.#exited.promise;
  readonly pid = process.pid;
  #service: RunningService | undefined;

  run(service: RunningService): void {
    this.#service = service;
    void service.failure.then((reason) => {
      this.write(`estuary: ${describe(reason)}`);
      return this.#end(1);
    });
  }

  write(lines: string): void {
    this.#lines.push(...lines.split('\n').filter((line) => line !== ''));
  }

  output(): string {
    return this.#lines.join('\n');
  }

  log(): readonly Readonly<Record<string, unknown>>[] {
    for (; this.#read < this.#lines.length; this.#read += 1) {
      const record = parseRecord(this.#lines[this.#read] ?? '');
      if (record !== undefined) this.#records.push(record);
    }
    return [...this.#records];
  }

  port(listener: ListenerName): number {
    // The last: those of a wait for the database close.
    const isIt = (line: Readonly<Record<string, unknown>>) =>
      line['msg'] === 'listening' && line['listener'] === listener;
    const port = this.log().findLast(isIt)?.['port'];
    if (typeof port !== 'number') throw new Error(`the ${listener} listener is not on`);
    return port;
  }

  signal(name: NodeJS.Signals): void {
    if (name === 'SIGHUP') void this.#service?.reload();
    else if (name === 'SIGTERM' || process.env['ESTUARY_TEST_SERVER'] === ALWAYS_IN_PROCESS) void this.stop();
    else throw new Error(`${name} needs a process: start the server with { built: true }`);
  }

  stop(): Promise<Exit> {
    return this.#end(0);
  }

  async #end(code: number): Promise<Exit> {
    const service = this.#service;
    this.#service = undefined;
    if (service !== undefined) {
      await service.stop();
      this.#exited.resolve({ code, signal: null });
    }
    return this.exited;
  }
}
