/** Fingerprints of CAs, as people are told them. */

/** Hex of SHA-256 or SHA-512, with colons and in any case; undefined: it is neither. */
export function readFingerprint(text: string): string | undefined {
  const hex = text
    .trim()
    .replace(/^sha-?(?:256|512):/i, '')
    .replace(/[:\s]/g, '')
    .toLowerCase();
  return /^(?:[0-9a-f]{64}|[0-9a-f]{128})$/.test(hex) ? hex : undefined;
}
