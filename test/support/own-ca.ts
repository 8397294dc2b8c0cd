/** CAs of our own over files, as a configuration names them. */
import type { DriverDefinition } from '../../src/ca/driver.ts';
import { createFileCa, type LocalCa, type LocalCaConfig, type LocalCaContext } from '../../src/ca/local/index.ts';
import { loadOwnCa, type OwnCaFiles } from '../../src/config/material/ca.ts';
import type { CaMaterial } from '../../src/config/material/material.ts';
import { MaterialReader } from '../../src/config/material/reader.ts';
import type { CaTable } from '../../src/config/schema/label.ts';

/** Paths of PEM files. */
export type FileCaFiles = LocalCaConfig &
  Omit<OwnCaFiles, 'profile' | 'client_issuers'> & { readonly file: { readonly private_key: string } };

/** @throws Error with everything that a start would refuse */
export async function openFileCa(config: FileCaFiles, context: LocalCaContext): Promise<LocalCa> {
  const reader = new MaterialReader(Date.now());
  const own = await loadOwnCa(reader, { ...config, profile: {}, client_issuers: [] }, 'ca');
  const faults = reader.faults.filter(({ message }) => !message.startsWith('is missing: '));
  if (own === undefined || faults.length > 0)
    throw new Error(`ca "${config.label}": ${faults.map(({ key, message }) => `${key}: ${message}`).join('; ')}`);
  return createFileCa(config, own, context);
}

/** What a `[[ca]]` table names. */
export async function caMaterial<Table extends CaTable, Material extends CaMaterial>(
  driver: DriverDefinition<Table, Material>,
  table: Table,
): Promise<Material> {
  const reader = new MaterialReader(Date.now());
  const material = await driver.load(reader, table, 'ca[0]');
  if (material === undefined) throw new Error(reader.faults.map(({ message }) => message).join('; '));
  return material;
}
