/**
 * What a fleet in the store costs: `scripts/bench devices [--devices 100000]`.
 *
 * The devices are registered over the admin API of the built server, 10,000 CSV rows a call, as an operator does. Then devices are looked
 * for by each kind of match, as an enrollment does: the hashes of a certificate that was just read, the query, the comparison. A lookup
 * counts what this process spends; what it costs to hand it to the store's thread is the same for every call of the store
 * (docs/internals/performance.md).
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { spkiHash } from '../../../src/pki/x509/public-key.ts';
import { certificateMatchKeys, fitsMatch } from '../../../src/store/device-match.ts';
import { deviceReads } from '../../../src/store/device-store.ts';
import { atOnce } from '../../../test/store/sqlite/at-once.ts';
import { openReadOnly } from '../../../src/store/sqlite/database.ts';
import { SqlitePort } from '../../../src/store/sqlite/port.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../../../test/support/certificates.ts';
import { Estuary } from '../../../test/support/estuary.ts';
import { call } from '../../../test/support/https.ts';
import { cpuSeconds, measured } from './measure.ts';
import { wholeNumber } from './options.ts';

const { values } = parseArgs({ options: { devices: { type: 'string', default: '100000' } } });
const DEVICES = wholeNumber(values.devices, 10_000_000, 'devices');
const ROWS = 10_000;
/** Devices of each kind whose certificates are made; the others only stand in the store. */
const SAMPLES = 20;
const ROUNDS = 100;
const maker = await makeCa('CN=Maker Root,O=Maker');
const issuer = parseCertificate(maker.der);
const KINDS = [
  'serial_number',
  'common_name',
  'san',
  'serial_number and common_name',
  'fingerprint_sha256',
  'id',
] as const;
type Kind = (typeof KINDS)[number];

const kindOf = (n: number): Kind => KINDS[n % KINDS.length] ?? 'id';

const HEADER =
  'id,attributes.site,match.issuer_spki_sha256,match.serial_number,match.common_name,match.san,match.fingerprint_sha256';

/** A device's row of the CSV. @param fingerprint of its certificate, where that was made */
function row(n: number, fingerprint = randomBytes(32).toString('hex')): string {
  const kind = kindOf(n);
  const cells = [
    `device-${n}`,
    `site-${n % 100}`,
    kind === 'id' || kind === 'fingerprint_sha256' ? '' : spkiHash(issuer),
    kind.includes('serial_number') ? `SN-${n}` : '',
    kind.includes('common_name') ? `unit ${n}` : '',
    kind === 'san' ? `DNS:unit-${n}.maker.example` : '',
    kind === 'fingerprint_sha256' ? fingerprint : '',
  ];
  return cells.join(',');
}

/** Certificates of some devices, DER. */
async function samples(): Promise<Map<number, Buffer>> {
  const made = new Map<number, Buffer>();
  for (let i = 0; i < SAMPLES * KINDS.length; i++) {
    const n = Math.floor((i * DEVICES) / (SAMPLES * KINDS.length) / KINDS.length) * KINDS.length + (i % KINDS.length);
    const names = [dns(`unit-${n}.maker.example`), dns(`unit-${n}.local`)];
    const { der } = await makeClient(`CN=unit ${n},serialNumber=SN-${n},O=Maker`, maker, {
      slot: 'bench',
      extensions: [subjectAltName(...names)],
    });
    made.set(n, der);
  }
  return made;
}

async function register(estuary: Estuary, certificates: ReadonlyMap<number, Buffer>): Promise<void> {
  const { server, adminToken, root } = estuary;
  let [seconds, answered] = [0, 0];
  const cpu = cpuSeconds(server.pid);
  for (let from = 0; from < DEVICES; from += ROWS) {
    const rows = Array.from({ length: Math.min(ROWS, DEVICES - from) }, (_, i) => {
      const der = certificates.get(from + i);
      return row(from + i, der && parseCertificate(der).fingerprint);
    });
    const { result, took } = await measured(() =>
      call({
        port: server.port('admin'),
        path: '/admin/devices',
        method: 'POST',
        tls: { ca: root },
        headers: { Authorization: `Bearer ${adminToken}`, 'Content-Type': 'text/csv' },
        body: Buffer.from(`${[HEADER, ...rows].join('\r\n')}\r\n`),
      }),
    );
    const { status, text } = result;
    seconds += took / 1000;
    if (status !== 200 || text.includes('_INVALID')) throw new Error(`${status}: ${text.slice(0, 500)}`);
    answered += text.trimEnd().split('\n').length - 1;
  }
  if (answered !== DEVICES) throw new Error(`${answered} answers to ${DEVICES} rows`);
  const used = cpuSeconds(server.pid) - cpu;
  console.log(`${DEVICES} devices registered in ${seconds.toFixed(1)} s (${used.toFixed(1)} s of the server's CPU)`);
}

async function lookUp(path: string, certificates: ReadonlyMap<number, Buffer>): Promise<void> {
  const db = openReadOnly(path);
  const reads = atOnce(deviceReads(new SqlitePort(db)));
  const found = (n: number, der: Buffer): string | undefined => {
    if (kindOf(n) === 'id') return reads.findDevices({ id: `device-${n}` }, 'devices')[0]?.id;
    const presented = { certificate: parseCertificate(der), issuer };
    const { matching } = reads.findDevicesByCertificate('00', certificateMatchKeys(presented), 'devices');
    return matching.find(({ match }) => match !== null && fitsMatch(match, presented))?.id;
  };
  for (const kind of KINDS) {
    const mine = [...certificates].filter(([n]) => kindOf(n) === kind);
    const { computed } = await measured(() => {
      for (let round = 0; round < ROUNDS; round++)
        for (const [n, der] of mine)
          if (found(n, der) !== `device-${n}`) throw new Error(`device-${n} not found by ${kind}`);
    });
    console.log(`lookup by ${kind}: ${((computed * 1000) / (ROUNDS * mine.length)).toFixed(0)} µs of CPU`);
  }
  db.close();
}

const certificates = await samples();
const estuary = await Estuary.start({ env: { NODE_ENV: 'production' } });
try {
  await register(estuary, certificates);
  await estuary.server.stop();
  await lookUp(join(estuary.dir, 'data', 'est.db'), certificates);
} finally {
  await estuary.stop();
}
