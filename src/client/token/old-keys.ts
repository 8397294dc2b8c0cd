/** Keys in a token that no certificate needs. */
import { describe } from '../../errors.ts';
import type { CertificateConfig } from '../config/client-config.ts';
import type { ClientContext } from '../context.ts';
import type { CertificateFolder } from '../keep/certificate-folder.ts';
import { idOfKeyUri } from './key-uri.ts';

/**
 * Removes the keys that this folder made in its token, except those of its certificates and of the pending request. Call it only after the
 * hook ran for the certificate: until then, programs may use the former one.
 *
 * @returns whether all are gone; a token that is not there is asked again with the next step
 */
export async function removeOldTokenKeys(
  { token, name }: CertificateConfig,
  folder: CertificateFolder,
  context: ClientContext,
): Promise<boolean> {
  const made = folder.tokenKeys();
  if (made.length === 0 || token === undefined) return true;
  const used = [folder.live(), folder.successor(), folder.pending()].map((one) => one && idOfKeyUri(one.privateKey));
  const old = made.filter((id) => !used.includes(id));
  if (old.length === 0) return true;
  try {
    const keys = context.token(token);
    for (const id of old) await keys.destroy(id);
    folder.saveTokenKeys(made.filter((id) => used.includes(id)));
    return true;
  } catch (error) {
    context.log('warning', name, `an old key is in the token still: ${describe(error)}`);
    return false;
  }
}
