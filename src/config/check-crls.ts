import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseCertificateList } from '../pki/x509/crl.ts';
import { Tag } from '../pki/der/der.ts';
import { parsePem } from '../pki/der/pem.ts';
import type { FileCheck } from './file-check.ts';
import { errorCode } from './load-secret.ts';
import { FileError, readBytes } from './pem-files.ts';
import { InputError } from '../pki/input-error.ts';

const ALLOWED = 'a CRL in PEM or DER, or a folder of such files';

/** The CRLs of foreign client CAs: readable, and of the form of a CRL. Whose they are is checked when they are loaded. */
export async function checkCrls(check: FileCheck, key: string, path: string): Promise<void> {
  const files = await check.reading(key, path, crlFiles);
  if (files === undefined) return;
  for (const file of files) await check.reading(key, file, readCrls);
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

async function readCrls(file: string): Promise<void> {
  const content = await readBytes(file, ALLOWED);
  try {
    const lists =
      content[0] === Tag.SEQUENCE
        ? [content]
        : parsePem(content.toString('latin1')).flatMap(({ label, der }) => (label === 'X509 CRL' ? [der] : []));
    if (lists.length === 0) throw new FileError(`${file} holds no CRL`, ALLOWED);
    for (const der of lists) parseCertificateList(der);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} holds a damaged CRL: ${error.message}`, ALLOWED);
  }
}
