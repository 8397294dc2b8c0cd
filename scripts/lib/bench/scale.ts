/** Costs of single operations in a store of a given size and in an empty one, of CRLs, and of a start of the server. */
import { randomBytes } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { join } from 'node:path';
import { createLogger } from '../../../src/log.ts';
import { parseCertificateList, revokedEntries } from '../../../src/pki/x509/crl.ts';
import { CrlPublisher } from '../../../src/publication/crl-publisher.ts';
import { deviceMatchKey } from '../../../src/store/device-match.ts';
import type { Store } from '../../../src/store/store.ts';
import { certificateRow, deviceRow, event, otpRow, reservation } from '../../../test/store/rows.ts';
import { Estuary, section } from '../../../test/support/estuary.ts';
import { fileCa } from '../../../test/support/file-ca.ts';
import { matchOf } from './fill.ts';
import { cpuSeconds, type Duration, measured, median } from './measure.ts';

/** Both take turns, so that what else runs on the machine meets both. */
const [ROUNDS, EACH, STARTS] = [20, 25, 3];
/** One of the registered ones. */
const DEVICE = 4242;
/** Seconds. */
const CRL_INTERVAL = 3600;
/** The one-time password that all enrollments use. */
export const OTP_ID = 'bench';
const DER = randomBytes(900);

/**
 * What the store does for an enrollment: reserve (an OTP use, the intent, three audit records) and recordCertificate (900 bytes of DER,
 * two audit records). @returns the serial number
 */
async function enroll(store: Store): Promise<string> {
  const serial = randomBytes(16).toString('hex');
  const subject = 'CN=device-000001.example.com,O=Example';
  const of = reservation({ serial, subject, spki_sha256: serial + serial, otp_id: OTP_ID, created_at: Date.now() });
  const about = { subject, address: '192.0.2.1', ca: of.ca, serial, request_id: of.request_id };
  const audited = (...types: Parameters<typeof event>[0][]) => types.map((type) => event(type, about));
  const result = await store.reserve(of, audited('auth.otp', 'request.received', 'otp.used'));
  if (result !== 'reserved') throw new Error(result);
  await store.recordCertificate(
    certificateRow(of, { der: DER, not_before: Date.now(), not_after: Date.now() + 397 * 86_400_000 }),
    audited('ca.signature', 'certificate.issued'),
  );
  return serial;
}

/** @returns for each operation the medians of milliseconds, in the empty store and in the full one */
export async function besideEmpty(empty: Store, full: Store): Promise<Record<string, { empty: number; full: number }>> {
  const otp = otpRow({ id: OTP_ID, max_uses: 1e12, created_at: Date.now(), expires_at: Date.now() + 86_400_000 });
  for (const store of [empty, full]) await store.insertOtp(otp, []);
  await empty.putDevices([{ row: deviceRow({ match: matchOf(DEVICE) }), events: [] }], 'create');
  const last = new Map<Store, string>();
  const works: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    'an enrollment (reserve and record)': async (store) => last.set(store, await enroll(store)),
    'the look-up of a token': (store) => store.findOtp(OTP_ID),
    'the look-up of a device': (store) =>
      store.findDevicesByCertificate('00', [deviceMatchKey(matchOf(DEVICE))], 'devices'),
    'the look-up of a certificate': (store) => store.getCertificates(last.get(store) ?? ''),
  };
  const compared: Record<string, { empty: number; full: number }> = {};
  for (const [what, work] of Object.entries(works)) {
    const times: Record<'empty' | 'full', number[]> = { empty: [], full: [] };
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, store] of [
        ['empty', empty],
        ['full', full],
      ] as const)
        for (let n = 0; n < EACH; n++) times[name].push((await measured(() => work(store))).took);
    compared[what] = { empty: median(times.empty), full: median(times.full) };
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

/** Starts the built server on a store and on an empty one in turns. @returns the fastest start on each, until both listeners answer */
export async function startUps(path: string, auditFile: string): Promise<{ full: Duration; empty: Duration }> {
  const env = { NODE_ENV: 'production' };
  const best = { empty: { took: Infinity, computed: 0 }, full: { took: Infinity, computed: 0 } };
  const estuaries = {
    empty: await Estuary.start({ env }),
    full: await Estuary.start({
      env,
      configure(config) {
        section(config, 'store')['path'] = path;
        section(config, 'audit')['file'] = auditFile;
      },
    }),
  };
  for (let n = 0; n < STARTS; n++)
    for (const name of ['empty', 'full'] as const) {
      const estuary = estuaries[name];
      await estuary.server.stop();
      const { took } = await measured(() => estuary.restart());
      if (took < best[name].took) best[name] = { took, computed: cpuSeconds(estuary.server.pid) * 1000 };
    }
  for (const estuary of Object.values(estuaries)) await estuary.stop();
  return best;
}
