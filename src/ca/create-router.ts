/** Creates the CAs of the `[[ca]]` tables. Only this module knows all drivers. */
import { isDeepStrictEqual } from 'node:util';
import type {
  CaMaterial,
  DogtagCaMaterial,
  LabelMaterial,
  Material,
  Pkcs11CaMaterial,
  UpstreamCaMaterial,
} from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { isSameConfig } from '../config/secret.ts';
import { describe, failed } from '../errors.ts';
import type { CaDriver, Signer } from './driver.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import type { IntermediateStore } from '../store/intermediate-store.ts';
import type { IsolatedLog } from '../process/isolated-process.ts';
import type { MakeMutex } from '../process/fair-limiter.ts';
import { createDogtagCa } from './dogtag/index.ts';
import { createFileCa, LocalCa, type LocalCaContext } from './local/index.ts';
import type { IssuedCertificates } from './label-boundary.ts';
import { publicationUrls } from './local/tbs.ts';
import { createPkcs11Ca } from './pkcs11/index.ts';
import { Pkcs11Signer } from './pkcs11/pkcs11-signer.ts';
import { createUpstreamCa } from './remote/create.ts';
import { RemoteCa } from './remote/remote-ca.ts';
import { Ca, CaRouter } from './router.ts';

export interface CaContext {
  readonly now: () => number;
  /** The environment, which PKCS#11 modules read for their configuration. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  readonly makeMutex: MakeMutex;
  /** Records the label of each certificate. */
  readonly store: IssuedCertificates['store'] & Pick<IntermediateStore, 'rememberIntermediates'>;
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
    const driver = createDriver(
      material,
      { ...context, retryAfter: est.retry_after, publication: urls },
      before && predecessorOf(material, before),
    );
    const issuer = new Ca(material.table, driver, { ...common, ...material });
    return [
      issuer,
      ...further.map((one) => new Ca(one.table, underProfileOf(one, driver), { ...common, ...one, issuer })),
    ];
  });
  return new CaRouter(cas);
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

/** A driver's backend; see {@link CaDriver.footing}. */
export const footingOf = (driver: CaDriver): object => driver.footing ?? driver;

/** The CA of the same label before the reload. */
interface Predecessor {
  readonly driver: CaDriver;
  readonly material: CaMaterial;
}

function predecessorOf({ table: { label } }: CaMaterial, { router, material }: CasInForce): Predecessor | undefined {
  const driver = router.issuers.find((ca) => ca.label === label)?.driver;
  const made = material.cas.find(({ table }) => table.label === label);
  return driver === undefined || made === undefined ? undefined : { driver, material: made };
}

function createDriver(
  material: CaMaterial,
  context: CaContext & LocalCaContext & { readonly retryAfter: number },
  before?: Predecessor,
): CaDriver {
  switch (material.driver) {
    case 'file':
      return createFileCa(material.table, material, context);
    case 'pkcs11':
      return createPkcs11Ca(material.table, material, context, before && openedSigner(material, before));
    case 'dogtag':
      return before !== undefined && isSameDogtagCa(material, before.material)
        ? before.driver
        : createDogtagCa(material.table, material, context);
    case 'est':
    case 'acme':
    case 'command':
      return before?.driver instanceof RemoteCa && isSameUpstream(material, before.material)
        ? before.driver
        : createUpstreamCa(material, context);
  }
}

/** The signer for the same key in the same token, so that a reload does not reopen it. */
function openedSigner(now: Pkcs11CaMaterial, { driver, material }: Predecessor): Signer | undefined {
  return driver instanceof LocalCa &&
    material.driver === 'pkcs11' &&
    !(driver.signer instanceof Pkcs11Signer && driver.signer.hasGivenUp) &&
    isSameConfig(material.table.pkcs11, now.table.pkcs11) &&
    driver.certificate.spki.equals(now.certificates.certificate.spki)
    ? driver.signer
    : undefined;
}

/** Compares certificates only, since a private key belongs to its certificate. */
function isSameDogtagCa(now: DogtagCaMaterial, before: CaMaterial): boolean {
  if (before.driver !== 'dogtag') return false;
  const ofDriver = ({ table }: DogtagCaMaterial) => [table.dogtag, table.profile];
  const certificates = ({ certificates: own, trustAnchors, client }: DogtagCaMaterial) => [
    own === undefined ? [] : [own.certificate, ...own.issuers, ...own.rollover].map(fingerprintOf),
    trustAnchors.map(fingerprintOf),
    client.certificates.map(fingerprintOf),
  ];
  return isSameConfig(ofDriver(now), ofDriver(before)) && isDeepStrictEqual(certificates(now), certificates(before));
}

function isSameUpstream(now: UpstreamCaMaterial, before: CaMaterial): boolean {
  if (!('upstreamAnchors' in before)) return false;
  const certificates = ({ upstreamAnchors, chain, trustAnchors, client }: UpstreamCaMaterial) =>
    [upstreamAnchors, chain, trustAnchors, client?.certificates].map((some) => some?.map(fingerprintOf));
  return isSameConfig(now.table, before.table) && isDeepStrictEqual(certificates(now), certificates(before));
}

const fingerprintOf = ({ fingerprint }: Certificate): string => fingerprint;
