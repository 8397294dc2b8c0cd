/** CAs of our own over files, as a configuration names them. */
import { createFileCa, type LocalCa, type LocalCaConfig, type LocalCaContext } from '../../src/ca/local/index.ts';
import { loadCa, loadOwnCa, type OwnCaFiles } from '../../src/config/material/ca.ts';
import type { CaMaterial } from '../../src/config/material/material.ts';
import { MaterialReader } from '../../src/config/material/reader.ts';
import type { CaConfig } from '../../src/config/schema.ts';

/** Paths of PEM files. */
export type FileCaFiles = LocalCaConfig &
  Omit<OwnCaFiles, 'profile' | 'client_issuers'> & { readonly file: { readonly private_key: string } };

/** @throws Error with everything that a start would refuse */
export async function openFileCa(config: FileCaFiles, context: LocalCaContext): Promise<LocalCa> {
  const reader = new MaterialReader(Date.now(), false);
  const { label, certificate, file } = config;
  const pair = await reader.pair('certificate', certificate, 'file.private_key', file.private_key);
  const own = await loadOwnCa(reader, { ...config, profile: {}, client_issuers: [] }, 'ca');
  const problems = reader.problems.filter(({ message }) => !message.startsWith('is missing: '));
  if (pair === undefined || own === undefined || problems.length > 0)
    throw new Error(`ca "${label}": ${problems.map(({ key, message }) => `${key}: ${message}`).join('; ')}`);
  return createFileCa(config, { ...own, privateKey: pair.privateKey }, context);
}

/** What a `[[ca]]` table names. */
export async function caMaterial<D extends CaMaterial['driver']>(
  table: CaConfig & { readonly driver: D },
): Promise<Extract<CaMaterial, { driver: D }>> {
  const reader = new MaterialReader(Date.now(), false);
  const material = await loadCa(reader, table, 'ca[0]');
  if (material === undefined || !isOf(material, table.driver))
    throw new Error(reader.problems.map(({ message }) => message).join('; '));
  return material;
}

function isOf<D extends CaMaterial['driver']>(
  material: CaMaterial,
  driver: D,
): material is Extract<CaMaterial, { driver: D }> {
  return material.driver === driver;
}
