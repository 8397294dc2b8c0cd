/** A CA certificate that a client sent in a handshake. */
export interface PresentedIntermediate {
  /** Hex SHA-256 of `der`. */
  readonly fingerprint: string;
  readonly der: Buffer;
}

/** What led from a client's certificate towards an anchor, and was nobody's but the client's to know. */
export interface PresentedPath {
  /** Hex SHA-256 of the client's certificate. */
  readonly leaf: string;
  /** The client's issuer first. */
  readonly intermediates: readonly PresentedIntermediate[];
}

/** CA certificates that clients send with theirs. */
export interface IntermediateStore {
  /** What was remembered of this client, by its certificate's fingerprint; empty when nothing was. */
  recallIntermediates(leaf: string): Promise<readonly PresentedIntermediate[]>;
  /** Replaces what was remembered of this client. What has not been used for long is forgotten. */
  rememberIntermediates(path: PresentedPath, now: number): Promise<void>;
}
