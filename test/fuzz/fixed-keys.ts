/** Keys that are the same in every run, so that an input that was signed for one can be read again in the next. */
import { createPrivateKey, createPublicKey, hash } from 'node:crypto';
import type { TestKey } from '../support/csr.ts';
import type { KeyPair } from '../support/keys.ts';

function fixed(prefix: string, name: string): KeyPair {
  const der = Buffer.concat([Buffer.from(prefix, 'hex'), hash('sha256', name, 'buffer')]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** An Ed25519 key pair for each name. */
export const ed25519 = (name: string): KeyPair => fixed('302e020100300506032b657004220420', name);

/** A P-256 key pair for each name. */
export const p256 = (name: string): KeyPair =>
  fixed('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', name);

/** The same with what builders of requests need. */
export const testKey = ({ privateKey, publicKey }: KeyPair): TestKey => ({
  privateKey,
  publicKey,
  spki: publicKey.export({ type: 'spki', format: 'der' }),
  pem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
});
