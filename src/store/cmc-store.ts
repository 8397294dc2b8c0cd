/** A message to be processed once, even if it is repeated (RFC 5272 §6.6). */
export interface CmcMessage {
  /** Identifies the message: a hash of CA, sender, transactionId, senderNonce and content. */
  readonly key: string;
  /** Assigned the first time; kept when the message is processed again. */
  readonly id: string;
  /** A hash of CA, sender and transactionId. */
  readonly transaction_key: string;
  /** The process that is working on it. */
  readonly instance: string;
  readonly created_at: number;
}

/** A definitive answer. */
export interface CmcAnswer {
  /** The HTTP status. */
  readonly status: number;
  readonly der: Buffer;
}

export type CmcClaim =
  | { readonly state: 'claimed'; readonly id: string }
  | { readonly state: 'under-way' }
  | { readonly state: 'answered'; readonly answer: CmcAnswer };

/** How the work on a message ended. */
export interface CmcConclusion {
  /** The senderNonce of the answer. */
  readonly nonce: Buffer | null;
  /** null: not definitive; a repeated message is processed again. */
  readonly answer: CmcAnswer | null;
}

export interface CmcStore {
  /**
   * Claims a message for this process, unless it has a definitive answer or another node is working on it. The caller
   * tracks its own work.
   */
  claimCmcMessage(message: CmcMessage): Promise<CmcClaim>;
  /** Ends the work on a claimed message. @throws {EstuaryError} 500 `CMC_MESSAGE_NOT_CLAIMED` */
  concludeCmcMessage(key: string, instance: string, conclusion: CmcConclusion): Promise<void>;
  /**
   * Releases the messages of a dead process; without an argument, at start, those of all processes except living nodes.
   */
  releaseCmcMessages(instance?: string): Promise<void>;
  /** Whether one of our latest answers in this transaction contained the nonce. */
  isCmcNonce(transaction_key: string, nonce: Buffer): Promise<boolean>;
  /** Deletes a batch of messages up to this time and returns the number (see retention-store.ts). */
  purgeCmcMessages(before: number): Promise<number>;
}
