/** Milliseconds that a relying party's clock may be late, as for notBefore of certificates. */
const LATE = 60_000;

/**
 * The thisUpdate of what is signed at a time: relying parties reject what is not valid yet.
 * @param atLeast the newest revocation in it, the thisUpdate of an earlier list
 */
export const backdated = (signedAt: number, ...atLeast: number[]): number =>
  Math.min(signedAt, Math.max(signedAt - LATE, ...atLeast.map((time) => Math.floor(time / 1000) * 1000)));
