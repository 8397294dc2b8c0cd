/** Profiles of `estuary admin`: which server, and as whom, by a name. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { nearest } from '../../../config/nearest.ts';
import { UsageError, type CommandContext } from '../command.ts';

const KEYS = ['url', 'token_file', 'cert', 'key', 'ca', 'est_url'] as const;
const FILES: readonly string[] = ['token_file', 'cert', 'key', 'ca'];

/** Files are absolute. */
export type Profile = { readonly [K in (typeof KEYS)[number]]?: string };

/** Where profiles are looked for. */
export function profileFile({ env }: Pick<CommandContext, 'env'>): string {
  const config = env['XDG_CONFIG_HOME'];
  const folder = config === undefined || config === '' ? join(homeOf(env), '.config') : config;
  return join(folder, 'estuary', 'admin.toml');
}

const homeOf = (env: CommandContext['env']): string => env['HOME'] ?? homedir();

/**
 * @param name undefined: the one that the file names as `default`, or the one of this name; none is no failure then
 * @throws UsageError: there is none of this name, or the file is wrong
 */
export async function readProfile(
  name: string | undefined,
  context: Pick<CommandContext, 'env'>,
): Promise<Profile | undefined> {
  const file = profileFile(context);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (!isMissing(error)) throw new UsageError(`${file} cannot be read: ${String(error)}`);
    if (name === undefined) return undefined;
    throw new UsageError(`there is no profile "${name}": ${file} is not there`);
  }
  const { profiles, standard } = read(file, await parse(file, text));
  const wanted = name ?? standard ?? 'default';
  const found = profiles.get(wanted);
  if (found === undefined && (name ?? standard) === undefined) return undefined;
  if (found === undefined)
    throw new UsageError(`${file} has no profile "${wanted}" (it has ${[...profiles.keys()].join(', ') || 'none'})`);
  return absolute(found, dirname(file), homeOf(context.env));
}

async function parse(file: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const { parse: parseToml } = await import('smol-toml');
  try {
    return parseToml(text);
  } catch (error) {
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function read(file: string, table: Readonly<Record<string, unknown>>) {
  const { default: standard, profiles = {}, ...others } = table;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new UsageError(`${file}: ${unknown}: unknown key (there are "default" and tables [profiles.NAME])`);
  if (standard !== undefined && typeof standard !== 'string')
    throw new UsageError(`${file}: default: must be the name of a profile`);
  if (!isTable(profiles)) throw new UsageError(`${file}: profiles: must be tables [profiles.NAME]`);
  const read = Object.entries(profiles).map(([name, profile]) => [name, readOne(file, name, profile)] as const);
  return { standard, profiles: new Map(read) };
}

function readOne(file: string, name: string, table: unknown): Profile {
  if (!isTable(table)) throw new UsageError(`${file}: profiles.${name}: must be a table`);
  for (const [key, value] of Object.entries(table)) {
    if (key === 'token')
      throw new UsageError(`${file}: profiles.${name}.token: a token has a file of its own (token_file)`);
    if (!KEYS.some((known) => known === key))
      throw new UsageError(
        `${file}: profiles.${name}.${key}: unknown key (the nearest known one is "${nearest(key, KEYS) ?? ''}")`,
      );
    if (typeof value !== 'string' || value === '')
      throw new UsageError(`${file}: profiles.${name}.${key}: must be a text`);
  }
  return table;
}

const isTable = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A relative path is one from the folder of the file. */
function absolute(profile: Profile, folder: string, home: string): Profile {
  return Object.fromEntries(
    Object.entries(profile).map(([key, value]) => [
      key,
      FILES.includes(key) ? resolve(folder, value.replace(/^~(?=\/)/, home)) : value,
    ]),
  );
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
