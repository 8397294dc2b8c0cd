/** How long, and how many, of what clients sent with their certificates is remembered. */

/** Milliseconds after the last use: a TLS session that is resumed is minutes or days old. */
export const LIFETIME = 30 * 86_400_000;
/** Beyond, those used longest ago go. */
export const MAX_PATHS = 100_000;
export const MAX_INTERMEDIATES = 10_000;
/** Writes between two looks at how many there are. */
export const COUNT_EVERY = 1000;
