/** URIs of keys in tokens (RFC 7512), used in files in place of PEM. */

export const isKeyUri = (text: string): boolean => text.startsWith('pkcs11:');

/** CKA_ID in hex; undefined if the URI identifies the key differently. */
export function idOfKeyUri(uri: string): string | undefined {
  const id = /[:;]id=([^;?]*)/.exec(uri.trim())?.[1];
  if (id === undefined) return undefined;
  const octets = id.replace(/%([0-9a-f]{2})|[^%]/gi, (char, hex: string | undefined) =>
    hex === undefined ? char.charCodeAt(0).toString(16).padStart(2, '0') : hex.toLowerCase(),
  );
  return /^(?:[0-9a-f]{2})+$/.test(octets) ? octets : undefined;
}
