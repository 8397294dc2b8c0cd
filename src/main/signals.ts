/** What the signals of the process do, from its first moment on. */
import { describe } from '../errors.ts';
import type { RunningService } from './start.ts';

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** The signals as server.ts holds them back until somebody knows what to do with them. */
export interface Signals {
  /** Hands over those that came so far, and from now on each that comes. */
  pass(to: (signal: Signal) => void): void;
  /** Leaves them to the system again, also one that came already. */
  release(): void;
}

/** How a service that was told to stop came to its end. */
export type StopOutcome = (error?: unknown) => void;

/**
 * SIGTERM and SIGINT stop the service, once; SIGHUP reloads it. One that comes while it starts waits for the start, any
 * number of SIGHUPs as one.
 */
export class ServiceSignals {
  readonly #service: Promise<RunningService>;
  readonly #stopped: StopOutcome;
  #stopping = false;
  #reloadWanted = false;
  #reloading: Promise<void> | undefined;

  /**
   * @param service resolves when it is up; its failure is the caller's matter
   * @param stopped told once the service was asked to stop and has
   */
  constructor(signals: Signals, service: Promise<RunningService>, stopped: StopOutcome) {
    this.#service = service;
    this.#stopped = stopped;
    service.catch(() => undefined);
    signals.pass((signal) => {
      if (signal === 'SIGHUP') this.#reload();
      else void this.#stop();
    });
  }

  /** Whether a signal asked for the end. */
  get stopping(): boolean {
    return this.#stopping;
  }

  #reload(): void {
    this.#reloadWanted = true;
    this.#reloading ??= this.#reloadWhileWanted().finally(() => (this.#reloading = undefined));
  }

  async #reloadWhileWanted(): Promise<void> {
    try {
      const service = await this.#service;
      while (this.#reloadWanted && !this.#stopping) {
        this.#reloadWanted = false;
        await service.reload();
      }
    } catch {
      // It never came up, which its starter tells.
    }
  }

  /** Stops the service because it cannot go on. @param reason passed on once it has stopped */
  async fail(reason: Error): Promise<void> {
    await this.#stop(reason);
  }

  async #stop(reason?: Error): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    let service;
    try {
      service = await this.#service;
    } catch {
      return;
    }
    try {
      await this.#reloading;
      await service.stop();
      this.#stopped(reason);
    } catch (error) {
      this.#stopped(reason ?? new Error(`could not stop cleanly: ${describe(error)}`, { cause: error }));
    }
  }
}
