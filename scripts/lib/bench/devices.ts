/**
 * What a fleet in the store costs: `scripts/bench-devices [--devices 100000] [--format csv|ndjson]`.
 *
 * The devices are registered over the admin API of the built server, 10,000 rows a call, as an operator does. Then devices are looked for
 * by each kind of match, as an enrollment does: the hashes of a certificate that was just read, the query, the comparison. A look-up counts
 * what this process spends; what it costs to hand it to the store's thread is the same for every call of the store (docs/internals/performance.md).
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { spkiHash } from '../../../src/pki/x509/public-key.ts';
import { certificateMatchKeys, fitsMatch } from '../../../src/store/device-match.ts';
import { openReadOnly } from '../../../src/store/sqlite/database.ts';
import { deviceReads } from '../../../src/store/device-store.ts';
import { atOnce } from '../../../src/store/port.ts';
import { SqlitePort } from '../../../src/store/sqlite/port.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../../../test/support/certificates.ts';
import { call } from '../../../test/support/https.ts';
import { ROOT } from '../../../test/support/root.ts';
import { startServer } from '../../../test/support/server-process.ts';
import { cpuSeconds } from './cpu.ts';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '100000' },
    format: { type: 'string', default: 'csv' },
    help: { type: 'boolean', default: false },
  },
});
const DEVICES = Number(values.devices);
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

interface Device {
  readonly id: string;
  readonly match?: Readonly<Record<string, string>>;
  readonly attributes: { readonly site: string };
}

const kindOf = (n: number): Kind => KINDS[n % KINDS.length] ?? 'id';

/** @param fingerprint of its certificate, where that was made */
function device(n: number, fingerprint = randomBytes(32).toString('hex')): Device {
  const kind = kindOf(n);
  const common = { id: `device-${n}`, attributes: { site: `site-${n % 100}` } };
  if (kind === 'id') return common;
  if (kind === 'fingerprint_sha256') return { ...common, match: { fingerprint_sha256: fingerprint } };
  const match = {
    issuer_spki_sha256: spkiHash(issuer),
    ...(kind.includes('serial_number') ? { serial_number: `SN-${n}` } : {}),
    ...(kind.includes('common_name') ? { common_name: `unit ${n}` } : {}),
    ...(kind === 'san' ? { san: `DNS:unit-${n}.maker.example` } : {}),
  };
  return { ...common, match };
}

const COLUMNS = ['issuer_spki_sha256', 'serial_number', 'common_name', 'san', 'fingerprint_sha256'];

function table(devices: readonly Device[]): string {
  const header = ['id', 'attributes.site', ...COLUMNS.map((name) => `match.${name}`)].join(',');
  const lines = devices.map(({ id, attributes, match }) =>
    [id, attributes.site, ...COLUMNS.map((name) => (match?.[name] === undefined ? '' : `"${match[name]}"`))].join(','),
  );
  return `${[header, ...lines].join('\r\n')}\r\n`;
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

async function register(folder: string, certificates: ReadonlyMap<number, Buffer>): Promise<void> {
  const server = await startServer({ config: join(folder, 'est.toml'), env: { NODE_ENV: 'production' } });
  try {
    const token = readFileSync(join(folder, 'admin', 'token'), 'latin1').trim();
    const ca = readFileSync(join(folder, 'ca', 'root.pem'), 'latin1');
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': values.format === 'csv' ? 'text/csv' : 'application/x-ndjson',
    };
    let [seconds, answered] = [0, 0];
    const cpu = cpuSeconds(server.pid);
    for (let from = 0; from < DEVICES; from += ROWS) {
      const rows = Array.from({ length: Math.min(ROWS, DEVICES - from) }, (_, i) => {
        const der = certificates.get(from + i);
        return device(from + i, der && parseCertificate(der).fingerprint);
      });
      const body = Buffer.from(
        values.format === 'csv' ? table(rows) : rows.map((row) => JSON.stringify(row)).join('\n'),
      );
      const start = performance.now();
      const { status, text } = await call({
        port: server.port('admin'),
        path: '/admin/devices',
        method: 'POST',
        tls: { ca },
        headers,
        body,
      });
      seconds += (performance.now() - start) / 1000;
      if (status !== 200 || text.includes('_INVALID')) throw new Error(`${status}: ${text.slice(0, 500)}`);
      answered += text.trimEnd().split('\n').length - (values.format === 'csv' ? 1 : 0);
    }
    if (answered !== DEVICES) throw new Error(`${answered} answers to ${DEVICES} rows`);
    console.log(
      `${DEVICES} devices registered in ${seconds.toFixed(1)} s (${(cpuSeconds(server.pid) - cpu).toFixed(1)} s of the server's CPU)`,
    );
  } finally {
    await server.stop();
  }
}

function lookUp(path: string, certificates: ReadonlyMap<number, Buffer>): void {
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
    const start = process.cpuUsage();
    for (let round = 0; round < ROUNDS; round++)
      for (const [n, der] of mine)
        if (found(n, der) !== `device-${n}`) throw new Error(`device-${n} not found by ${kind}`);
    const { user, system } = process.cpuUsage(start);
    const each = (user + system) / (ROUNDS * mine.length);
    console.log(`look-up by ${kind}: ${each.toFixed(0)} µs of CPU`);
  }
  db.close();
}

if (values.help) {
  console.log('scripts/bench-devices [--devices 100000] [--format csv|ndjson]');
} else {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-devices-'));
  try {
    const quickstart = ['--no-start', '--dir', folder, '--est-port', '0', '--admin-port', '0'];
    execFileSync(join(ROOT, 'scripts', 'quickstart'), quickstart, { stdio: ['ignore', 'ignore', 'pipe'] });
    const certificates = await samples();
    await register(folder, certificates);
    lookUp(join(folder, 'data', 'est.db'), certificates);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
