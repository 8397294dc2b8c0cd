/** Makes CAs behind Dogtag PKI (`driver = "dogtag"`). */
import { readFile } from 'node:fs/promises';
import type { DogtagCaConfig } from '../../config/schema.ts';
import { failed, describe } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import type { MakeMutex } from '../../process/semaphore.ts';
import { labelledLog } from '../labelled-log.ts';
import { loadCaCertificates } from '../local/index.ts';
import { RemoteChain } from './chain.ts';
import { CmcService } from './cmc.ts';
import { DogtagCa } from './dogtag-ca.ts';
import type { DogtagTls } from './http.ts';
import { Kra } from './kra.ts';
import { Replicas } from './replicas.ts';
import type { AskedProfile } from './verify-issued.ts';

export interface DogtagContext {
  /** Seconds in the Retry-After of a 503. */
  readonly retryAfter: number;
  readonly log: IsolatedLog;
  readonly makeMutex: MakeMutex;
}

/** What the driver takes of its `[[ca]]` table. */
export type DogtagSettings = Pick<DogtagCaConfig, 'label' | 'certificate' | 'chain' | 'dogtag'> & {
  readonly profile: Pick<DogtagCaConfig['profile'], 'key_escrow'> & AskedProfile;
};

/**
 * A CA behind Dogtag, not started. The server need not be up: it is found as soon as it is.
 *
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and what is wrong with a file
 */
export async function createDogtagCa(
  config: DogtagSettings,
  { retryAfter, log, makeMutex }: DogtagContext,
): Promise<DogtagCa> {
  const { label, certificate, dogtag } = config;
  const pinned = certificate === undefined ? undefined : await loadCaCertificates({ ...config, certificate });
  const chain = new RemoteChain(pinned);
  const timeout = dogtag.timeout * 1000;
  const common = {
    tls: await loadTls(config),
    timeout,
    checkInterval: dogtag.check_interval * 1000,
    retryAfter,
    log: labelledLog(log, label),
  };
  const replicas: Replicas = new Replicas({ ...common, urls: dogtag.urls, subsystem: 'ca' }, () =>
    chain.refresh(replicas),
  );
  const cmc = new CmcService({
    replicas,
    tls: common.tls,
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

/** The files behind every connection to Dogtag. @throws EstuaryError 500 `CA_UNUSABLE` that names the label and the key */
export async function loadTls({ label, dogtag }: DogtagSettings): Promise<DogtagTls> {
  const read = async (key: 'trust_anchors' | 'client_certificate' | 'client_key'): Promise<string> => {
    try {
      return await readFile(dogtag[key], 'latin1');
    } catch (error) {
      throw failed('CA_UNUSABLE', `ca "${label}": dogtag.${key}: ${describe(error)}`, { cause: error });
    }
  };
  return {
    ca: await read('trust_anchors'),
    cert: await read('client_certificate'),
    key: await read('client_key'),
  };
}
