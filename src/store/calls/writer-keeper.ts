/** The supervisor's side of the process that writes the database for all (writer-process.ts): starts it, and again whenever it dies. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, unavailable } from '../../errors.ts';
import { makeFolder } from '../../folders.ts';
import { ChildInstance } from '../../process/child-instance.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { siblingModule } from '../../process/sibling-module.ts';
import { lost } from './link.ts';
import type { DatabaseOptions } from './database-options.ts';
import type { WriterStart } from './writer-server.ts';

export interface WriterLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Milliseconds before one that died is replaced; doubled up to the longest while it keeps dying. */
const SHORTEST_PAUSE = 100;
const LONGEST_PAUSE = 5000;
/** One that lived as long ends the doubling. */
const STABLE_AFTER = 10_000;
/** Milliseconds that it may take until its socket is there: the database is opened later. */
const START_DEADLINE = 60_000;
/** Its disk may take its time; it is not killed over that. */
const NO_DEADLINE = 2 ** 31 - 1;
/** Milliseconds that it may take to end. */
const END_GRACE = 10_000;
/** Longest path of a socket on every system that Node runs on. */
const MAX_SOCKET_PATH = 100;

export class WriterKeeper {
  readonly #options: DatabaseOptions;
  readonly #log: WriterLog;
  readonly #folder: string;
  readonly socket: string;
  #instance: ChildInstance | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pause = SHORTEST_PAUSE;
  #stopped = false;

  /** @throws EstuaryError 503 `STORE_UNAVAILABLE` where no folder for its socket can be made */
  constructor(options: DatabaseOptions, log: WriterLog) {
    this.#options = options;
    this.#log = log;
    this.#folder = socketFolder(options.driver === 'sqlite' ? options.path : options.audit_file);
    this.socket = join(this.#folder, 'socket');
  }

  /**
   * Resolves when it can be connected to; it opens the database for the first who does.
   *
   * @throws EstuaryError 503 `STORE_UNAVAILABLE`
   */
  async start(): Promise<void> {
    try {
      await this.#launch(false);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /**
   * After a process of this name has died: whatever is still on its way from it is not carried out, once this resolves.
   */
  async drop(name: string): Promise<void> {
    // Where it dies over that, nothing of its connections is left either.
    await this.#instance?.call('drop', name, NO_DEADLINE).catch(() => undefined);
  }

  /** Ends it. Who is connected should have closed before. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#instance?.end(END_GRACE);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #launch(again: boolean): Promise<void> {
    let up = 0;
    const instance = new ChildInstance({
      module: siblingModule(import.meta.url, './writer-process'),
      env: {},
      lost: (_kind, detail) => lost(`the writing process: ${detail}`),
      onEnd: (reason) => {
        if (this.#instance !== instance) return;
        this.#instance = undefined;
        if (performance.now() - up > STABLE_AFTER) this.#pause = SHORTEST_PAUSE;
        if (up > 0) this.#relaunchLater(reason);
      },
    });
    this.#instance = instance;
    const start: WriterStart = { ...this.#options, socket: this.socket, again };
    try {
      await instance.init(start, START_DEADLINE);
    } catch (error) {
      throw error instanceof IsolatedError ? lost(`the writing process: ${error.message}`) : error;
    }
    up = performance.now();
    this.#log.info({ writer_pid: instance.pid }, 'the process that writes the store is up');
  }

  #relaunchLater(reason: string): void {
    if (this.#stopped) return;
    this.#log.error({ reason }, 'the process that writes the store has ended, starting it again');
    const pause = this.#pause;
    this.#pause = Math.min(pause * 2, LONGEST_PAUSE);
    this.#timer = setTimeout(() => {
      this.#launch(true).catch((error: unknown) => {
        const failed = this.#instance;
        this.#instance = undefined;
        void failed?.end(0);
        this.#relaunchLater(describe(error));
      });
    }, pause);
  }
}

/** For its owner alone; the same at each start, so that none is left over. */
function socketFolder(beside: string): string {
  try {
    const path = resolve(beside);
    const folder = `${path}.writer`;
    if (folder.length > MAX_SOCKET_PATH) return mkdtempSync(join(tmpdir(), 'estuary-'));
    makeFolder(dirname(path));
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  } catch (error) {
    throw unavailable('STORE_UNAVAILABLE', 'the store cannot be used at present', {
      detail: `no folder for the socket of the writing process: ${describe(error)}`,
      cause: error,
    });
  }
}
