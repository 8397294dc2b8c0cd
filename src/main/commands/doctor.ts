/** `doctor`: runs an operator's checks, even while the server runs. Changes nothing except a test file. */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { request } from 'node:https';
import Database from 'better-sqlite3';
import Type from 'typebox';
import { Check } from 'typebox/value';
import type { AuditVerdict } from '../../audit/chain-check.ts';
import { refuseBehind } from '../../audit/missing-records.ts';
import type { ChainHead } from '../../audit/record.ts';
import { loadConfigOnly, type LoadedService } from '../../config/load.ts';
import { certificateExpiries, type CertificateExpiry } from '../../config/material/material.ts';
import { readCertificates } from '../../config/material/reader.ts';
import { ConfigError, reported } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { serverCertificateFile } from '../../enrollment/server-certificate.ts';
import { codeOf, describe, isUnavailable } from '../../errors.ts';
import { nearestFolder } from '../../folders.ts';
import { formatName } from '../../pki/x509/name.ts';
import { MIN_FREE } from '../../store/audit-chain.ts';
import { verifyNodes } from '../../store/postgres/read-audit.ts';
import { damageOf, openReadOnly } from '../../store/sqlite/database.ts';
import { verifyAudit } from '../../store/sqlite/read-audit.ts';
import { nodeName, openConfiguredStoreForReading, postgresServer } from '../open-store.ts';
import { withoutCa } from '../reloads.ts';
import { type CommandContext, EXIT } from './command.ts';
import { contactCas, contactServices } from './contact.ts';
import { detailOf } from '../service-watch.ts';
import { loadDespite } from './serve.ts';

interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
}

const finding = (check: string, status: Finding['status'], detail: string): Finding => ({ check, status, detail });

/** Result of `statfs`. */
export type ReadSpace = (path: string) => Readonly<Record<'bsize' | 'blocks' | 'bavail' | 'files' | 'ffree', number>>;

const [KIB, MIB, GIB] = [2 ** 10, 2 ** 20, 2 ** 30];

function inUnits(bytes: number): string {
  if (bytes < MIB) return `${Math.floor(bytes / KIB)} KiB`;
  // Rounded down, so that it never shows more than there is.
  const [unit, name] = bytes < GIB ? ([MIB, 'MiB'] as const) : ([GIB, 'GiB'] as const);
  return `${Math.floor((bytes * 10) / unit) / 10} ${name}`;
}

/** Nearly full: below both. */
const NEARLY_FULL = { bytes: 64 * MIB, share: 0.1 };
const LOW = { bytes: 1024 * MIB, share: 0.05 };
/** Bytes of a test file. */
const PROBE = 65_536;

/** Whether each folder that the server writes to has space and is writable. @param readSpace for tests */
export function checkDisks(config: Pick<Config, 'store' | 'audit'>, readSpace: ReadSpace = statfsSync): Finding[] {
  const folders = new Map<string, { uses: string[]; files: string[] }>();
  const add = (use: string, folder: string, ...files: string[]): void => {
    const known = folders.get(folder) ?? { uses: [], files: [] };
    folders.set(folder, { uses: [...known.uses, use], files: [...known.files, ...files] });
  };
  const { store, audit } = config;
  if (store.driver === 'sqlite') add('store', dirname(store.path), store.path);
  add('audit log', dirname(audit.file), audit.file);
  if (audit.archive !== undefined) add('audit archive', audit.archive);
  return [...folders].map(([folder, { uses, files }]) => ({
    check: 'disk',
    ...checkDisk(folder, uses.join(', '), files, readSpace),
  }));
}

type Outcome = Omit<Finding, 'check'>;

