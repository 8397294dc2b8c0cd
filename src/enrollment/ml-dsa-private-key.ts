/** Forms of a generated ML-DSA private key (RFC 9881 §6). Node generates the seed; a worker thread expands it. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { contextPrimitive, DerReader, octetString, parseDer, sequence, Tag } from '../pki/der/der.ts';
import type { MlDsaParameters } from '../pki/x509/key-pair.ts';
import { startedModule } from '../process/protocol.ts';

/** `[serverkeygen] ml_dsa_key`: the CHOICE of ML-DSA-PrivateKey. */
export type MlDsaPrivateKeyForm = 'seed' | 'expanded' | 'both';

/** Input of the thread. */
export interface MlDsaSeed {
  readonly name: MlDsaParameters['name'];
  /** 32 octets; not retained. */
  readonly seed: Uint8Array;
}

/**
 * Converts the key to another form.
 * @param pkcs8 DER PrivateKeyInfo with the seed only; zeroed if converted
 * @returns DER PrivateKeyInfo; the caller zeroes it
 */
export async function inPrivateKeyForm(
  pkcs8: Buffer,
  { name }: MlDsaParameters,
  form: MlDsaPrivateKeyForm,
): Promise<Buffer> {
  if (form === 'seed') return pkcs8;
  const { head, seed } = readSeed(pkcs8);
  // A copy: a view would transfer its surrounding memory.
  const expanded = await expand({ name, seed: new Uint8Array(seed) });
  const expandedKey = octetString(expanded);
  const privateKey = form === 'expanded' ? expandedKey : sequence(octetString(seed), expandedKey);
  const der = sequence(...head, octetString(privateKey));
  for (const secret of [pkcs8, expanded, expandedKey, privateKey]) secret.fill(0);
  return der;
}

/** The fields before the private key, and the seed. @throws DerError */
function readSeed(pkcs8: Buffer): { readonly head: readonly Buffer[]; readonly seed: Buffer } {
  const info = DerReader.of(pkcs8, 'PrivateKeyInfo');
  const head = [info.next(Tag.INTEGER, 'version').raw, info.sequence('privateKeyAlgorithm')];
  return { head, seed: parseDer(info.octets('privateKey'), contextPrimitive(0), 'ML-DSA-PrivateKey').value };
}

/** ML-DSA.KeyGen_internal (FIPS 204 §6.1) takes tens of milliseconds outside OpenSSL, which returns only the seed. */
async function expand(workerData: MlDsaSeed): Promise<Buffer> {
  const worker = new Worker(startedModule('enrollment/ml-dsa-expansion'), { workerData });
  try {
    const message: unknown = (await once(worker, 'message')).at(0);
    if (!(message instanceof Uint8Array)) throw new TypeError('the thread returned no key');
    return Buffer.from(message.buffer);
  } finally {
    await worker.terminate();
  }
}
