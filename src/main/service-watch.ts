/** Tries the services that the server uses, so that metrics, health and the log name one that does not answer. */
import { describe, EstuaryError } from '../errors.ts';
import { every } from '../process/turns.ts';
import type { Part } from './part.ts';

/** Milliseconds between attempts. */
const INTERVAL = 20_000;

interface WatchedService {
  /** As in the metrics: `ldap`, `jwks` … */
  readonly name: string;
  /** @throws Error with the reason why it cannot be used */
  readonly probe: () => Promise<unknown>;
}

export interface ServiceReport {
  readonly name: string;
  /** The label that uses it; empty: none. */
  readonly ca: string;
  /** Why it cannot be used; undefined: it can, or was not used yet. */
  readonly problem: string | undefined;
}

export class ServiceWatch implements Part {
  readonly #services: readonly WatchedService[];
  /** By name and label, those that were tried or used. */
  readonly #reports = new Map<string, ServiceReport>();
  #end: (() => void) | undefined;

  constructor(services: readonly WatchedService[]) {
    this.#services = services;
  }

  start(): void {
    this.#end = every(INTERVAL, () => {
      for (const { name, probe } of this.#services)
        probe().then(
          () => this.note(name, '', undefined),
          (error: unknown) => this.note(name, '', detailOf(error)),
        );
    });
  }

  stop(): void {
    this.#end?.();
  }

  /** The outcome of an attempt. */
  note(name: string, ca: string, problem: string | undefined): void {
    this.#reports.set(`${name} ${ca}`, { name, ca, problem });
  }

  get reports(): readonly ServiceReport[] {
    const untried = this.#services.filter(({ name }) => !this.#reports.has(`${name} `));
    return [...this.#reports.values(), ...untried.map(({ name }) => ({ name, ca: '', problem: undefined }))];
  }
}

/** Why a service cannot be used, with what only the log may have. */
export const detailOf = (error: unknown): string =>
  error instanceof EstuaryError && error.detail !== undefined ? `${error.message}: ${error.detail}` : describe(error);

/** @throws Error with the reasons if no address can be used */
export function requireOne(probed: readonly (readonly [url: string, problem: string | undefined])[]): void {
  const problems = probed.flatMap(([url, problem]) => (problem === undefined ? [] : `${url}: ${problem}`));
  if (problems.length === probed.length) throw new Error(problems.join('; '));
}
