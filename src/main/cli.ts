/** Flags and exit codes of the command; what it runs is in start.ts, what signals do in signals.ts. */
import cluster from 'node:cluster';
import { parseArgs } from 'node:util';
import { verifyAudit } from '../audit/verify.ts';
import { checkGssapi } from '../auth/gssapi/gssapi.ts';
import { tokenProblems } from '../ca/pkcs11/check.ts';
import { caInit } from './commands/ca-init.ts';
import type { CommandContext } from './commands/ca-init.ts';
import { loadConfig, loadConfigOnly } from '../config/load.ts';
import type { LoadedConfig, LoadedService } from '../config/load.ts';
import { ConfigError, formatProblem, type Problem } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { describe, EstuaryError } from '../errors.ts';
import { describeTrouble, findKeyTrouble } from '../store/sqlite/token-lookups.ts';
import { startService, startWorker } from './start.ts';
import type { RunningService } from './running-service.ts';
import { ServiceSignals, type Signals } from './signals.ts';
import { VERSION } from '../version.ts';

/** Contract §1: clean stop · could not start or died · configuration refused. */
const EXIT = { ok: 0, failed: 1, refused: 2 } as const;

const HELP = `Estuary, an EST (RFC 7030) server

usage:
  estuary --config FILE                 start the server
  estuary --config FILE --check         check the configuration, its files and certificates, and stop
  estuary ca init --config FILE --ca L  make a CA in a PKCS#11 token (ca init --help)
  estuary audit verify --config FILE    check the hash chain of the audit log
  estuary --version
  estuary --help

exit codes: 0 stopped cleanly or nothing found, 1 could not start, died or found a broken audit log,
            2 configuration refused
signals:    SIGTERM, SIGINT stop; SIGHUP reads certificates, keys, trust anchors, CRLs and tokens again
`;

/** Runs the command. Sets the exit code; returns once the server is up, or the command is done. */
export async function main(args: readonly string[], signals: Signals): Promise<void> {
  const command = parseCommand(args);
  // Any command but the server's is ended by a signal like any program.
  if (typeof command === 'string' || command.name !== 'start') signals.release();
  if (args[0] === 'ca' && args[1] === 'init') {
    process.exitCode = await caInit(args.slice(2), commandContext());
    return;
  }
  if (typeof command === 'string') {
    process.stderr.write(`estuary: ${command}\nestuary --help tells what there is.\n`);
    process.exitCode = EXIT.failed;
    return;
  }
  switch (command.name) {
    case 'help':
      process.stdout.write(HELP);
      return;
    case 'version':
      process.stdout.write(`estuary ${VERSION}\n`);
      return;
    case 'start':
      process.exitCode = await start(command.config, signals);
      return;
    case 'check':
    case 'verify':
      process.exitCode = await withConfig(command.name, command.config);
  }
}

const commandContext = (): CommandContext => ({
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  now: Date.now,
});

type Action = 'start' | 'check' | 'verify';
type Command =
  { readonly name: 'help' | 'version'; readonly config?: never } | { readonly name: Action; readonly config: string };

const OPTIONS = {
  config: { type: 'string' },
  check: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** The command, or a sentence why it is none. */
function parseCommand(args: readonly string[]): Command | string {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    return describe(error);
  }
  const { values, positionals } = parsed;
  if (values.help === true) return { name: 'help' };
  if (values.version === true) return { name: 'version' };
  const words = positionals.join(' ');
  if (words !== '' && words !== 'audit verify') return `there is no command "${words}"`;
  if (words !== '' && values.check === true) return '--check does not go with "audit verify"';
  if (values.config === undefined || values.config === '') return '--config FILE is missing';
  const name = words === '' ? (values.check === true ? 'check' : 'start') : 'verify';
  return { name, config: values.config };
}

/** Reads the configuration and does what was asked for. Resolves with the exit code. */
async function withConfig(action: 'check' | 'verify', file: string): Promise<number> {
  // The audit log has to be verifiable on a machine that holds none of the keys.
  const loaded = await unlessRefused(action === 'verify' ? loadConfigOnly(file, process.env) : load(file));
  if (loaded === undefined) return EXIT.refused;
  return action === 'check' ? check(file, loaded) : verify(loaded);
}

/** @throws ConfigError with everything that keeps it from starting */
async function load(file: string): Promise<LoadedService> {
  const loaded = await loadConfig(file, process.env);
  await checkLibraries(file, loaded);
  return loaded;
}

/** undefined: the configuration is refused, and stderr has the problems. */
async function unlessRefused<T>(loading: Promise<T>): Promise<T | undefined> {
  try {
    return await loading;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return undefined;
  }
}

/** What only the libraries that the configuration needs can tell about it. */
async function checkLibraries(file: string, { config, material }: LoadedService): Promise<void> {
  const problems = [
    ...(await checkGssapi({ config: config.gssapi, environment: process.env })),
    ...(await tokenProblems(config, material.cas, { env: process.env, now: Date.now })),
    ...lookupKeyProblems(config),
  ];
  if (problems.length > 0) throw new ConfigError(file, problems);
}

/** The key of the tokens' lookups belongs to the store, whose database says which it is. */
function lookupKeyProblems({ otp, store }: Config): Problem[] {
  if (!otp.enabled) return [];
  const key = 'otp.lookup_key';
  try {
    const trouble = findKeyTrouble(store.path, otp.lookup_key?.reveal(), Date.now());
    if (trouble === undefined) return [];
    return [{ key, message: describeTrouble(trouble, store.path, otp.lookup_key !== undefined) }];
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return [{ key, message: describe(error) }];
  }
}

function check(file: string, { warnings }: LoadedConfig): number {
  for (const { key, message } of warnings)
    process.stderr.write(`${formatProblem(file, { key, message: `warning: ${message}` })}\n`);
  process.stdout.write(`${file}: the configuration is valid\n`);
  return EXIT.ok;
}

async function verify({ config }: LoadedConfig): Promise<number> {
  const verdict = await verifyAudit({ storePath: config.store.path, auditFile: config.audit.file });
  if (verdict.ok) {
    const archived = verdict.archived === undefined ? '' : `, and ${verdict.archived} before them are archived`;
    process.stdout.write(`the audit log is whole: ${verdict.records} records${archived}\n`);
    return EXIT.ok;
  }
  const place = verdict.seq === null ? 'the audit log' : `audit record ${verdict.seq}`;
  process.stderr.write(`${place} is broken: ${verdict.problem}\n`);
  return EXIT.failed;
}

/** Starts the server; resolves with the exit code when it is up, or will not be. */
async function start(configFile: string, signals: Signals): Promise<number> {
  const up = Promise.withResolvers<RunningService>();
  const control = new ServiceSignals(signals, up.promise, (error) => {
    if (error !== undefined) process.stderr.write(`estuary: ${describe(error)}\n`);
    process.exit(error === undefined ? EXIT.ok : EXIT.failed);
  });
  try {
    if (cluster.isWorker) {
      up.resolve(await startWorker());
      return EXIT.ok;
    }
    const loaded = await unlessRefused(load(configFile));
    if (loaded === undefined) return EXIT.refused;
    // Nothing is open yet.
    if (!control.stopping) up.resolve(await startService({ ...loaded, configFile }));
    return EXIT.ok;
  } catch (error) {
    process.stderr.write(`estuary: could not start: ${describe(error)}\n`);
    // Whoever asked for the end has it: the same signal may have ended a worker before it was up.
    process.exit(control.stopping ? EXIT.ok : EXIT.failed);
  }
}
