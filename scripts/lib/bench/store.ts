/**
 * How many enrollments the store commits, and what one costs: `node scripts/lib/bench/store.ts [seconds per row]`.
 *
 * One enrollment is reserve (an OTP use, the intent, three audit records) and recordCertificate (900 bytes of DER, two
 * audit records). Everything runs against a real database in a folder of its own, which is removed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { verifyAudit } from '../../../src/store/sqlite/read-audit.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { enroll, insertBenchOtp, OTP_ID } from './store-work.ts';

const SECONDS = Number(process.argv[2] ?? 3);
const CONCURRENCY = [1, 4, 16, 64];
/** Runs `work` over and over, `concurrency` at a time, and gives a row of the table. */
async function measure(name: string, concurrency: number, work: () => Promise<unknown>): Promise<string> {
  const deadline = performance.now() + SECONDS * 1000;
  const started = performance.now();
  const process0 = process.cpuUsage();
  const thread0 = process.threadCpuUsage();
  let count = 0;
  const lane = async (): Promise<void> => {
    for (; performance.now() < deadline; count++) await work();
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  const elapsed = (performance.now() - started) / 1000;
  const thread = process.threadCpuUsage(thread0);
  const all = process.cpuUsage(process0);
  const each = (usage: NodeJS.CpuUsage): string => ((usage.user + usage.system) / count).toFixed(0);
  return `| ${name} | ${concurrency} | ${(count / elapsed).toFixed(0)} | ${each(thread)} | ${each(all)} |`;
}

const folder = mkdtempSync(join(tmpdir(), 'estuary-bench-'));
try {
  const paths = { path: join(folder, 'est.db'), auditFile: join(folder, 'audit.log') };
  const store = await openStore(paths);
  await insertBenchOtp(store);
  console.log('| work | at a time | per second | CPU µs each, main thread | CPU µs each, process |');
  console.log('| --- | --- | --- | --- | --- |');
  for (const concurrency of CONCURRENCY)
    console.log(await measure('enrollment (reserve + record)', concurrency, () => enroll(store)));
  for (const concurrency of [1, 16])
    console.log(await measure('look-up of an OTP', concurrency, () => store.findOtp(OTP_ID)));
  await store.close();
  const started = performance.now();
  const verdict = await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile });
  if (!verdict.ok) throw new Error(verdict.problem);
  const seconds = (performance.now() - started) / 1000;
  console.log(`audit verify: ${verdict.records} records in ${seconds.toFixed(1)} s`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