function checkDisk(folder: string, uses: string, files: readonly string[], readSpace: ReadSpace): Outcome {
  const where = `${folder} (${uses})`;
  try {
    const { bsize, blocks, bavail, files: inodes, ffree } = readSpace(nearestFolder(folder));
    const [free, all] = [bavail * bsize, blocks * bsize];
    const space = `${where}: ${inUnits(free)} free of ${inUnits(all)}`;
    const problem = writeProblem(folder, files);
    const unwritable = `${space}, but it cannot be written: ${describe(problem)}`;
    if (codeOf(problem) === 'EROFS') return { status: 'failed', detail: unwritable };
    const below = (limit: { readonly bytes: number; readonly share: number }): boolean =>
      free < limit.bytes && free < all * limit.share;
    if (free < MIN_FREE)
      return { status: 'failed', detail: `${space}: the disk is full, and the server issues nothing. Free some space` };
    if (inodes > 0 && ffree === 0)
      return { status: 'failed', detail: `${space}, but no inode is free. Delete files that are not needed` };
    if (below(NEARLY_FULL)) return { status: 'failed', detail: `${space}: the disk is nearly full. Free some space` };
    if (problem !== undefined) return { status: 'failed', detail: unwritable };
    if (below(LOW)) return { status: 'warning', detail: `${space}: less than 5 %` };
    return { status: 'ok', detail: space };
  } catch (error) {
    return { status: 'failed', detail: `${where}: ${describe(error)}` };
  }
}

