import { isUtf8 } from 'node:buffer';
import { dirname, resolve } from 'node:path';
import { DRIVERS } from '../ca/drivers.ts';
import { withoutUnusable } from './diff.ts';
import { readContent } from './content.ts';
import { errorCode } from './secret.ts';
import { loadMaterial } from './material/load-material.ts';
import { FileMemory, type Material, memoryIds } from './material/material.ts';
import {
  ConfigError,
  type Fault,
  FilesError,
  findings,
  isOfServer,
  isTable,
  keysWithLabels,
  type Problem,
  type Table,
  type Warning,
} from './problem.ts';
import { readDocument } from './read.ts';
import { parseToml } from './toml.ts';
import { asConfig, configSchema } from './schema.ts';
import type { Config } from './schema.ts';
import { expiredTokens } from './rules/admin.ts';
import { crossChecks } from './rules/index.ts';

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly Warning[];
}

/** With the content of the files that it names. */
export interface LoadedService extends LoadedConfig {
  readonly material: Material;
  /** Files and certificates that cannot be used; they stop only what needs them. */
  readonly faults: readonly Fault[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks a configuration file: syntax, keys, values, secrets, cross-key rules, and the named certificates and
 * keys.
 * @param file path as the operator gave it, which prefixes every problem
 * @param before what is in force, for a reload
 * @throws {@link ConfigError} with every problem; {@link FilesError} if only files prevent a start
 */
export async function loadConfig(
  file: string,
  env: Environment,
  now = Date.now(),
  before?: Pick<LoadedService, 'config' | 'material'>,
): Promise<LoadedService> {
  const memory = new FileMemory();
  const former = before?.material.memory;
  const { problems, faults, warnings, named, ...made } = await read(file, env, memory, former);
  let { config } = made;
  let loaded = await loadMaterial(config, now, former, faults);
  const all = [...problems, ...unreported(loaded.problems, problems)];
  let found = unreported(loaded.faults, problems);
  if (all.length > 0) throw new ConfigError(file, named([...all, ...found]));
  if (loaded.material === undefined && before !== undefined) {
    const unusable = found.filter(isOfServer);
    config = withoutUnusable(
      before.config,
      config,
      unusable.map(({ key }) => key),
    );
    for (const [id, secret] of before.material.memory.secrets)
      if (!memory.secrets.has(id)) memory.secrets.set(id, secret);
    loaded = await loadMaterial(
      config,
      now,
      former,
      faults.filter((fault) => !isOfServer(fault)),
    );
    const effect = 'what needs it stays as it was';
    found = [...unusable.map((fault) => ({ ...fault, effect })), ...loaded.faults];
  }
  if (loaded.material === undefined) throw new FilesError(file, named(found));
  for (const [id, secret] of memory.secrets) loaded.material.memory.secrets.set(id, secret);
  return {
    config,
    material: loaded.material,
    faults: named(found),
    warnings: named([...warnings, ...expiredTokens(config, now), ...loaded.warnings]),
  };
}

/**
 * {@link loadConfig} without the named certificates and keys, which need not exist.
 * @throws {@link ConfigError} with every problem
 */
export async function loadConfigOnly(file: string, env: Environment): Promise<LoadedConfig> {
  const { config, problems, faults, warnings, named } = await read(file, env);
  if (problems.length > 0) throw new ConfigError(file, named([...problems, ...faults]));
  if (faults.length > 0) throw new FilesError(file, named(faults));
  return { config, warnings: named(warnings) };
}

interface Read extends LoadedConfig {
  readonly problems: readonly Problem[];
  /** Secrets that cannot be read. */
  readonly faults: readonly Fault[];
  /** Deduplicates findings and adds table labels. */
  readonly named: <Found extends Problem>(found: readonly Found[]) => Found[];
}

async function read(
  file: string,
  env: Environment,
  memory = new FileMemory(),
  before = new FileMemory(),
): Promise<Read> {
  const parsed = parseToml(await readText(file));
  if ('problem' in parsed) throw new ConfigError(file, [parsed.problem]);
  const labeled = keysWithLabels(parsed.document);
  const document = await readDocument(configSchema, withoutBackdating(withAdminMode(parsed.document)), {
    folder: dirname(resolve(file)),
    env,
    secretBefore: (key, path) =>
      memoryIds(labeled(key), path)
        .map((id) => before.secrets.get(id))
        .find((secret) => secret !== undefined),
    keepSecret: (key, path, secret) => {
      for (const id of memoryIds(labeled(key), path)) memory.secrets.set(id, secret);
    },
  });
  const config = asConfig(document.value);
  const { problems, warnings } = crossChecks(config);
  const reported = [...document.problems, ...unusedFileKeys(parsed.document)];
  const named = <Found extends Problem>(found: readonly Found[]) => findings(found, parsed.document);
  const known = [...reported, ...document.faults.filter(({ isKept }) => isKept !== true)];
  return {
    config,
    problems: [...reported, ...unreported(problems, known).map(({ key, message }) => ({ key, message }))],
    faults: document.faults,
    warnings: [...warnings, ...unexpanded(parsed.document)],
    named,
  };
}

/** Paths that a shell would expand. The document shows them as they were written. */
function unexpanded({ store, audit }: Table): Warning[] {
  const paths = { 'store.path': isTable(store) && store['path'], 'audit.file': isTable(audit) && audit['file'] };
  return Object.entries(paths).flatMap(([key, text]) => {
    if (typeof text !== 'string' || !/^~|\$/.test(text)) return [];
    return [{ key, message: `${JSON.stringify(text)} is used as it is: ~ and $ are not expanded (a complete path)` }];
  });
}

/** Detects file keys that PostgreSQL does not use; only the document shows them, because they have defaults. */
function unusedFileKeys({ store }: Table): Problem[] {
  if (!isTable(store) || store['driver'] !== 'postgres' || store['path'] === undefined) return [];
  return [{ key: 'store.path', message: 'requires driver = "sqlite" (driver is "postgres")' }];
}

/** `profile = "niap"` turns backdating off, except for Dogtag, which decides itself. */
function withoutBackdating(document: Table): Table {
  if (document['profile'] !== 'niap') return document;
  const lists = ['ca', 'label'].flatMap((name) => {
    const list = document[name];
    return Array.isArray(list) ? [[name, list.map(exactUnlessRemote)] as const] : [];
  });
  return { ...document, ...Object.fromEntries(lists) };
}

function exactUnlessRemote(ca: unknown): unknown {
  if (!isTable(ca) || DRIVERS.some(({ name, remote }) => name === ca['driver'] && remote !== undefined)) return ca;
  const { profile = {} } = ca;
  return isTable(profile) ? { ...ca, profile: { backdate_seconds: 0n, ...profile } } : ca;
}

/** `admin.tls.mode` defaults to `required` if trust anchors are given. */
function withAdminMode(document: Table): Table {
  const admin = document['admin'];
  const tls = isTable(admin) ? admin['tls'] : undefined;
  if (!isTable(admin) || !isTable(tls) || tls['mode'] !== undefined || tls['trust_anchors'] === undefined)
    return document;
  return { ...document, admin: { ...admin, tls: { ...tls, mode: 'required' } } };
}

async function readText(file: string): Promise<string> {
  const refused = (reason: string, line?: number): ConfigError =>
    new ConfigError(file, [{ key: '', message: `${reason} (a TOML document)`, ...(line && { line }) }]);
  const bytes = await readContent(file).catch((error: unknown) => {
    throw refused(`cannot be read: ${errorCode(error)}`);
  });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    if (/^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2))) throw refused('is UTF-16: save it as UTF-8');
    const lines = bytes.toString('latin1').split('\n');
    const at = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1')));
    throw refused('this line is not UTF-8: save the file as UTF-8', at + 1);
  }
}

/** Drops cross-key findings about keys that are already reported: the checks saw default values for them. */
function unreported<Found extends Problem & { readonly about?: readonly string[] }>(
  found: readonly Found[],
  reported: readonly Problem[],
): Found[] {
  const keys = new Set(reported.flatMap(({ key }) => [key, key.replace(/_(file|env)$/, '')]));
  // A key, and the tables and lists around it.
  const around = (key: string): string[] => [
    key,
    ...Array.from(key.matchAll(/[.[]/g), ({ index }) => key.slice(0, index)),
  ];
  return found.filter(({ key, about = [] }) => ![key, ...about].flatMap(around).some((known) => keys.has(known)));
}
