/**
 * The features of the contract that this version does not have. Whoever builds one deletes its row: that lets the
 * configuration through.
 */
export interface MissingFeature {
  /** Path of the key, without list indexes. */
  readonly key: string;
  /** The refused value; without one, the key itself is refused. */
  readonly value?: string | boolean;
  /** What the operator asked for, as the subject of `… is not part of this version`. */
  readonly feature: string;
  /** What may stand there instead. */
  readonly allowed: string;
}

export const MISSING_FEATURES: readonly MissingFeature[] = [];

/** The row that refuses this value of this key, if any. */
export function missingFeature(key: string, value: unknown): MissingFeature | undefined {
  return MISSING_FEATURES.find((row) => row.key === key && (row.value === undefined || row.value === value));
}
