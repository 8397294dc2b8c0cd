/** Costs of single operations in a store of a given size and in an empty one, and of CRLs. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { join } from 'node:path';
import { createLogger } from '../../../src/log.ts';
import { parseCertificateList, revokedEntries } from '../../../src/pki/x509/crl.ts';
import { CrlPublisher } from '../../../src/publication/crl-publisher.ts';
import type { Store } from '../../../src/store/store.ts';
import { deviceMatchKey } from '../../../src/store/device-match.ts';
import { deviceRow } from '../../../test/store/rows.ts';
import { fileCa } from '../../../test/support/file-ca.ts';
import { matchOf } from './search-rows.ts';
import { enroll, insertBenchOtp, OTP_ID } from './store-work.ts';

export interface Compared {
  readonly what: string;
  /** Of the medians: the large store's to the empty one's. */
  readonly ratio: number;
  readonly figure: string;
}

/** Both take turns, so that what else runs on the machine meets both. */
const [ROUNDS, EACH] = [20, 25];
/** One of the registered ones. */
const DEVICE = 4242;
/** Seconds. */
const CRL_INTERVAL = 3600;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

export async function besideEmpty(empty: Store, full: Store): Promise<Compared[]> {
  const stores = [empty, full] as const;
  for (const store of stores) await insertBenchOtp(store);
  await empty.putDevices([{ row: deviceRow({ match: matchOf(DEVICE) }), events: [] }], 'create');
  const last = new Map<Store, string>();
  const works: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    'an enrollment (reserve and record)': async (store) => last.set(store, await enroll(store)),
    'the look-up of a token': (store) => store.findOtp(OTP_ID),
    'the look-up of a device': (store) =>
      store.findDevicesByCertificate('00', [deviceMatchKey(matchOf(DEVICE))], 'devices'),
    'the look-up of a certificate': (store) => store.getCertificates(last.get(store) ?? ''),
  };
  const compared: Compared[] = [];
  for (const [what, work] of Object.entries(works)) {
    const times = new Map<Store, number[]>(stores.map((store) => [store, []]));
    for (let round = 0; round < ROUNDS; round++)
      for (const store of stores)
        for (let n = 0; n < EACH; n++) {
          const since = performance.now();
          await work(store);
          times.get(store)?.push(performance.now() - since);
        }
    const [small, large] = stores.map((store) => median(times.get(store) ?? []));
    if (small === undefined || large === undefined) continue;
    const ratio = large / small;
    compared.push({
      what: `${what}, next to an empty store`,
      ratio,
      figure: `${large.toFixed(2)} ms, ${small.toFixed(2)} ms in the empty one: ${ratio.toFixed(2)} times`,
    });
  }
  return compared;
}

/** The first list of all that is revoked, and the next one, an hour later. @returns lines of a name and a figure */
export async function crls(folder: string, store: Store): Promise<(readonly [string, string])[]> {
  const ca = await fileCa({ file: (name) => join(folder, name) }, 'devices', true);
  const signer = ca.driver.statusSigner;
  if (signer === undefined) throw new Error('a local CA signs status information');
  const clock = { now: Date.now() };
  const log = createLogger('silent');
  const publisher = new CrlPublisher({ store, cas: () => [ca], interval: CRL_INTERVAL, log, now: () => clock.now });
  const lines: (readonly [string, string])[] = [];
  for (const which of ['the first CRL', 'the next CRL']) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const before = performance.eventLoopUtilization();
    const since = performance.now();
    const { der } = await publisher.current(ca, signer);
    const took = performance.now() - since;
    const { active } = performance.eventLoopUtilization(before);
    delay.disable();
    const entries = [...revokedEntries(parseCertificateList(der))].length;
    lines.push([
      `${which}, of ${entries} entries`,
      `${took.toFixed(0)} ms, ${active.toFixed(0)} of it the main thread's, held up for ${(delay.max / 1e6).toFixed(0)} at most`,
    ]);
    clock.now += CRL_INTERVAL * 1000;
  }
  return lines;
}
