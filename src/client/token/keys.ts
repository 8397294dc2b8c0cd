/** Finds a connection's key in its token, and removes unused keys. */
import { describe } from '../../errors.ts';
import { ClientError } from '../client-error.ts';
import type { CertificateConfig } from '../config/schema.ts';
import type { ClientContext } from '../context.ts';
import type { ClientIdentity } from '../http/connection.ts';
import type { CertificateFolder } from '../keep/certificate-folder.ts';
import { idOfKeyUri } from './key-uri.ts';

/**
 * Checks for the key before OpenSSL's engine does, because the engine reports few details.
 * @throws ClientError `KEY_UNUSABLE` if the token is missing, refuses the PIN, or lacks the key
 */
export async function requireTokenKey(identity: ClientIdentity | undefined, context: ClientContext): Promise<void> {
  const key = identity?.privateKey;
  if (key === undefined || typeof key === 'string') return;
  const id = idOfKeyUri(key.uri);
  if (id !== undefined && (await context.token(key.token).list()).has(id)) return;
  const what = `the token "${key.token.label}" does not have the key ${key.uri}`;
  throw new ClientError('local', 'KEY_UNUSABLE', `${what}; run estuary client enroll --force to create another one`);
}

/**
 * Removes keys that this folder created in its token, except those of its certificates and of the pending request. Call
 * it only after the certificate's hook ran: until then, programs may use the old key. A missing token is tried again in
 * the next step.
 */
export async function removeOldTokenKeys(
  { token, name }: CertificateConfig,
  folder: CertificateFolder,
  context: ClientContext,
): Promise<void> {
  const made = folder.tokenKeys();
  if (made.length === 0 || token === undefined) return;
  const kept = [folder.live(), folder.successor(), folder.pending()];
  const used = kept.map((entry) => entry && idOfKeyUri(entry.privateKey));
  const old = made.filter((id) => !used.includes(id));
  if (old.length === 0) return;
  try {
    const keys = context.token(token);
    for (const id of old) await keys.destroy(id);
    folder.saveTokenKeys(made.filter((id) => used.includes(id)));
  } catch (error) {
    context.log('warning', name, `cannot delete an old key from the token: ${describe(error)}`);
  }
}
