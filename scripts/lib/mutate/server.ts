/**
 * The server of a test in the test's process, in place of the built one (`test/support/server-process.ts`): it starts sooner, has the
 * mutants, and shows which test reaches which of them.
 */
import { loadService } from '../../../src/main/commands/serve.ts';
import { startService, type RunningService } from '../../../src/main/start.ts';
import { describe } from '../../../src/errors.ts';
import type { Exit, ListenerName, ServerProcess, StartOptions } from '../../../test/support/server-process.ts';

declare global {
  /** Where loggers write that are created now. */
  var __logDestination: { write(lines: string): void } | undefined;
}

/** @throws {Error} with the output when it does not start */
export async function startInProcess({ config: configFile }: StartOptions): Promise<ServerProcess> {
  const server = new InProcess();
  try {
    const loaded = await loadService(configFile, { env: process.env, now: Date.now });
    globalThis.__logDestination = server;
    // Creates its logger first of all.
    const starting = startService({ ...loaded, configFile });
    globalThis.__logDestination = undefined;
    server.run(await starting);
    return server;
  } catch (error) {
    server.write(`estuary: ${describe(error)}`);
    throw new Error(`the server stopped (1):\n${server.output()}`, { cause: error });
  }
}

class InProcess implements ServerProcess {
  readonly #lines: string[] = [];
  readonly #exited = Promise.withResolvers<Exit>();
  readonly exited = this.#exited.promise;
  readonly pid = process.pid;
  #service: RunningService | undefined;

  run(service: RunningService): void {
    this.#service = service;
  }

  write(lines: string): void {
    this.#lines.push(...lines.split('\n').filter((line) => line !== ''));
  }

  output(): string {
    return this.#lines.join('\n');
  }

  log(): readonly Readonly<Record<string, unknown>>[] {
    return this.#lines
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  }

  port(listener: ListenerName): number {
    const port = this.log().find((line) => line['msg'] === 'listening' && line['listener'] === listener)?.['port'];
    if (typeof port !== 'number') throw new Error(`the ${listener} listener is not on`);
    return port;
  }

  /** Being killed is no worse here than being stopped. */
  signal(name: NodeJS.Signals): void {
    if (name === 'SIGHUP') void this.#service?.reload();
    else void this.stop();
  }

  async stop(): Promise<Exit> {
    const service = this.#service;
    this.#service = undefined;
    if (service !== undefined) {
      await service.stop().catch(() => undefined);
      this.#exited.resolve({ code: 0, signal: null });
    }
    return this.exited;
  }
}
