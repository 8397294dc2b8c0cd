/** Creates the CAs of the `[[ca]]` tables. */
import type { CaCertificates, CaMaterial, LabelMaterial, Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import type { CaTable } from '../config/schema/label.ts';
import { describe, failed } from '../errors.ts';
import { dryRunEffect } from '../store/calls/errors.ts';
import { AbsentCa } from './absent-ca.ts';
import type { CaDriver, DriverContext, Predecessor } from './driver.ts';
import { driverOf } from './drivers.ts';
import { type IssuedCertificates, Ca, CaRouter } from './router.ts';
import { absentSigner, createLocalCa } from './local/index.ts';
import { publicationUrls } from './local/tbs.ts';

export interface CaContext extends Omit<DriverContext, 'retryAfter' | 'publication'> {
  /** Records the label of each certificate. */
  readonly store: IssuedCertificates['store'] & DriverContext['store'];
  /** Nothing will be signed, so local CAs need no keys. */
  readonly isKeyless?: boolean;
}

export interface CasInForce {
  readonly router: CaRouter;
  readonly material: Pick<Material, 'cas'>;
}

/**
 * Creates, but does not start, every configured CA.
 * @param material the `[[ca]]` and `[[label]]` tables with their files
 * @param before the CAs in force; unchanged backends stay open
 * @throws EstuaryError that names the label and the problem
 */
export function createRouter(
  { est, publication }: Pick<Config, 'est' | 'publication'>,
  { cas: materials, labels }: Pick<Material, 'cas' | 'labels'>,
  context: CaContext,
  before?: CasInForce,
): CaRouter {
  const popLinking = est.require_pop_linking;
  const cas: Ca[] = materials.flatMap((material) => {
    const { label } = material.table;
    const further = labels.get(label) ?? [];
    const issued = { store: context.store, isShared: further.length > 0 };
    const common = { popLinking, all: () => cas, issued };
    const urls = publicationUrls(publication, label);
    const { driver, fault = material.fault } = create(
      material,
      { ...context, retryAfter: est.retry_after, publication: urls },
      before,
    );
    const issuer = new Ca(material.table, driver, { ...common, ...material, fault });
    return [
      issuer,
      ...further.map((label) => new Ca(label.table, underProfileOf(label, driver), { ...common, ...label, issuer })),
    ];
  });
  return new CaRouter(cas);
}

/** The driver of a CA, or what takes its place while a file cannot be used. */
function create(
  material: CaMaterial,
  context: DriverContext & Pick<CaContext, 'isKeyless'>,
  before: CasInForce | undefined,
): { readonly driver: CaDriver; readonly fault?: string } {
  const { table, fault, certificates } = material;
  const definition = driverOf(table);
  const isRemote = definition.remote !== undefined;
  if (context.isKeyless === true && !isRemote && certificates !== undefined)
    return { driver: keylessCa(table, certificates, context) };
  if (fault !== undefined && (isRemote || certificates === undefined))
    return { driver: new AbsentCa(table.label, { isRemote, certificates }, fault) };
  try {
    return { driver: definition.create(material, context, before && predecessorOf(material, before)) };
  } catch (error) {
    const reason = describe(error);
    return { driver: new AbsentCa(table.label, { isRemote, certificates }, reason), fault: reason };
  }
}

/** A local CA that checks what it would sign. */
function keylessCa(table: CaTable, certificates: CaCertificates, { now, publication }: DriverContext): CaDriver {
  const { spki, signatureAlgorithm } = absentSigner(table.label, certificates.certificate);
  const signer = { spki, signatureAlgorithm, sign: () => Promise.reject(dryRunEffect()) };
  return createLocalCa(table, { certificates, ocsp: undefined }, signer, { now, publication });
}

/** The CA of a further label, with that label's profile. @throws EstuaryError 500 `CA_UNUSABLE` */
function underProfileOf({ table: { label, profile } }: LabelMaterial, driver: CaDriver): CaDriver {
  if (driver.withProfile === undefined) throw failed('CA_UNUSABLE', `label "${label}": its CA has one profile only`);
  try {
    return driver.withProfile(profile);
  } catch (error) {
    throw failed('CA_UNUSABLE', `label "${label}": ${describe(error)}`);
  }
}

/** A driver's backend; see {@link CaDriver.backend}. */
export const backendOf = (driver: CaDriver): object => driver.backend ?? driver;

/** The CA of the label before a reload, if it has the same kind of driver. */
function predecessorOf({ table: now }: CaMaterial, { router, material }: CasInForce): Predecessor | undefined {
  const driver = router.issuers.find((ca) => ca.label === now.label)?.driver;
  const made = material.cas.find(({ table }) => table.label === now.label && table.driver === now.driver);
  return driver === undefined || made === undefined ? undefined : { driver, material: made };
}
