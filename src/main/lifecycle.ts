/** Starts, reloads and stops the parts that assemble.ts made. */
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import type { Logger } from '../log.ts';
import type { Assembly } from './assemble.ts';
import { crlFaults } from './live-settings.ts';
import { reporting } from './part.ts';
import type { Prepared } from './reloads.ts';

export class Lifecycle {
  readonly #assembly: Assembly;
  readonly #log: Logger;

  constructor(assembly: Assembly, { log }: { readonly log: Logger }) {
    this.#assembly = assembly;
    this.#log = log;
  }

  /**
   * Binds the ports, then starts the parts in order; resolves when the listeners accept.
   * @param begin called once the ports are bound
   * @throws the error of a part; everything is closed then
   */
  async start(begin: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    try {
      for (const part of this.#assembly.parts) await part.bind?.();
      await begin();
      for (const part of this.#assembly.parts) await part.start?.();
    } catch (error) {
      await this.#stopParts();
      throw error;
    }
  }

  /** Checks that a new configuration is usable. @throws the problem; nothing has changed then */
  async prepare(config: Config, material: Material): Promise<Prepared> {
    const log = this.#log;
    const { live, cas } = this.#assembly;
    const next = await cas.prepare(config, material);
    const drop = (): Promise<void> => next.drop().catch(reporting(log, 'cannot close resources of a failed reload'));
    try {
      const state = await live.make(config, material, next.router);
      return {
        faults: crlFaults({ estTrust: state.estTrust, adminTrust: state.admin.trust }, Date.now()),
        apply: () => {
          next.apply();
          live.replace(state);
          log.level = config.log.level;
        },
        drop: () => void drop(),
      };
    } catch (error) {
      await drop();
      throw error;
    }
  }

  /**
   * Stops accepting, waits for requests in flight up to `server.shutdown_grace`, closes everything but the store, which
   * its opener closes.
   */
  async stop(): Promise<void> {
    this.#log.info('stopping');
    await this.#stopParts();
    this.#log.info('stopped');
  }

  async #stopParts(): Promise<void> {
    for (const part of this.#assembly.parts.toReversed()) await part.stop?.();
  }
}
