/** A real CA and store behind a key that can be taken away, for OCSP and CRLs. */
import { randomBytes } from 'node:crypto';
import type { StatusSigner } from '../../src/ca/driver.ts';
import type { Ca } from '../../src/ca/router.ts';
import { unavailable } from '../../src/errors.ts';
import { createLogger } from '../../src/log.ts';
import { CrlPublisher } from '../../src/publication/crl-publisher.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { opened, temporaryPaths } from '../store/support.ts';

/** Seconds. */
export const INTERVAL = 3600;
export const log = createLogger('silent');

export interface Fixture {
  readonly store: Store;
  readonly ca: Ca;
  readonly signer: StatusSigner;
  readonly clock: { now: number };
  readonly key: { works: boolean; used: number };
  readonly publisher: CrlPublisher;
}

/** A real CA and store; the key can be taken away, and the clock moved. */
export async function fixture(folder: { file: (name: string) => string }): Promise<Fixture> {
  const store = await opened(temporaryPaths());
  const ca = await fileCa(folder, 'devices', true);
  const real = ca.driver.statusSigner;
  if (real === undefined) throw new Error('a local CA signs status information');
  const key = { works: true, used: 0 };
  const signer: StatusSigner = {
    signatureAlgorithm: real.signatureAlgorithm,
    sign(statement) {
      key.used += 1;
      return key.works ? real.sign(statement) : Promise.reject(unavailable('PKCS11_DOWN', 'the token is not there'));
    },
  };
  const clock = { now: Date.now() };
  const publisher = new CrlPublisher({ store, cas: () => [ca], interval: INTERVAL, log, now: () => clock.now });
  return { store, ca, signer, clock, key, publisher };
}

/** DER OCSPResponses. */
export const SUCCESSFUL = /^3081..0a0100|^3082....0a0100/;
export const TRY_LATER = '30030a0103';
export const UNAUTHORIZED = '30030a0106';

/** A serial number that nobody issued. */
export const madeUp = (): string => `7f${randomBytes(15).toString('hex')}`;
