/** `serve`: the server. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { checkGssapi } from '../../auth/gssapi/gssapi.ts';
import { driverOf } from '../../ca/drivers.ts';
import {
  checkFaults,
  ConfigError,
  type Fault,
  FilesError,
  findings,
  formatProblem,
  type Problem,
  type Warning,
} from '../../config/problem.ts';
import { type Environment, loadConfig, type LoadedService } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { codeOf, describe, EstuaryError, isUnavailable } from '../../errors.ts';
import { nearestFolder } from '../../folders.ts';
import { prepareHeapForRequests } from '../../process/heap.ts';
import { shareLookups } from '../../process/shared-lookups.ts';
import { checkDatabase } from '../../store/postgres/migrate.ts';
import { refuseUnusable } from '../../store/sqlite/database.ts';
import { describeTrouble, findKeyTrouble } from '../../store/sqlite/token-lookups.ts';
import { configuredCrlFaults } from '../live-settings.ts';
import { postgresServer } from '../open-store.ts';
import { ServiceSignals } from '../signals.ts';
import { type RunningService, startService } from '../start.ts';
import { type CommandContext, EXIT, UsageError, type Values } from './command.ts';
import { contactCas, contactServices } from './contact.ts';
import type { CHECK, SERVE } from './options.ts';

/** @throws ConfigError; FilesError for files that prevent a start */
export async function loadService(file: string, context: Pick<CommandContext, 'env' | 'now'>): Promise<LoadedService> {
  const { problems, ...loaded } = await loadDespite(file, context);
  if (problems.length > 0) throw new FilesError(file, findings([...problems, ...loaded.faults], loaded.config));
  return loaded;
}

/** {@link loadService}, next to problems with the database and with Kerberos. @throws as {@link loadService} otherwise */
export async function loadDespite(
  file: string,
  { env, now }: Pick<CommandContext, 'env' | 'now'>,
): Promise<LoadedService & { readonly problems: readonly Problem[] }> {
  const loaded = await loadConfig(file, env, now());
  const { config } = loaded;
  // Checks that need the optional libraries of the configuration.
  const gssapi = await checkGssapi({ config: config.gssapi, environment: env });
  if (gssapi.mistakes.length > 0) throw new ConfigError(file, findings(gssapi.mistakes, config));
  const problems = [...gssapi.problems, ...irregular(config), ...lookupKeyProblems(config, now())];
  const faults = [...loaded.faults, ...(await configuredCrlFaults(loaded.material, now()))];
  return { ...loaded, problems, faults, warnings: [...loaded.warnings, ...gssapi.warnings] };
}

/** {@link loadService} with the tokens and the database that a start would open. @throws as {@link loadService} */
async function loadWithTokens(file: string, context: CommandContext): Promise<LoadedService> {
  const loaded = await loadService(file, context);
  const tokens: readonly Fault[] = findings(await startProblems(loaded, context), loaded.config);
  return { ...loaded, faults: [...loaded.faults, ...tokens, ...storeProblems(loaded.config)] };
}

/** What would keep a start from opening the SQLite database. */
function storeProblems({ store, audit }: Config): Problem[] {
  if (store.driver === 'postgres') return [];
  try {
    refuseUnusable(store.path, audit.file);
    return [];
  } catch (error) {
    // Such as a folder in which this user cannot make the files that SQLite needs to read.
    if (isUnavailable(error) && codeOf(error.cause).startsWith('SQLITE_')) return [];
    const key = codeOf(error) === 'AUDIT_TAMPERED' ? 'audit.file' : 'store.path';
    return [{ key, message: describe(error) }];
  }
}

/**
 * Opens what the CAs depend on, such as tokens, as a start would. Shows warnings, and what the library of a token
 * prints.
 */
async function startProblems({ config, material }: LoadedService, context: CommandContext) {
  const warn = (_: object, message: string): void => context.err(`warning: ${message}\n`);
  const log = { info: () => undefined, warn, error: () => undefined };
  const opening = { ...context, retryAfter: config.est.retry_after, log };
  const found: Problem[] = [];
  for (const [index, ca] of material.cas.entries())
    if (ca.fault === undefined)
      found.push(...((await driverOf(ca.table).startProblems?.(ca, `ca[${index}]`, opening)) ?? []));
  return found;
}

/** The files that the server creates, and their keys. */
const ownFiles = ({ store, audit }: Config) => [
  ...(store.driver === 'sqlite' ? [{ key: 'store.path', path: store.path }] : []),
  { key: 'audit.file', path: audit.file },
];

/** What is in the place of the store or the audit file. */
function irregular(config: Config): Problem[] {
  return ownFiles(config).flatMap(({ key, path }) => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isFile()) return [];
    const message = `${path} is ${found.isDirectory() ? 'a folder' : 'not a regular file'} (a file, which the server creates)`;
    return [{ key, message }];
  });
}

/** What this user cannot write, but the service must: this user may be another one. */
function unwritable(config: Config): Warning[] {
  return ownFiles(config).flatMap(({ key, path }) => {
    try {
      for (const place of [nearestFolder(dirname(path)), path])
        if (existsSync(place)) accessSync(place, constants.W_OK);
      return [];
    } catch (error) {
      const reason = describe(error).replace('access', 'write to');
      return [{ key, message: `${reason} (a folder and a file that the user of the service can write)` }];
    }
  });
}

