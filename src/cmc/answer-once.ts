/** One process answers each message once; a repeated message gets the same response (RFC 5272 §6.6; docs/guides/cmc.md). */
import { createHash } from 'node:crypto';
import type { CmcMessage, CmcStore } from '../store/cmc-store.ts';
import { control, type Message } from './message.ts';
import { badMessage, CmcRefusal } from './refusal.ts';
import type { PkiResponseMessage } from './response.ts';
import type { Sender } from './sender.ts';

/** A repeated message gets its first response (RFC 5272 §6.6); nonces belong to their transaction. */
interface Transaction {
  /** Identifies this message; undefined: it may be repeated and processed again. */
  readonly key: string | undefined;
  /** Identifies the messages of one transaction. */
  readonly transactionKey: string;
}

export function transactionOf(message: Message, { identity }: Sender, caLabel: string): Transaction {
  const transactionId = control(message, 'transactionId')?.value;
  const nonce = control(message, 'senderNonce')?.value.toString('hex');
  const scope = [caLabel, identity.requester, transactionId ?? null];
  const content = createHash('sha256').update(message.content).digest('hex');
  // Without either, only a message that would issue again is recognized; a CRL may be requested repeatedly.
  const recognized =
    transactionId !== undefined ||
    nonce !== undefined ||
    message.requests.length > 0 ||
    message.data.cmsSequence.length > 0;
  return {
    key: recognized ? hash([...scope, nonce ?? null, content]) : undefined,
    transactionKey: hash(scope),
  };
}

const hash = (parts: readonly (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** The recipientNonce must be one that we sent in this transaction. @throws CmcRefusal 400 badRequest */
export async function checkRecipientNonce(
  message: Message,
  { transactionKey }: Transaction,
  store: Pick<CmcStore, 'isCmcNonce'>,
): Promise<void> {
  const echoed = control(message, 'recipientNonce');
  if (echoed !== undefined && !(await store.isCmcNonce(transactionKey, echoed.value)))
    throw badMessage(echoed.bodyPartID, 'The recipientNonce was not sent in this transaction.');
}

export type CmcAnswerMessage = Pick<PkiResponseMessage, 'httpStatus' | 'retryAfter' | 'der'>;

/** `final`: the response is definitive and stored. */
export type NewAnswer = PkiResponseMessage & { readonly final: boolean };

/** @param messageId basis of the IDs of its requests. @param retaken another process had begun it */
type Work = (messageId: string, retaken: boolean) => Promise<NewAnswer>;

interface AnswerOnceOptions {
  readonly store: Pick<CmcStore, 'claimCmcMessage' | 'concludeCmcMessage'>;
  /** This process, as the one that processes a message. */
  readonly instance: string;
  readonly retryAfter: number;
}

export class AnswerOnce {
  readonly #options: AnswerOnceOptions;
  /** Messages in progress in this process. */
  readonly #underWay = new Set<string>();

  constructor(options: AnswerOnceOptions) {
    this.#options = options;
  }

  /** @throws CmcRefusal 503 tryLater while it is in progress; the error of `work` */
  async answer(
    transaction: Transaction,
    received: { readonly requestId: string; readonly now: number },
    work: Work,
  ): Promise<CmcAnswerMessage> {
    const { key, transactionKey } = transaction;
    if (key === undefined) return work(received.requestId, false);
    if (this.#underWay.has(key)) throw this.#busy();
    this.#underWay.add(key);
    try {
      const { requestId: id, now: created_at } = received;
      const { instance } = this.#options;
      return await this.#claimed({ key, id, transaction_key: transactionKey, instance, created_at }, work);
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #claimed(message: CmcMessage, work: Work): Promise<CmcAnswerMessage> {
    const { store, instance } = this.#options;
    const claim = await store.claimCmcMessage(message);
    if (claim.state === 'under-way') throw this.#busy();
    // A definitive answer: something was done, so its status is 200.
    if (claim.state === 'answered') return { httpStatus: 200, retryAfter: undefined, der: claim.answer };
    let answer: NewAnswer | undefined;
    try {
      answer = await work(claim.id, claim.id !== message.id);
      return answer;
    } finally {
      const final = answer?.final === true ? answer.der : null;
      await store.concludeCmcMessage(message.key, instance, { nonce: answer?.nonce ?? null, answer: final });
    }
  }

  #busy(): CmcRefusal {
    const { retryAfter } = this.#options;
    return new CmcRefusal('unavailable', 'tryLater', [0], 'This message is already being processed.', { retryAfter });
  }
}
