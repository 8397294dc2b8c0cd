/** The kinds of key that are made here, as the configuration names them: of each, one attribute says algorithm and size (RFC 9908 §3.2). */
export const MADE_KEY_TYPES = [
  'ec:P-256',
  'ec:P-384',
  'ec:P-521',
  'rsa:2048',
  'rsa:3072',
  'rsa:4096',
  'ed25519',
  'ed448',
  'ml-dsa:44',
  'ml-dsa:65',
  'ml-dsa:87',
] as const;
