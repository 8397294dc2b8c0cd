/** Keeps the last known chain of a remote CA in the store, for a start while the CA is unreachable. */
import { describe } from '../../errors.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import { verifiedChain } from './issued.ts';

interface ChainKeepingOptions {
  readonly label: string;
  readonly store: Pick<IntermediateStore, 'rememberIntermediates' | 'recallIntermediates'>;
  /** A chain must lead to one of them. */
  readonly anchors: readonly Certificate[];
  readonly log: Pick<IsolatedLog, 'warn'>;
  readonly now: () => number;
}

const DAY = 86_400_000;

export class ChainKeeping {
  readonly #options: ChainKeepingOptions;
  #kept: { readonly chain: readonly Certificate[]; readonly at: number } = { chain: [], at: 0 };

  constructor(options: ChainKeepingOptions) {
    this.#options = options;
  }

  get anchors(): readonly Certificate[] {
    return this.#options.anchors;
  }

  /** The kept chain, the CA first; undefined if it does not lead to an anchor. Never rejects. */
  async recall(): Promise<readonly Certificate[] | undefined> {
    const { store, anchors, now, log } = this.#options;
    try {
      const kept = (await store.recallIntermediates(this.#name)).map(({ der }) => parseCertificate(der));
      return await verifiedChain(kept, anchors, now());
    } catch (error) {
      log.warn({ detail: describe(error) }, 'cannot read the kept chain of the CA');
      return undefined;
    }
  }

  /** Keeps a chain that is new, and renews it daily, because the store forgets what is unused for a month. Never rejects. */
  async keep(chain: readonly Certificate[]): Promise<void> {
    const { store, now, log } = this.#options;
    const isKept = isSameChain(chain, this.#kept.chain) && now() < this.#kept.at + DAY;
    if (chain.length === 0 || isKept) return;
    this.#kept = { chain, at: now() };
    try {
      await store.rememberIntermediates({ leaf: this.#name, intermediates: chain }, now());
    } catch (error) {
      log.warn({ detail: describe(error) }, 'cannot keep the chain of the CA');
    }
  }

  /** Among the paths of clients, which have fingerprints. */
  get #name(): string {
    return `chain of ${this.#options.label}`;
  }
}

export const isSameChain = (a: readonly Certificate[], b: readonly Certificate[]): boolean =>
  a.length === b.length && a.every(({ fingerprint }, index) => fingerprint === b[index]?.fingerprint);