/** Writes and deletes a test file; opens the server's files without changing them. */
function writeProblem(folder: string, files: readonly string[]): unknown {
  if (!existsSync(folder)) return undefined;
  const probe = join(folder, `.estuary-doctor-${process.pid}`);
  try {
    for (const file of files) if (existsSync(file)) closeSync(openSync(file, 'r+'));
    const descriptor = openSync(probe, 'wx', 0o600);
    try {
      writeSync(descriptor, Buffer.alloc(PROBE));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
      rmSync(probe);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}

const DAY = 86_400_000;
const NEAR_END = 30;

/** Exit code 0: nothing failed; 1: something failed; 2: invalid configuration. */
export async function run(
  { config: file, json }: { readonly config: string; readonly json: boolean },
  context: CommandContext,
): Promise<number> {
  const findings: Finding[] = [];
  let refused = false;
  try {
    findings.push(...(await examine(await loadDespite(file, context), context.now())));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    refused = !error.isOfFiles;
    const check = refused ? 'configuration' : 'file';
    for (const line of error.message.split('\n')) findings.push(finding(check, 'failed', line));
    if (!refused) findings.push(...(await examineStore(file, context)));
  }
  const failed = findings.some(({ status }) => status === 'failed');
  if (json) context.out(`${JSON.stringify({ ok: !failed, findings }, null, 2)}\n`);
  else for (const { check, status, detail } of findings) context.out(`${status.padEnd(7)} ${check}: ${detail}\n`);
  if (refused) return EXIT.refused;
  return failed ? EXIT.failed : EXIT.ok;
}

/** What needs none of the files that the configuration names. */
async function local(config: Config, now: number): Promise<Finding[]> {
  const findings = [...(await running(config)), ...checkDisks(config)];
  if (config.store.driver !== 'sqlite') return findings;
  return [...findings, ...store(config, now), await audit(config.store.path, config.audit.file)];
}

/** {@link local}, with files that cannot be used. */
async function examineStore(file: string, context: CommandContext): Promise<Finding[]> {
  try {
    const { config } = await loadConfigOnly(file, context.env);
    return await local(config, context.now());
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

async function examine(loaded: Awaited<ReturnType<typeof loadDespite>>, now: number): Promise<Finding[]> {
  const { config, material, warnings, faults, problems } = loaded;
  return [
    finding('configuration', 'ok', 'valid'),
    ...warnings.map(({ key, message }) => finding('configuration', 'warning', `${key}: ${message}`)),
    ...problems.map(({ key, message }) => finding('file', 'failed', `${key}: ${message}`)),
    ...faults.map(reported).map(({ key, message }) => finding('file', 'failed', `${key}: ${message}`)),
    ...certificateExpiries(material).map((expiry) => endOf(expiry, now, NEAR_END)),
    ...(await labels(loaded, now)),
    ...(await automatic(config, now)),
    ...(await cas(loaded, now)),
    ...(await services(loaded)),
    ...(await local(config, now)),
    ...(config.store.driver === 'sqlite' ? [] : await sharedStore(loaded)),
  ];
}

/** For several nodes, checks only what this node can access; the database has its own tools. */
async function sharedStore({ config, material }: LoadedService): Promise<Finding[]> {
  try {
    const server = postgresServer(config, material);
    const verdict = await verifyNodes({ server, node: nodeName(config), auditFile: config.audit.file });
    return [finding('store', 'ok', 'the PostgreSQL database answers'), findingOf(verdict)];
  } catch (error) {
    const next = isUnavailable(error)
      ? ': the server waits. Restore the database or the connection, or correct store.url'
      : '';
    return [finding('store', 'failed', `${detailOf(error)}${next}`)];
  }
}

/** Nothing without a database, which other findings report. */
async function labels({ config, material }: LoadedService, now: number): Promise<Finding[]> {
  if (config.store.driver === 'sqlite' && !existsSync(config.store.path)) return [];
  try {
    const store = await openConfiguredStoreForReading(config, material);
    const warnings = await withoutCa(config, store, now).finally(() => store.close());
    return warnings.map(({ message }) => finding('ca', 'warning', message));
  } catch {
    return [];
  }
}

function endOf(
  { use, subject, notAfter }: Pick<CertificateExpiry, 'use' | 'subject' | 'notAfter'>,
  now: number,
  near: number,
): Finding {
  const days = Math.floor((notAfter - now) / DAY);
  // A rollover leaves its issuers behind.
  const expired = use === 'renewal_issuer' || use === 'client_issuer' ? 'warning' : 'failed';
  const status = days < 0 ? expired : days < near ? 'warning' : 'ok';
  return finding('certificate', status, `${use} ${subject}: expires ${new Date(notAfter).toISOString()}`);
}

/** The certificate that the server issues to itself and renews. The first start creates it. */
async function automatic(config: Config, now: number): Promise<Finding[]> {
  if (config.tls.automatic === undefined) return [];
  const path = serverCertificateFile(config);
  if (!existsSync(path)) return [finding('certificate', 'ok', `tls.automatic: the first start creates ${path}`)];
  try {
    const [{ subject, notAfter }] = await readCertificates(path);
    return [endOf({ use: 'tls', subject: formatName(subject), notAfter: notAfter.getTime() }, now, 0)];
  } catch (error) {
    return [
      finding('certificate', 'failed', `tls.automatic: ${describe(error)}. Delete it: the server creates another`),
    ];
  }
}

async function cas(loaded: LoadedService, now: number): Promise<Finding[]> {
  return (await contactCas(loaded, now)).map(({ label, health, detail = 'usable', advice }) => {
    const status = health === 'ok' ? 'ok' : health === 'degraded' ? 'warning' : 'failed';
    return finding('ca', status, `${label}: ${detail}${advice === undefined ? '' : `: ${advice}`}`);
  });
}

const READY = Type.Object({
  message: Type.Optional(Type.String()),
  parts: Type.Optional(Type.Record(Type.String(), Type.String())),
});
/** A listener on every address is reached at the loopback. */
const EVERY: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': 'localhost' };
/** Milliseconds. */
const ANSWER_WITHIN = 10_000;

/** What the running server says of itself, such as of its log and its store's files; without one, nothing. */
async function running({ admin: { host, port } }: Pick<Config, 'admin'>): Promise<Finding[]> {
  const { promise, resolve } = Promise.withResolvers<Finding[]>();
  const unknown = (reason: string): void => resolve([finding('server', 'warning', `its state is unknown: ${reason}`)]);
  // The certificate is not checked: it need not name the loopback, and the answer is trusted with nothing.
  request(
    { host: EVERY[host] ?? host, port, path: '/readyz', rejectUnauthorized: false, timeout: ANSWER_WITHIN },
    (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', (error) => unknown(error.message));
      answer.on('end', () => {
        try {
          const body: unknown = JSON.parse(Buffer.concat(parts).toString());
          resolve(Check(READY, body) ? stateOf(answer.statusCode === 200, body) : []);
        } catch (error) {
          unknown(describe(error));
        }
      });
    },
  )
    .on('timeout', () => unknown(`no answer within ${ANSWER_WITHIN / 1000} s`))
    .on('error', (error) => {
      if ('code' in error && error.code === 'ECONNREFUSED') resolve([]);
      else unknown(error.message);
    })
    .end();
  return promise;
}

function stateOf(isReady: boolean, { message = 'not ready', parts = {} }: Type.Static<typeof READY>): Finding[] {
  if (!isReady) return [finding('server', 'failed', `${message}. Its log says why.`)];
  const bad = Object.entries(parts).filter(([, health]) => health !== 'ok');
  if (bad.length === 0) return [finding('server', 'ok', 'ready')];
  return bad.map(([part, health]) =>
    finding('server', 'warning', `${part} is ${health}. The log or /readyz says more.`),
  );
}

const services = async (loaded: LoadedService): Promise<Finding[]> =>
  (await contactServices(loaded)).map(({ name, where, problem }) =>
    finding(name, problem === undefined ? 'ok' : 'failed', `${where}: ${problem ?? 'usable'}`),
  );

/** Checks the database, the clock and the CRLs. */
function store({ store: { path }, audit: { file } }: Config, now: number): Finding[] {
  if (!existsSync(path)) return [finding('store', 'warning', `${path}: does not exist yet`)];
  const findings: Finding[] = [];
  for (const place of [path, dirname(path)]) {
    const { mode, gid } = statSync(place);
    const isOwnGroups = (mode & 0o007) === 0 && [process.getgid?.(), ...(process.getgroups?.() ?? [])].includes(gid);
    if ((mode & 0o077) === 0) continue;
    findings.push(
      isOwnGroups
        ? finding('permissions', 'warning', `${place} is accessible to the group of the service. Run chmod g-rwx.`)
        : finding('permissions', 'failed', `${place} is accessible to other users. Run chmod go-rwx.`),
    );
  }
  let db: Database.Database | undefined;
  try {
    db = openReadOnly(path);
    const damage = damageOf(db);
    findings.push(finding('store', damage === undefined ? 'ok' : 'failed', `${path}: ${damage ?? 'ok'}`));
    const head = db.prepare<[], ChainHead>('SELECT seq, hash FROM audit_head').get();
    if (head !== undefined) refuseBehind(file, head);
    const newest =
      db.prepare<[], { time: number }>('SELECT time FROM audit ORDER BY seq DESC LIMIT 1').get()?.time ?? 0;
    findings.push(
      newest > now + 60_000
        ? finding('clock', 'failed', `behind the newest audit record, of ${new Date(newest).toISOString()}`)
        : finding('clock', 'ok', new Date(now).toISOString()),
    );
    const lists = db.prepare<[], { ca: string; next_update: number }>(
      'SELECT ca, next_update FROM crl WHERE next_update IS NOT NULL',
    );
    for (const { ca, next_update: next } of lists.all())
      findings.push(
        finding('crl', next < now ? 'warning' : 'ok', `${ca}: next update ${new Date(next).toISOString()}`),
      );
  } catch (error) {
    findings.push(finding('store', 'failed', detailOf(error)));
  } finally {
    db?.close();
  }
  return findings;
}

async function audit(storePath: string, auditFile: string): Promise<Finding> {
  if (!existsSync(storePath)) {
    const isEmpty = (statSync(auditFile, { throwIfNoEntry: false })?.size ?? 0) === 0;
    const lost = `${auditFile} has records of a database that does not exist. Restore a backup with "estuary restore"`;
    return isEmpty ? finding('audit', 'warning', 'no records yet') : finding('audit', 'failed', lost);
  }
  return verifyAudit({ storePath, auditFile }).then(findingOf, (error: unknown) =>
    finding('audit', 'failed', `${storePath} and ${auditFile} cannot be compared: ${detailOf(error)}`),
  );
}

const findingOf = (verdict: AuditVerdict): Finding =>
  verdict.ok
    ? finding('audit', 'ok', `intact: ${verdict.records} records`)
    : finding('audit', 'failed', verdict.problem);
