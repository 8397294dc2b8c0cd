/** `backup.json`: what a backup is, and the digests of its files. It is written last, so a folder without it holds no backup. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Type from 'typebox';
import { Check } from 'typebox/value';
import { describe, failed, type EstuaryError } from '../../errors.ts';
import { digestOf } from './files.ts';

export const MANIFEST = 'backup.json';
export const DATABASE = 'est.db';
export const LOOKUP_KEY = 'otp-lookup.key';

const Manifest = Type.Object({
  format: Type.Literal(1),
  /** ISO 8601 UTC. */
  made_at: Type.String(),
  /** Of Estuary. */
  version: Type.String(),
  /** The end of the audit log in it. */
  audit: Type.Object({ seq: Type.Integer(), hash: Type.String() }),
  files: Type.Record(Type.String(), Type.Object({ bytes: Type.Integer(), sha256: Type.String() })),
});

export type Manifest = Type.Static<typeof Manifest>;

export function describeFiles(folder: string, names: readonly string[]): Manifest['files'] {
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name);
      return [name, { bytes: statSync(path).size, sha256: digestOf(path) }];
    }),
  );
}

/**
 * Reads it and checks the files that it names.
 *
 * @throws EstuaryError 500 `BACKUP_DAMAGED`
 */
export function readBackup(folder: string): Manifest {
  let manifest: unknown;
  try {
    manifest = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
  } catch (error) {
    throw damaged(`${join(folder, MANIFEST)}: ${describe(error)}`);
  }
  if (!Check(Manifest, manifest)) throw damaged(`${join(folder, MANIFEST)} is none of a backup`);
  if (manifest.files[DATABASE] === undefined) throw damaged(`${join(folder, MANIFEST)} names no ${DATABASE}`);
  for (const [name, { bytes, sha256 }] of Object.entries(manifest.files)) {
    // The key may be kept elsewhere.
    if (name === LOOKUP_KEY && statSync(join(folder, name), { throwIfNoEntry: false }) === undefined) continue;
    if (![DATABASE, LOOKUP_KEY].includes(name)) throw damaged(`${join(folder, MANIFEST)} names ${name}`);
    const path = join(folder, name);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size !== bytes || digestOf(path) !== sha256) throw damaged(`${path} is not the file that was backed up`);
  }
  return manifest;
}

const damaged = (detail: string): EstuaryError => failed('BACKUP_DAMAGED', 'this is no whole backup', { detail });
