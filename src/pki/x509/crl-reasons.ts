/** Why a certificate was revoked (RFC 5280 §5.3.1). */

/** CRLReason names and numbers; 7 is not used. */
export const CRL_REASONS = {
  unspecified: 0,
  keyCompromise: 1,
  cACompromise: 2,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
  certificateHold: 6,
  removeFromCRL: 8,
  privilegeWithdrawn: 9,
  aACompromise: 10,
} as const;

export type CrlReason = keyof typeof CRL_REASONS;

export function isCrlReason(name: string): name is CrlReason {
  return Object.hasOwn(CRL_REASONS, name);
}

/** The reasons that a revocation can have: removeFromCRL belongs to delta CRLs and takes a revocation back. */
export const REVOCATION_REASONS: readonly CrlReason[] = Object.keys(CRL_REASONS)
  .filter(isCrlReason)
  .filter((name) => name !== 'removeFromCRL');
