/** A configuration for administrators: every key with a value, without secrets. */
import { IsArray, type TSchema } from 'typebox';
import { keysOf, notes, tableOf } from './keys.ts';
import { isTable, keysWithLabels } from './problem.ts';
import { configSchema, type Config } from './schema.ts';
import { Secret } from './secret.ts';

export interface ShownKey {
  /** As in messages and reload results: `ca[devices].profile.validity_days`. */
  readonly key: string;
  /** A string, number, boolean or list; {@link HIDDEN} for a secret. */
  readonly value: unknown;
  /** A reload applies a change. */
  readonly live: boolean;
}

export const HIDDEN = '[secret]';

/** In the schema's order; omits absent keys without a default. */
export function shownConfig(config: Config): ShownKey[] {
  const named = keysWithLabels(config);
  return walk(configSchema, config, '', false).map((setting) => ({ ...setting, key: named(setting.key) }));
}

function walk(schema: TSchema, value: unknown, key: string, isLive: boolean): ShownKey[] {
  if (value === undefined) return [];
  const live = isLive || (key !== '' && notes(schema).live === true);
  if (value instanceof Secret) return [{ key, value: HIDDEN, live }];
  const table = tableOf(schema, value);
  if (table !== undefined && isTable(value))
    return keysOf(table).flatMap(([name, child]) =>
      walk(child, value[name], key === '' ? name : `${key}.${name}`, live),
    );
  if (IsArray(schema) && Array.isArray(value) && value.some((element) => isTable(element) || element instanceof Secret))
    return value.flatMap((item: unknown, index) => walk(schema.items, item, `${key}[${index}]`, live));
  return [{ key, value: notes(schema).sensitive === true ? HIDDEN : withoutSecrets(value), live }];
}

/** Hides secrets in other values: a password in a URL, a secret in a table with arbitrary keys. */
function withoutSecrets(value: unknown): unknown {
  if (value instanceof Secret) return HIDDEN;
  if (typeof value === 'string') return value.replace(/(\/\/[^/@\s:]*):[^/@\s]*@/g, `$1:${HIDDEN}@`);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutSecrets(inner)]));
}
