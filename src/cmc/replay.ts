/** A message that comes again gets the answer that it got (RFC 5272 §6.6); nonces belong to their transaction. */
import { createHash } from 'node:crypto';
import type { CmcStore } from '../store/cmc-store.ts';
import { control, type Message } from './message.ts';
import { badMessage } from './refusal.ts';
import type { Sender } from './sender.ts';

export interface Transaction {
  /** Recognises this very message; undefined: it may come again and be processed again. */
  readonly key: string | undefined;
  /** Recognises the messages of one transaction. */
  readonly transactionKey: string;
}

/** What a message is recognised by, of its sender at this CA. */
export function transactionOf(message: Message, { identity }: Sender, caLabel: string): Transaction {
  const transactionId = control(message, 'transactionId')?.value;
  const nonce = control(message, 'senderNonce')?.value.toString('hex');
  const scope = [caLabel, identity.requester, transactionId ?? null];
  const content = createHash('sha256').update(message.content).digest('hex');
  // Without either, only what would issue once more is recognised; a CRL, say, may well be asked for again.
  const recognised =
    transactionId !== undefined ||
    nonce !== undefined ||
    message.requests.length > 0 ||
    message.data.cmsSequence.length > 0;
  return {
    key: recognised ? hash([...scope, nonce ?? null, content]) : undefined,
    transactionKey: hash(scope),
  };
}

const hash = (parts: readonly (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** A recipientNonce is one that we sent in this transaction. @throws CmcRefusal 400 badRequest */
export async function checkRecipientNonce(
  message: Message,
  { transactionKey }: Transaction,
  store: Pick<CmcStore, 'isCmcNonce'>,
): Promise<void> {
  const echoed = control(message, 'recipientNonce');
  if (echoed !== undefined && !(await store.isCmcNonce(transactionKey, echoed.value)))
    throw badMessage(echoed.bodyPartID, 'The recipientNonce is none that was sent in this transaction.');
}
