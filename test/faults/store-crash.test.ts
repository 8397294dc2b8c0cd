import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test as anyTest } from 'vitest';
import { verifyAudit } from '../../src/store/sqlite/read-audit.ts';
import type { Store } from '../../src/store/store.ts';
import { requires } from '../support/requires.ts';
import { opened, type Paths, T0, temporaryPaths } from '../store/support.ts';
import { pause } from '../support/until.ts';

const test = anyTest.skipIf(!requires('storeInFile'));

const WRITER = join(import.meta.dirname, '..', 'store', 'writer-process.ts');
/** The nightly run sets 100. */
const KILLS = Number(process.env['STORE_KILLS'] ?? 8);

interface Writer {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  /** The lines so far, complete ones only. */
  readonly said: () => string[];
  /** Waits for the first line that begins like this. */
  readonly until: (beginning: string) => Promise<void>;
}

function startWriter(paths: Paths, name: string, count?: number): Writer {
  const args = [WRITER, paths.path, paths.auditFile, name, ...(count === undefined ? [] : [String(count)])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'close');
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const said = (): string[] => text.split('\n').slice(0, -1);
  return {
    child,
    exited,
    said,
    async until(beginning) {
      while (!said().some((line) => line.startsWith(beginning))) {
        if (child.exitCode !== null) throw new Error(`the writer ended with ${child.exitCode}: ${text}`);
        await pause(5);
      }
    },
  };
}

const acknowledged = (lines: readonly string[], kind: string): string[] =>
  lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));

async function allCertificates(store: Store): Promise<Set<string>> {
  const serials = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await store.listCertificates({ limit: 1000, cursor }, T0);
    for (const row of page.items) serials.add(row.serial);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return serials;
}

/** Every acknowledged change is there, and each use of a token belongs to a reservation or to a certificate. */
async function checkPromises(paths: Paths, lines: readonly string[]): Promise<void> {
  const store = await opened(paths);
  const open = new Set((await store.openReservations()).map((row) => row.otp_id));
  for (const id of acknowledged(lines, 'otp')) expect(await store.getOtp(id)).toBeDefined();
  for (const id of acknowledged(lines, 'reserved')) expect(await store.getOtp(id)).toMatchObject({ uses: 1 });
  const certificates = await allCertificates(store);
  for (const serial of acknowledged(lines, 'recorded')) expect(certificates).toContain(serial);

  let used = 0;
  let cursor: string | undefined;
  do {
    const page = await store.listOtps({ limit: 1000, cursor }, 0);
    used += page.items.reduce((sum, row) => sum + row.uses, 0);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(used).toBe(open.size + certificates.size);
  expect(acknowledged(lines, 'failed')).toEqual([]);

  // Reconciliation releases what a dead process left open exactly once.
  for (const row of await store.openReservations())
    expect(await store.releaseReservation(row.request_id, [])).toBe(true);
  await store.close();
  expect(await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile })).toMatchObject({
    ok: true,
    ahead: 0,
  });
}

test(`§6: kill -9, ${KILLS} times while writing: what was acknowledged is there, and the chain holds`, async () => {
  const paths = temporaryPaths();
  const lines: string[] = [];
  for (let n = 0; n < KILLS; n++) {
    const writer = startWriter(paths, `writer-${n}`);
    await writer.until('ready');
    await pause(Math.random() * 250);
    writer.child.kill('SIGKILL');
    await writer.exited;
    lines.push(...writer.said());
  }
  expect(acknowledged(lines, 'recorded').length).toBeGreaterThan(0);
  await checkPromises(paths, lines);
});

test('three processes write at once: one chain, and one is killed under the others', async () => {
  const paths = temporaryPaths();
  const writers = [startWriter(paths, 'a', 150), startWriter(paths, 'b', 150)];
  const victim = startWriter(paths, 'victim');
  await victim.until('recorded');
  victim.child.kill('SIGKILL');
  await Promise.all([...writers, victim].map((writer) => writer.exited));
  for (const writer of writers) {
    expect(writer.child.exitCode).toBe(0);
    expect(acknowledged(writer.said(), 'recorded')).toHaveLength(150);
  }
  await checkPromises(
    paths,
    [...writers, victim].flatMap((writer) => writer.said()),
  );
});

test('reconciliation gets only the reservations of a dead process', async () => {
  const paths = temporaryPaths();
  const victim = startWriter(paths, 'victim');
  await victim.until('reserved');
  victim.child.kill('SIGKILL');
  await victim.exited;
  const store = await opened(paths);
  expect(await store.openReservations('somebody-else')).toEqual([]);
  const all = await store.openReservations();
  expect(await store.openReservations('victim')).toEqual(all);
});
