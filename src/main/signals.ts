/** Handles the signals of the process. */
import { describe } from '../errors.ts';
import type { RunningService } from './start.ts';

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** Signals that server.ts holds until a handler is set. */
export interface Signals {
  /** Delivers held signals and all later ones. */
  pass(to: (signal: Signal) => void): void;
  /** Restores the default action, also for held signals. */
  release(): void;
}

/** Called when the service has stopped. */
export type StopOutcome = (error?: unknown) => void;

/**
 * SIGTERM and SIGINT stop the service once; SIGHUP reloads it. During the start they wait; several SIGHUPs count as
 * one.
 */
export class ServiceSignals {
  readonly #service: Promise<RunningService>;
  readonly #stopped: StopOutcome;
  readonly #requested = new AbortController();
  #reloadWanted = false;
  #reloading: Promise<void> | undefined;

  /**
   * @param service resolves when it is up; the caller handles its failure
   * @param stopped called after a requested stop
   */
  constructor(signals: Signals, service: Promise<RunningService>, stopped: StopOutcome) {
    this.#service = service;
    this.#stopped = stopped;
    service.catch(() => undefined);
    signals.pass((signal) => {
      if (signal === 'SIGHUP') this.#reload();
      else void this.stop();
    });
  }

  /** Aborted when a signal requests the stop. */
  get requested(): AbortSignal {
    return this.#requested.signal;
  }

  /** Whether a signal requested the stop. */
  get stopping(): boolean {
    return this.#requested.signal.aborted;
  }

  #reload(): void {
    this.#reloadWanted = true;
    this.#reloading ??= this.#reloadWhileWanted().finally(() => (this.#reloading = undefined));
  }

  async #reloadWhileWanted(): Promise<void> {
    try {
      const service = await this.#service;
      while (this.#reloadWanted && !this.stopping) {
        this.#reloadWanted = false;
        await service.reload();
      }
    } catch {
      // The start failed; the caller reports it.
    }
  }

  /** Stops the service. @param reason why it cannot continue, passed on after the stop */
  async stop(reason?: Error): Promise<void> {
    if (this.stopping) return;
    this.#requested.abort();
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
