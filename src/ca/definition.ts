/** What the folder of a driver defines. `drivers.ts` lists the drivers. */
import type { Finding, Problem } from '../config/problem.ts';
import type { Key } from '../config/keys.ts';
import type { CaMaterial } from '../config/material/material.ts';
import type { MaterialReader } from '../config/material/reader.ts';
import type { CaTable } from '../config/schema/label.ts';
import type { CaDriver, DriverContext, Predecessor } from './driver.ts';

/** For a check without a start. */
export type CheckContext = Pick<DriverContext, 'env' | 'now' | 'retryAfter' | 'log'>;

/** Only {@link keys}, {@link load} and {@link create} are mandatory. Each driver gets its own tables and material. */
export interface DriverDefinition<Table extends CaTable = CaTable, Material extends CaMaterial = CaMaterial> {
  /** The `[[ca]]` table: types, defaults, and the text of the configuration reference. */
  readonly keys: Key<Table>;
  readonly name: Table['driver'];
  /** As in messages, for a CA elsewhere, which certifies the CSR as the device signed it. */
  readonly remote?: string;
  /** As in metrics: what its CAs depend on. */
  readonly dependency?: string;
  /**
   * Reads the files of a table. @param key such as `ca[0]` @returns undefined if one is missing, which has been reported
   */
  load(reader: MaterialReader, table: Table, key: string): Promise<Material | undefined>;
  /** Checks across keys. @param isFree whether a requester may ask for names that it is not bound to */
  checks?(table: Table, key: string, isFree: () => boolean): Iterable<Finding>;
  /** A CA, not started. @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem */
  create(material: Material, context: DriverContext, before?: Predecessor<Material>): CaDriver;
  /** Problems that only a start shows; `--check` reports them too. @param key such as `ca[0]` */
  startProblems?(material: Material, key: string, context: CheckContext): Promise<readonly Problem[]>;
  archivesKeys?(table: Table): boolean;
  /** Where the key is, for the list of what a backup does not contain. */
  keyPlace?(table: Table): string;
}
