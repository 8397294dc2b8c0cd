/** The keys that `ca init` makes. */
export const CA_KEY_TYPES = [
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
