/** CAs of one key in tables of their own, where further labels of one CA are meant (docs/labels.md). */
import type { Config } from '../schema.ts';
import type { MaterialReader } from './reader.ts';

/** Warnings of CAs with a key of ours that another one has too. */
export async function checkSharedKeys(reader: MaterialReader, { ca }: Config): Promise<void> {
  const seen = new Map<string, string>();
  for (const [index, table] of ca.entries()) {
    const { label } = table;
    const isLocal = table.driver === 'file' || table.driver === 'pkcs11';
    const [own] = isLocal ? await reader.knownCertificates(table.certificate) : [];
    if (own === undefined) continue;
    const key = own.spki.toString('base64');
    const first = seen.get(key);
    if (first === undefined) seen.set(key, label);
    else
      reader.warn(
        `ca[${index}].certificate`,
        `has the key of "${first}": each takes the other's certificates for its own, and knows neither its serial numbers nor its revocations`,
        `a [[label]] of "${first}"`,
      );
  }
}
