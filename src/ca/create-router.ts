/** From the `[[ca]]` tables to CAs at work: the one place that knows which driver is which. */
import type { CaMaterial, LabelMaterial, Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe, failed } from '../errors.ts';
import type { CaDriver } from './driver.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import type { MakeMutex } from '../process/semaphore.ts';
import { createDogtagCa } from './dogtag/index.ts';
import { createFileCa, type LocalCaContext } from './local/index.ts';
import type { IssuedCertificates } from './label-boundary.ts';
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
  /** Where it stands which label a certificate was asked for at. */
  readonly store: IssuedCertificates['store'];
}

/**
 * Makes every configured CA; none is started.
 *
 * @param material the `[[ca]]` and `[[label]]` tables with their files
 * @throws EstuaryError that names the label and what keeps the CA from working
 */
export function createRouter(
  { est, publication }: Pick<Config, 'est' | 'publication'>,
  { cas: materials, labels }: Pick<Material, 'cas' | 'labels'>,
  context: CaContext,
): CaRouter {
  const popLinking = est.require_pop_linking;
  const cas: Ca[] = materials.flatMap((material) => {
    const { label } = material.table;
    const further = labels.get(label) ?? [];
    const issued = { store: context.store, isShared: further.length > 0 };
    const common = { popLinking, all: () => cas, issued };
    const urls = publicationUrls(publication, label);
    const driver = createDriver(material, { ...context, retryAfter: est.retry_after, publication: urls });
    const issuer = new Ca(material.table, driver, { ...common, ...material });
    return [
      issuer,
      ...further.map((one) => new Ca(one.table, underProfileOf(one, driver), { ...common, ...one, issuer })),
    ];
  });
  return new CaRouter(cas);
}

/** The CA of a further label, with the label's profile. @throws EstuaryError 500 `CA_UNUSABLE` */
function underProfileOf({ table: { label, profile } }: LabelMaterial, driver: CaDriver): CaDriver {
  if (driver.withProfile === undefined) throw failed('CA_UNUSABLE', `label "${label}": its CA has one profile only`);
  try {
    return driver.withProfile(profile);
  } catch (error) {
    throw failed('CA_UNUSABLE', `label "${label}": ${describe(error)}`);
  }
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
