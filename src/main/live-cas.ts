/**
 * The CAs in force, the services that use them, and their replacement by a reload: new CAs start next to the old ones,
 * replace them in one step, and the old ones close once earlier requests have ended.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRouter, backendOf, type CaContext, type CasInForce } from '../ca/create-router.ts';
import type { CaRouter } from '../ca/router.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import {
  AuthorizationServices,
  type ExternalAuthorization,
} from '../enrollment/authorization/external-authorization.ts';
import type { Logger } from '../log.ts';
import { type Part, reporting } from './part.ts';

export interface LiveCasOptions {
  readonly authorization: ExternalAuthorization;
  readonly context: CaContext;
  readonly log: Pick<Logger, 'error'>;
  /** Called after a change. */
  readonly onChange: () => void;
  /** Resolves once all work in progress at the time of the call has ended. */
  readonly endOfWork: () => Promise<unknown>;
  /** Maximum wait in milliseconds. */
  readonly maxWait?: number;
}

/** Requests take less. Longer work, such as an administrator's event stream, uses no CA. */
const MAX_WAIT = 300_000;

/** Started CAs that are not in force. Call exactly one of the two, once. */
interface NextCas {
  readonly router: CaRouter;
  /** Puts them in force; cannot fail. */
  apply(): void;
  drop(): Promise<void>;
}

export class LiveCas implements Part {
  /** Always the CAs in force. */
  readonly router: CaRouter;
  readonly #options: LiveCasOptions;
  #material: Material;
  /** Replaced CAs that are not closed yet. */
  readonly #retired = new Set<() => Promise<void>>();

  constructor(config: Config, material: Material, options: LiveCasOptions) {
    this.router = createRouter(config, material, options.context);
    this.#options = options;
    this.#material = material;
    options.authorization.take(AuthorizationServices.of(material));
  }

  async start(): Promise<void> {
    await Promise.all(this.router.issuers.map(async ({ driver }) => driver.start?.()));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#retired].map((close) => close()));
    await Promise.all(this.router.issuers.map(async ({ driver }) => driver.close?.()));
  }

  /**
   * Creates and starts the CAs of a new configuration, reusing open backends.
   * @throws the problem; nothing has changed and nothing new is open then
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
      await Promise.all(without(router, this.router).map(async (driver) => driver.start?.()));
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
        this.#options.onChange();
      },
    };
  }

  #retire(close: () => Promise<void>): void {
    const { log, endOfWork, maxWait = MAX_WAIT } = this.#options;
    const once = async (): Promise<void> => {
      if (this.#retired.delete(once)) await close();
    };
    this.#retired.add(once);
    Promise.race([endOfWork(), sleep(maxWait, undefined, { ref: false })])
      .then(once)
      .catch(reporting(log, 'cannot close resources that a reload replaced'));
  }
}

type Driver = CasInForce['router']['issuers'][number]['driver'];

function without({ issuers }: CaRouter, others: CaRouter): Driver[] {
  const shared = new Set(others.issuers.map(({ driver }) => backendOf(driver)));
  return issuers.map(({ driver }) => driver).filter((driver) => !shared.has(backendOf(driver)));
}

async function closeAll(drivers: readonly Driver[]): Promise<void> {
  await Promise.all(drivers.map(async (driver) => driver.close?.()));
}
