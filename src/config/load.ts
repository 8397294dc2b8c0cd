import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { DRIVERS } from '../ca/drivers.ts';
import { errorCode } from './secret.ts';
import { loadMaterial } from './material/load-material.ts';
import type { Material } from './material/material.ts';
import { ConfigError, findings, isTable, parseToml, type Problem, type Table, type Warning } from './problem.ts';
import { readDocument } from './read.ts';
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
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks a configuration file: syntax, keys, values, secrets, cross-key rules, and the named certificates and
 * keys.
 * @param file path as the operator gave it, which prefixes every problem
 * @throws {@link ConfigError} with every problem
 */
export async function loadConfig(file: string, env: Environment, now = Date.now()): Promise<LoadedService> {
  const { config, problems, warnings, named } = await read(file, env);
  const loaded = await loadMaterial(config, now);
  const all = [...problems, ...unreported(loaded.problems, problems)];
  if (all.length > 0 || loaded.material === undefined) throw new ConfigError(file, named(all));
  return {
    config,
    material: loaded.material,
    warnings: named([...warnings, ...expiredTokens(config, now), ...loaded.warnings]),
  };
}

/**
 * {@link loadConfig} without the named certificates and keys, which need not exist.
 * @throws {@link ConfigError} with every problem
 */
export async function loadConfigOnly(file: string, env: Environment): Promise<LoadedConfig> {
  const { config, problems, warnings, named } = await read(file, env);
  if (problems.length > 0) throw new ConfigError(file, named(problems));
  return { config, warnings: named(warnings) };
}

interface Read extends LoadedConfig {
  readonly problems: readonly Problem[];
  /** Deduplicates findings and adds table labels. */
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
  const reported = [...document.problems, ...unusedFileKeys(parsed.document)];
  const named = (found: readonly Problem[]) => findings(found, parsed.document);
  return { config, problems: [...reported, ...unreported(problems, reported)], warnings, named };
}

/** Detects file keys that PostgreSQL does not use; only the document shows them, because they have defaults. */
function unusedFileKeys({ store }: Table): Problem[] {
  if (!isTable(store) || store['driver'] !== 'postgres' || store['path'] === undefined) return [];
  return [{ key: 'store.path', message: 'requires driver = "sqlite" (driver is "postgres")' }];
}

function withDerivedDefaults(document: Table): Table {
  return withoutBackdating(withAdminMode(document));
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

const exactUnlessRemote = (one: unknown): unknown =>
  isTable(one) && !DRIVERS.some(({ name, remote }) => name === one['driver'] && remote !== undefined)
    ? exact(one)
    : one;

function exact(ca: Table): Table {
  const profile = ca['profile'] ?? {};
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
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    const reason = error instanceof TypeError ? 'is not UTF-8' : `cannot be read: ${errorCode(error)}`;
    throw new ConfigError(file, [{ key: '', message: `${reason} (a TOML document)` }]);
  }
}

/** Drops cross-key findings about keys that are already reported: the checks saw default values for them. */
function unreported(
  found: readonly (Problem & { readonly about?: readonly string[] })[],
  reported: readonly Problem[],
) {
  const keys = new Set(reported.flatMap(({ key }) => [key, key.replace(/_(file|env)$/, '')]));
  return found
    .filter(({ key, about = [] }) => ![key, ...about].some((one) => around(one).some((other) => keys.has(other))))
    .map(({ key, message }): Problem => ({ key, message }));
}

function around(key: string): string[] {
  return [key, ...Array.from(key.matchAll(/[.[]/g), ({ index }) => key.slice(0, index))];
}
