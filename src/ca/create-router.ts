/** From the `[[ca]]` tables to CAs at work: the one place that knows which driver is which. */
import type { CaMaterial } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import type { CaDriver } from './driver.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import type { MakeMutex } from '../process/semaphore.ts';
import { createDogtagCa } from './dogtag/index.ts';
import { createFileCa, type LocalCaContext } from './local/index.ts';
import { publicationUrls } from './publication-urls.ts';
import { createPkcs11Ca } from './pkcs11/index.ts';
import { Ca, CaRouter } from './router.ts';

export interface CaContext {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The environment, where PKCS#11 modules look for their own configuration. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  /** Mutexes that the processes of the service share. */
  readonly makeMutex: MakeMutex;
}

/**
 * Makes every configured CA; none is started.
 *
 * @param materials the `[[ca]]` tables with their files
 * @throws EstuaryError that names the label and what keeps the CA from working
 */
export function createRouter(
  { est, publication }: Pick<Config, 'est' | 'publication'>,
  materials: readonly CaMaterial[],
  context: CaContext,
): CaRouter {
  const cas: Ca[] = materials.map((material) => {
    const { table, renewalIssuers, clientIssuers } = material;
    const urls = publicationUrls(publication, table.label);
    const driver = createDriver(material, { ...context, retryAfter: est.retry_after, publication: urls });
    const popLinking = est.require_pop_linking;
    return new Ca(table, driver, { renewalIssuers, clientIssuers, popLinking, all: () => cas });
  });
  return new CaRouter(cas);
}

function createDriver(
  material: CaMaterial,
  context: CaContext & LocalCaContext & { readonly retryAfter: number },
): CaDriver {
  switch (material.driver) {
    case 'file':
      return createFileCa(material.table, material, context);
    case 'pkcs11':
      return createPkcs11Ca(material.table, material, context);
    case 'dogtag':
      return createDogtagCa(material.table, material, context);
  }
}
