/** Creates CAs behind Dogtag PKI (`driver = "dogtag"`). */
import { isDeepStrictEqual } from 'node:util';
import type { DogtagCaMaterial } from '../../config/material/material.ts';
import type { DogtagCaConfig } from '../../config/schema.ts';
import { isSameConfig } from '../../config/secret.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { labeledLog, type DriverContext, type Predecessor } from '../driver.ts';
import { clientTls } from '../remote/http.ts';
import { RemoteChain } from './chain.ts';
import { CmcService } from './cmc.ts';
import { DogtagCa } from './dogtag-ca.ts';
import { Kra } from './kra.ts';
import { Replicas } from './replicas.ts';
import type { AskedProfile } from './verify-issued.ts';

/** The settings that the driver uses from its `[[ca]]` table. */
type DogtagSettings = Pick<DogtagCaConfig, 'label' | 'dogtag'> & {
  readonly profile: Pick<DogtagCaConfig['profile'], 'key_escrow'> & AskedProfile;
};

/**
 * A CA behind Dogtag, not started, or the one before a reload if nothing changed for it. The server may be down at
 * start.
 * @throws EstuaryError 500 `CA_UNUSABLE` if the agent's key cannot sign
 */
export function createDogtagCa(
  config: DogtagSettings,
  material: Pick<DogtagCaMaterial, 'certificates' | 'trustAnchors' | 'client'>,
  { retryAfter, log, makeMutex }: Pick<DriverContext, 'retryAfter' | 'log' | 'makeMutex'>,
  before?: Predecessor,
): DogtagCa {
  if (before?.driver instanceof DogtagCa && isSame({ table: config, ...material }, before.material))
    return before.driver;
  const { label, dogtag } = config;
  const chain = new RemoteChain(material.certificates);
  const timeout = dogtag.timeout * 1000;
  const common = {
    tls: clientTls(material),
    timeout,
    checkInterval: dogtag.check_interval * 1000,
    retryAfter,
    log: labeledLog(log, label),
  };
  const replicas: Replicas = new Replicas({ ...common, urls: dogtag.urls, subsystem: 'ca' }, () =>
    chain.refresh(replicas),
  );
  const cmc = new CmcService({
    replicas,
    agent: material.client,
    profile: dogtag.cmc_profile,
    retryAfter,
    chain,
    label,
    makeMutex,
    now: Date.now,
  });
  const archives = dogtag.kra_urls.length > 0 && config.profile.key_escrow !== false;
  const kra = archives
    ? new Kra(new Replicas({ ...common, urls: dogtag.kra_urls, subsystem: 'kra' }), Date.now)
    : undefined;
  return new DogtagCa({
    label,
    replicas,
    chain,
    cmc,
    kra,
    profile: dogtag.profile,
    asked: config.profile,
    inputClass: dogtag.input_class,
    lostAfter: dogtag.lost_after * 1000,
    timeout,
    retryAfter,
  });
}

type Compared = Pick<DogtagCaMaterial, 'certificates' | 'trustAnchors' | 'client'> & {
  readonly table: DogtagSettings;
};

/** Compares certificates only, since a private key belongs to its certificate. */
function isSame(now: Compared, before: Predecessor['material']): boolean {
  if (before.driver !== 'dogtag') return false;
  const ofDriver = ({ table }: Compared) => [table.dogtag, table.profile];
  const certificates = ({ certificates: own, trustAnchors, client }: Compared) => [
    own === undefined ? [] : [own.certificate, ...own.issuers, ...own.rollover].map(fingerprintOf),
    trustAnchors.map(fingerprintOf),
    client.certificates.map(fingerprintOf),
  ];
  return isSameConfig(ofDriver(now), ofDriver(before)) && isDeepStrictEqual(certificates(now), certificates(before));
}

const fingerprintOf = ({ fingerprint }: Certificate): string => fingerprint;
