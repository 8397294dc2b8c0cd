/** Whom the listeners take client certificates from: trust anchors, and the CRLs of foreign CAs. */
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Tag } from '../../pki/der/der.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseCertificateList } from '../../pki/x509/crl.ts';
import { errorCode } from '../load-secret.ts';
import type { NamedCrl, TrustMaterial } from './material.ts';
import { FileError, readBytes } from './pem-files.ts';
import type { MaterialReader } from './reader.ts';

const ALLOWED = 'a CRL in PEM or DER, or a folder of such files';

/** What a `client_auth` table names; in mode `none` only its CRLs are looked at. */
export interface TrustFiles {
  readonly mode: string;
  readonly trust_anchors?: string | undefined;
  readonly crl?: string | undefined;
}

/**
 * @param section e.g. `tls.client_auth`
 * @returns undefined where no client certificate is verified, or what is missing has been reported
 */
export async function loadTrust(
  reader: MaterialReader,
  section: string,
  { mode, trust_anchors: file, crl }: TrustFiles,
): Promise<TrustMaterial | undefined> {
  const verified = mode !== 'none' && file !== undefined;
  const anchors = verified ? await reader.anchors(`${section}.trust_anchors`, file) : undefined;
  const crls = crl === undefined ? [] : await loadCrls(reader, `${section}.crl`, crl);
  return anchors === undefined ? undefined : { anchors, crls };
}

/** Readable, and of the form of a CRL. Whose they are is checked when they are put in force. */
async function loadCrls(reader: MaterialReader, key: string, path: string): Promise<NamedCrl[]> {
  const lists: NamedCrl[] = [];
  for (const file of (await reader.reading(key, path, crlFiles)) ?? [])
    lists.push(...((await reader.reading(key, file, readCrls)) ?? []));
  return lists;
}

async function crlFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => join(path, name))
      .sort();
  } catch (error) {
    throw new FileError(`cannot read ${path}: ${errorCode(error)}`, ALLOWED);
  }
}

/** One in DER, or any number in PEM. */
async function readCrls(file: string): Promise<NamedCrl[]> {
  const content = await readBytes(file, ALLOWED);
  try {
    // DER begins with a SEQUENCE's tag, which no PEM text does.
    const lists =
      content[0] === Tag.SEQUENCE
        ? [content]
        : parsePem(content.toString('latin1')).flatMap(({ label, der }) => (label === 'X509 CRL' ? [der] : []));
    if (lists.length === 0) throw new FileError(`${file} holds no CRL`, ALLOWED);
    return lists.map((der) => ({ name: basename(file), list: parseCertificateList(der) }));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} holds a damaged CRL: ${error.message}`, ALLOWED);
  }
}
