/** A message that is to be processed once, however often it comes (RFC 5272 §6.6). */
export interface CmcMessage {
  /** The same for the same message of the same sender: a hash of CA, sender, transactionId, senderNonce and content. */
  readonly key: string;
  /** Taken the first time; a message that is taken up again keeps it. */
  readonly id: string;
  /** A hash of CA, sender and transactionId. */
  readonly transaction_key: string;
  /** The process that is at work on it. */
  readonly instance: string;
  readonly created_at: number;
}

/** What was answered for good. */
export interface CmcAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** DER. */
  readonly der: Buffer;
}

export type CmcClaim =
  | { readonly state: 'claimed'; readonly id: string }
  | { readonly state: 'under-way' }
  | { readonly state: 'answered'; readonly answer: CmcAnswer };

/** How the work on a message ended. */
export interface CmcConclusion {
  /** The senderNonce of what was answered. */
  readonly nonce: Buffer | null;
  /** null: not for good; the message may come again and is then processed again. */
  readonly answer: CmcAnswer | null;
}

/** What CMC has to remember of its messages. */
export interface CmcStore {
  /**
   * Takes a message for this process, unless it has been answered for good or another node works on it. What this
   * process itself is at work on it knows.
   */
  claimCmcMessage(message: CmcMessage): Promise<CmcClaim>;
  /** Ends the work on a claimed message. @throws {EstuaryError} 500 `CMC_MESSAGE_NOT_CLAIMED` */
  concludeCmcMessage(key: string, instance: string, conclusion: CmcConclusion): Promise<void>;
  /** Lets go of what a dead process was at work on; without one, before any of this server works, what every process but those of living nodes was. */
  releaseCmcMessages(instance?: string): Promise<void>;
  /** Whether one of our latest answers in this transaction carried the nonce. */
  isCmcNonce(transaction_key: string, nonce: Buffer): Promise<boolean>;
  /** Forgets a batch of the messages that came at this time or before; how many (see retention-store.ts). */
  purgeCmcMessages(before: number): Promise<number>;
}
