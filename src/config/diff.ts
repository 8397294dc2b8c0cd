import { IsArray, IsObject, IsUnion, type TObject, type TSchema } from 'typebox';
import { failed } from '../errors.ts';
import { isTable, keysWithLabels, type Warning } from './problem.ts';
import { keysOf, notes, tablesOf } from './keys.ts';
import type { CertificateExpiry } from './material/certificate-ends.ts';
import { crossChecks } from './rules/index.ts';
import { asConfig, type Config, configSchema } from './schema.ts';
import { isSameConfig } from './secret.ts';

export interface ReloadPlan {
  /** The settings in force after the reload: new values of live keys, old values of others. */
  readonly config: Config;
  /** Changed keys that apply at once. Excludes files that changed under the same path. */
  readonly live: readonly string[];
  /** Changed keys that need a restart. */
  readonly restart: readonly string[];
}

/**
 * Plans a reload (SIGHUP).
 * @throws EstuaryError 500 `CONFIG_RELOAD` if the live changes are inconsistent without those that need a restart
 */
export function planReload(before: Config, after: Config): ReloadPlan {
  const live: string[] = [];
  const restart: string[] = [];
  const config = asConfig(merge(configSchema, before, after, '', { live, restart }));
  const named = keysWithLabels(after);
  const [problem] = crossChecks(config).problems;
  if (problem !== undefined)
    throw failed('CONFIG_RELOAD', 'The changed configuration needs a restart.', {
      detail: named(`${problem.key}: ${problem.message}`),
    });
  return { config, live: live.map(named), restart: restart.map(named) };
}

type Changed = Readonly<Record<'live' | 'restart', string[]>>;

/** The value in force after the reload; appends the changed keys to `changed`. */
function merge(schema: TSchema, before: unknown, after: unknown, key: string, changed: Changed): unknown {
  if (isSameConfig(before, after)) return before;
  if (notes(schema).live === true) {
    changed.live.push(...changedWithin(schema, before, after, key));
    return after;
  }
  const table = tableOf(schema, before, after);
  if (table !== undefined && isTable(before) && isTable(after)) {
    const values = keysOf(table).map(([name, child]) => {
      const inner = key === '' ? name : `${key}.${name}`;
      return [name, merge(child, before[name], after[name], inner, changed)] as const;
    });
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }
  if (IsArray(schema) && isList(before) && isList(after) && before.length === after.length)
    return before.map((one, index) => merge(schema.items, one, after[index], `${key}[${index}]`, changed));
  changed.restart.push(key);
  return before;
}

/** The changed keys of a value that applies live as a whole, as deep as both sides have tables. */
function changedWithin(schema: TSchema, before: unknown, after: unknown, key: string): string[] {
  if (isSameConfig(before, after)) return [];
  const table = tableOf(schema, before, after);
  if (table !== undefined && isTable(before) && isTable(after))
    return keysOf(table).flatMap(([name, child]) => changedWithin(child, before[name], after[name], `${key}.${name}`));
  if (IsArray(schema) && isList(before) && isList(after) && before.length === after.length)
    return before.flatMap((one, index) => changedWithin(schema.items, one, after[index], `${key}[${index}]`));
  return [key];
}

function tableOf(schema: TSchema, before: unknown, after: unknown): TObject | undefined {
  if (IsObject(schema)) return schema;
  if (!IsUnion(schema) || !isTable(before) || !isTable(after)) return undefined;
  const { on = '' } = notes(schema);
  return before[on] === after[on] ? tablesOf(schema).get(String(before[on])) : undefined;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

export interface ReloadOrder {
  /** Reports what would change without changing it. */
  readonly dryRun: boolean;
  /** For the audit log; absent for a signal. */
  readonly by?: { readonly subject: string; readonly address: string; readonly request_id: string };
}

interface CertificateInForce extends CertificateExpiry {
  /** It was not in force before. */
  readonly isNew: boolean;
}

export interface ReloadReport {
  /** Changed keys that apply at once. */
  readonly changed: readonly string[];
  /** Changed keys that apply after the next start. */
  readonly needsRestart: readonly string[];
  readonly certificates: readonly CertificateInForce[];
  readonly warnings: readonly Warning[];
}

export type ReloadOutcome =
  | { readonly ok: true; readonly report: ReloadReport }
  /** `reason`: why nothing has changed. */
  | { readonly ok: false; readonly reason: string };

/** Runs reloads one at a time. Never rejects. */
export type Reload = (order: ReloadOrder) => Promise<ReloadOutcome>;
