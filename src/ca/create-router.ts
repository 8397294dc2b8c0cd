/** From the `[[ca]]` tables to CAs at work: the one place that knows which driver is which. */
import { readFile } from 'node:fs/promises';
import type { CaConfig, Config } from '../config/schema.ts';
import { clientIssuerFiles } from '../config/schema/ca.ts';
import { parsePemCertificates, type Certificate } from '../pki/x509/certificate.ts';
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
 * Opens every configured CA.
 *
 * @throws EstuaryError that names the label and what keeps the CA from working; CAs opened before are closed then
 */
export async function createRouter(config: Config, context: CaContext): Promise<CaRouter> {
  const cas: Ca[] = [];
  try {
    for (const table of config.ca) {
      const surroundings = {
        renewalIssuers: await certificatesIn([table.profile.renewal_issuers]),
        popLinking: config.est.require_pop_linking,
        clientIssuers: await certificatesIn(clientIssuerFiles(table)),
        all: () => cas,
      };
      const driver = await openDriver(table, {
        ...context,
        retryAfter: config.est.retry_after,
        publication: publicationUrls(config.publication, table.label),
      });
      cas.push(new Ca(table, driver, surroundings));
    }
    return new CaRouter(cas);
  } catch (error) {
    await Promise.all(cas.map(({ driver }) => driver.close()));
    throw error;
  }
}

function openDriver(
  config: CaConfig,
  context: CaContext & LocalCaContext & { readonly retryAfter: number },
): Promise<CaDriver> {
  switch (config.driver) {
    case 'file':
      return createFileCa(config, context);
    case 'pkcs11':
      return createPkcs11Ca(config, context);
    case 'dogtag':
      return createDogtagCa(config, context);
  }
}

async function certificatesIn(files: readonly (string | undefined)[]): Promise<readonly Certificate[]> {
  const texts = await Promise.all(files.flatMap((file) => (file === undefined ? [] : [readFile(file, 'latin1')])));
  return texts.flatMap((text) => parsePemCertificates(text));
}
