/** A CA certificate that a client sent in a handshake. */
export interface PresentedIntermediate {
  /** Hex SHA-256 of `der`. */
  readonly fingerprint: string;
  readonly der: Buffer;
}

/** The certificates from a client's handshake that its path to an anchor needed. */
export interface PresentedPath {
  /** Hex SHA-256 of the client's certificate. */
  readonly leaf: string;
  /** The client's issuer first. */
  readonly intermediates: readonly PresentedIntermediate[];
}

/** CA certificates that clients send with theirs. */
export interface IntermediateStore {
  /** By fingerprint of the client's certificate; empty if none. */
  recallIntermediates(leaf: string): Promise<readonly PresentedIntermediate[]>;
  /** Replaces this client's certificates. Entries that are unused for long are deleted. */
  rememberIntermediates(path: PresentedPath, now: number): Promise<void>;
}
