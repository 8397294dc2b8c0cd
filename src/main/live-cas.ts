/**
 * The CAs in force, with the services that are asked about their requests, and how a reload replaces them: others are made and started beside
 * them, take their place in one step, and what nobody stands on any more is closed once the requests that began before have ended.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRouter, footingOf, type CaContext, type CasInForce } from '../ca/create-router.ts';
import type { CaRouter } from '../ca/router.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import {
  AuthorizationServices,
  type ExternalAuthorization,
} from '../enrollment/authorization/external-authorization.ts';
import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Part } from './part.ts';

export interface LiveCasOptions {
  readonly authorization: ExternalAuthorization;
  readonly context: CaContext;
  readonly log: Pick<Logger, 'error'>;
  /** Resolves once whatever is at work at the moment of the call has ended. */
  readonly endOfWork: () => Promise<unknown>;
  /** Milliseconds after which nobody is waited for any more. */
  readonly patience?: number;
}

/** A request takes no longer; what does, such as a stream of events to an administrator, stands on no CA. */
const PATIENCE = 300_000;

/** CAs that are started and not in force. One of the two is called, once. */
interface NextCas {
  readonly router: CaRouter;
  /** Brings them into force; cannot fail. */
  apply(): void;
  drop(): Promise<void>;
}

export class LiveCas implements Part {
  /** The CAs in force, whichever they are. */
  readonly router: CaRouter;
  readonly #options: LiveCasOptions;
  #material: Material;
  /** Called after a change. */
  readonly #listeners: (() => void)[] = [];
  /** What a reload has replaced and is not closed yet. */
  readonly #retired = new Set<() => Promise<void>>();

  /** Starts nothing. @throws as {@link createRouter} */
  constructor(config: Config, material: Material, options: LiveCasOptions) {
    this.router = createRouter(config, material, options.context);
    this.#options = options;
    this.#material = material;
    options.authorization.take(AuthorizationServices.of(material));
  }

  /** @param listener called after each change */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async start(): Promise<void> {
    for (const { driver } of this.router.issuers) await driver.start?.();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#retired].map((close) => close()));
    await Promise.all(this.router.issuers.map(({ driver }) => driver.close()));
  }

  /**
   * Makes the CAs of a new configuration and starts what they need beside what is open already.
   *
   * @throws whatever is wrong with them; nothing has changed, and nothing new is open then
   */
  async prepare(config: Config, material: Material): Promise<NextCas> {
    const { authorization, context } = this.#options;
    const services = AuthorizationServices.of(material);
    const router = createRouter(config, material, context, { router: this.router, material: this.#material });
    const close = async (): Promise<void> => {
      services.close();
      await closeAll(without(router, this.router));
    };
    try {
      for (const driver of without(router, this.router)) await driver.start?.();
    } catch (error) {
      await close();
      throw error;
    }
    return {
      router,
      drop: close,
      apply: () => {
        const replaced = without(this.router, router);
        this.router.take(router);
        this.#material = material;
        const former = authorization.take(services);
        this.#retire(async () => {
          former?.close();
          await closeAll(replaced);
        });
        for (const listener of this.#listeners) listener();
      },
    };
  }

  #retire(close: () => Promise<void>): void {
    const { log, endOfWork, patience = PATIENCE } = this.#options;
    const once = async (): Promise<void> => {
      if (this.#retired.delete(once)) await close();
    };
    this.#retired.add(once);
    Promise.race([endOfWork(), sleep(patience, undefined, { ref: false })])
      .then(once)
      .catch((error: unknown) => log.error({ detail: describe(error) }, 'what a reload has replaced was not closed'));
  }
}

type Driver = CasInForce['router']['issuers'][number]['driver'];

/** The drivers of some CAs that stand on nothing of the others'. */
function without({ issuers }: CaRouter, others: CaRouter): Driver[] {
  const shared = new Set(others.issuers.map(({ driver }) => footingOf(driver)));
  return issuers.map(({ driver }) => driver).filter((driver) => !shared.has(footingOf(driver)));
}

async function closeAll(drivers: readonly Driver[]): Promise<void> {
  await Promise.all(drivers.map((driver) => driver.close()));
}
