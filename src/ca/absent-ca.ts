/** Takes the place of a CA whose files cannot be used, so that the other labels work (docs/guides/faults.md). */
import type { CaCertificates } from '../config/material/material.ts';
import { caOutOfService, type CaDriver, type RemoteQueue } from './driver.ts';

interface AbsentCaFacts {
  /** Requests wait in its queue. */
  readonly isRemote: boolean;
  readonly certificates: CaCertificates | undefined;
}

/** Milliseconds: nothing counts as lost meanwhile. */
const NEVER = Number.MAX_SAFE_INTEGER;

export class AbsentCa implements CaDriver {
  readonly remoteQueue?: RemoteQueue;
  /** Only the CA itself can revoke its certificates. */
  readonly revoke?: () => Promise<never>;
  readonly #certificates: CaCertificates | undefined;
  readonly #refuse: () => Promise<never>;

  /** @param reason for the log */
  constructor(label: string, { isRemote, certificates }: AbsentCaFacts, reason: string) {
    this.#certificates = certificates;
    this.#refuse = () => Promise.reject(caOutOfService(label, reason));
    const [settled, lostAfter] = [NEVER, NEVER];
    const [issuesAtOnce, poll, find, verify] = [this.#refuse, this.#refuse, this.#refuse, this.#refuse];
    if (!isRemote) return;
    this.remoteQueue = { settled, lostAfter, issuesAtOnce, poll, find, verify };
    this.revoke = this.#refuse;
  }

  chain(): readonly Buffer[] {
    if (this.#certificates === undefined) return [];
    const { certificate, issuers, rollover } = this.#certificates;
    return [certificate, ...issuers, ...rollover].map(({ der }) => der);
  }

  issue(): Promise<never> {
    return this.#refuse();
  }

  prepare(): Promise<never> {
    return this.#refuse();
  }

  prepareServerCertificate(): Promise<never> {
    return this.#refuse();
  }

  csrAttributes(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  withProfile(): CaDriver {
    return this;
  }
}