/** The tokens' lookup key belongs to the store, whose database identifies it. */
function lookupKeyProblems({ otp, store }: Config, now: number): Problem[] {
  // A remote database is checked at start.
  if (!otp.enabled || store.driver === 'postgres') return [];
  const key = 'otp.lookup_key';
  try {
    const trouble = findKeyTrouble(store.path, otp.lookup_key?.reveal(), now);
    if (trouble === undefined) return [];
    return [{ key, message: describeTrouble(trouble, store.path, otp.lookup_key !== undefined) }];
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return [{ key, message: describe(error) }];
  }
}

/** What does not answer; a start works without it. */
async function unanswering(loaded: LoadedService, now: number): Promise<Warning[]> {
  // Tokens are opened elsewhere.
  const cas = contactCas(loaded, now, ({ remote }) => remote !== undefined);
  const services = contactServices(loaded);
  return [
    ...(await cas).flatMap(({ label, detail, advice }) =>
      advice === undefined ? [] : [{ key: `ca[${label}]`, message: `${detail}: ${advice}` }],
    ),
    ...(await services).flatMap(({ key, where, problem }) =>
      problem === undefined ? [] : [{ key, message: `${where}: ${problem}` }],
    ),
  ];
}

type Checked = Pick<Values<typeof CHECK>, 'config' | 'offline'> & Partial<Values<typeof CHECK>>;

/** @throws ConfigError with every problem */
export async function checkConfiguration(
  { config: file, offline, fleet = false, against, json = false }: Checked,
  context: CommandContext,
): Promise<number> {
  if (fleet) return (await import('./check-fleet.ts')).runFleetCheck({ config: file, against, json }, context);
  if (against !== undefined || json) throw new UsageError('--against and --json need --fleet');
  const loaded = await loadWithTokens(file, context);
  const { config, material, warnings, faults } = loaded;
  const warn = (key: string, message: string): void =>
    context.err(`${formatProblem(file, { key, message: `warning: ${message}` })}\n`);
  const unanswered = offline ? [] : await unanswering(loaded, context.now());
  for (const { key, message } of [...warnings, ...unwritable(config), ...unanswered]) warn(key, message);
  for (const { key, message } of checkFaults(file, faults)) warn(key, message);
  if (config.store.driver === 'postgres' && !offline)
    try {
      await checkDatabase(postgresServer(config, material));
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      const message = `${describe(error)} (a reachable database; --offline skips this check)`;
      if (!isUnavailable(error)) throw new FilesError(file, findings([{ key: 'store.url', message }], config));
      warn('store.url', message);
    }
  context.out(`${file}: the configuration is valid\n`);
  return EXIT.ok;
}

/** What systemd learns (`Type=notify`): dependent units start after the listeners, and a wait needs time. */
const READY = ['--ready', '--status=serving'];
const WAITS = ['--status=waiting for the database', 'EXTEND_TIMEOUT_USEC=60000000'];

/**
 * Resolves once the service manager was notified or that failed; immediately without one. Node.js has no Unix datagram
 * sockets, so systemd-notify sends the message.
 * @param warn receives the reason of a failure
 */
function notifyManager(message: readonly string[], env: Environment, warn: (reason: string) => void): Promise<void> {
  const { NOTIFY_SOCKET, PATH } = env;
  if (NOTIFY_SOCKET === undefined) return Promise.resolve();
  return new Promise((resolve) => {
    const options = { env: { NOTIFY_SOCKET, PATH }, timeout: 30_000 };
    execFile('systemd-notify', [...message], options, (error) => {
      if (error !== null) warn(`systemd-notify: ${error.message}`);
      resolve();
    });
  });
}

/** Resolves with the exit code when the server is up or failed to start. @throws ConfigError */
export async function serve(
  { config: configFile, check: checkOnly, offline }: Values<typeof SERVE>,
  context: CommandContext,
): Promise<number> {
  if (checkOnly) {
    context.signals.release();
    return checkConfiguration({ config: configFile, offline }, context);
  }
  prepareHeapForRequests();
  const up = Promise.withResolvers<RunningService>();
  const control = new ServiceSignals(context.signals, up.promise, (error) => {
    if (error !== undefined) context.err(`estuary: ${describe(error)}\n`);
    process.exit(error === undefined ? EXIT.ok : EXIT.failed);
  });
  try {
    // The start itself logs warnings.
    const loaded = await loadService(configFile, context);
    // Nothing is open yet.
    if (control.stopping) return EXIT.ok;
    shareLookups();
    const warn = (reason: string): void => context.err(`estuary: cannot notify the service manager: ${reason}\n`);
    const onWait = (): void => void notifyManager(WAITS, process.env, warn);
    const service = await startService({ ...loaded, configFile, stopping: control.requested, onWait });
    up.resolve(service);
    void service.failure.then((reason) => control.stop(reason));
    await notifyManager(READY, process.env, warn);
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ConfigError && !error.isOfFiles) throw error;
    if (control.stopping) return process.exit(EXIT.ok);
    context.err(error instanceof ConfigError ? `${error.message}\n` : `estuary: could not start: ${describe(error)}\n`);
    return process.exit(EXIT.failed);
  }
}
