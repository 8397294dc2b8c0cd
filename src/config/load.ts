import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode } from './secret.ts';
import { loadMaterial } from './material/load-material.ts';
import type { Material } from './material/material.ts';
import { findings } from './findings.ts';
import { ConfigError, isTable, parseToml, type Problem, type Table, type Warning } from './problem.ts';
import { readDocument } from './read.ts';
import { isRemoteDriver } from './schema/ca.ts';
import { asConfig, configSchema } from './schema.ts';
import type { Config } from './schema.ts';
import { endedTokens } from './rules/admin.ts';
import { crossChecks } from './rules/index.ts';

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly Warning[];
}

/** With what stands in the files that it names. */
export interface LoadedService extends LoadedConfig {
  readonly material: Material;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks a configuration file: syntax, keys, values, secrets, what concerns several keys,
 * and the certificates and keys that it names.
 *
 * @param file path as the operator gave it; it stands before every problem
 * @param now milliseconds since the epoch, for the validity of certificates
 * @throws {@link ConfigError} with every problem there is
 */
export async function loadConfig(file: string, env: Environment, now = Date.now()): Promise<LoadedService> {
  const { config, problems, warnings, named } = await read(file, env);
  const loaded = await loadMaterial(config, now);
  const all = [...problems, ...unreported(loaded.problems, problems)];
  if (all.length > 0 || loaded.material === undefined) throw new ConfigError(file, named(all));
  return {
    config,
    material: loaded.material,
    warnings: named([...warnings, ...endedTokens(config, now), ...loaded.warnings]),
  };
}

/**
 * As {@link loadConfig}, but for the certificates and keys that it names: they need not be there.
 *
 * @throws {@link ConfigError} with every problem there is
 */
export async function loadConfigOnly(file: string, env: Environment): Promise<LoadedConfig> {
  const { config, problems, warnings, named } = await read(file, env);
  if (problems.length > 0) throw new ConfigError(file, named(problems));
  return { config, warnings: named(warnings) };
}

interface Read extends LoadedConfig {
  readonly problems: readonly Problem[];
  /** What was found, each once, with the labels of the tables in it. */
  readonly named: (found: readonly Problem[]) => readonly Problem[];
}

async function read(file: string, env: Environment): Promise<Read> {
  const parsed = parseToml(await readText(file));
  if ('problem' in parsed) throw new ConfigError(file, [parsed.problem]);
  const document = await readDocument(configSchema, withDerivedDefaults(parsed.document), {
    folder: dirname(resolve(file)),
    env,
  });
  const config = asConfig(document.value);
  const { problems, warnings } = crossChecks(config);
  const reported = [...document.problems, ...givenInVain(parsed.document)];
  const named = (found: readonly Problem[]) => findings(found, parsed.document);
  return { config, problems: [...reported, ...unreported(problems, reported)], warnings, named };
}

/** What the document alone shows, because the key has a default: a file is named that a database elsewhere has no use for. */
function givenInVain({ store }: Table): Problem[] {
  if (!isTable(store) || store['driver'] !== 'postgres' || store['path'] === undefined) return [];
  return [{ key: 'store.path', message: 'goes with driver = "sqlite" (driver is "postgres" here)' }];
}

function withDerivedDefaults(document: Table): Table {
  return withoutBackdating(withAdminMode(document));
}

/** With `profile = "niap"` no certificate is backdated; Dogtag decides for itself. */
function withoutBackdating(document: Table): Table {
  if (document['profile'] !== 'niap') return document;
  const lists = ['ca', 'label'].flatMap((name) => {
    const list = document[name];
    return Array.isArray(list) ? [[name, list.map(exactUnlessRemote)] as const] : [];
  });
  return { ...document, ...Object.fromEntries(lists) };
}

const exactUnlessRemote = (one: unknown): unknown =>
  isTable(one) && !isRemoteDriver(String(one['driver'])) ? exact(one) : one;

function exact(ca: Table): Table {
  const profile = ca['profile'] ?? {};
  return isTable(profile) ? { ...ca, profile: { backdate_seconds: 0n, ...profile } } : ca;
}

/** `admin.tls.mode` is `required` where trust anchors stand without a mode: they are there to be used. */
function withAdminMode(document: Table): Table {
  const admin = document['admin'];
  const tls = isTable(admin) ? admin['tls'] : undefined;
  if (!isTable(admin) || !isTable(tls) || tls['mode'] !== undefined || tls['trust_anchors'] === undefined)
    return document;
  return { ...document, admin: { ...admin, tls: { ...tls, mode: 'required' } } };
}

async function readText(file: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    const reason = error instanceof TypeError ? 'is not UTF-8' : `cannot be read: ${errorCode(error)}`;
    throw new ConfigError(file, [{ key: '', message: `${reason} (a TOML document)` }]);
  }
}

/** Checks across keys also see what stands in for a wrong value: their findings on keys already reported are dropped. */
function unreported(
  found: readonly (Problem & { readonly about?: readonly string[] })[],
  reported: readonly Problem[],
) {
  const keys = new Set(reported.flatMap(({ key }) => [key, key.replace(/_(file|env)$/, '')]));
  return found
    .filter(({ key, about = [] }) => ![key, ...about].some((one) => around(one).some((other) => keys.has(other))))
    .map(({ key, message }): Problem => ({ key, message }));
}

/** The key itself, and all that it lies in. */
function around(key: string): string[] {
  return [key, ...Array.from(key.matchAll(/[.[]/g), ({ index }) => key.slice(0, index))];
}
