import { IsArray, type TSchema } from 'typebox';
import { type EstuaryError, failed } from '../errors.ts';
import { isTable, keysWithLabels, type Warning } from './problem.ts';
import { keysOf, notes, tableOf } from './keys.ts';
import type { CertificateExpiry } from './material/material.ts';
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

/** The keys whose values differ, as deep as both sides have tables. */
export function changedKeys(before: Config, after: Config): readonly string[] {
  const changed = { live: [], restart: [] };
  merge(configSchema, before, after, '', changed);
  return [...changed.live, ...changed.restart].map(keysWithLabels(after)).sort();
}

/**
 * `after` without what needs the files of `keys`: a table, or an item of a list, is as it was `before`. An item that was
 * not there before is left out. In a section, the tables and lists next to the key are not affected.
 */
export function withoutUnusable(before: Config, after: Config, keys: readonly string[]): Config {
  for (let former = keys.map((key) => (key.endsWith(']') ? key : enclosing(key))); ; former = former.map(enclosing)) {
    if (former.includes('')) return before;
    const config = asConfig(merged(before, after, '', new Set(former)));
    if (crossChecks(config).problems.length === 0) return config;
  }
}

/** The table or list that a key is in. */
const enclosing = (key: string): string => key.replace(/(?:\[\d+\]|\.?[^.[\]]+)$/, '');

function merged(before: unknown, after: unknown, key: string, former: ReadonlySet<string>): unknown {
  const isSection = /^\w+$/.test(key);
  if (former.has(key) && !isSection) return before;
  if (Array.isArray(after))
    return after.flatMap((item: unknown, index) => {
      const items: readonly unknown[] = Array.isArray(before) ? before : [];
      const same = items.find((other) => nameOf(other) === nameOf(item));
      return merged(same, item, `${key}[${index}]`, former) ?? [];
    });
  if (!isTable(after)) return after;
  const names = Object.keys(former.has(key) && isTable(before) ? { ...before, ...after } : after);
  const values = names.map((name) => {
    const [old, value] = [isTable(before) ? before[name] : undefined, after[name]];
    const isOld = former.has(key) && ![old, value].some((side) => isTable(side) || Array.isArray(side));
    return [name, isOld ? old : merged(old, value, key === '' ? name : `${key}.${name}`, former)] as const;
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** What tells the items of a list apart: the first key of a table. */
const nameOf = (item: unknown): unknown => (isTable(item) ? Object.values(item)[0] : undefined);

type Changed = Readonly<Record<'live' | 'restart', string[]>>;

/**
 * The value in force after the reload; appends the changed keys to `changed`, as deep as both sides have tables.
 * @param isLive within a value that applies live as a whole
 */
function merge(
  schema: TSchema,
  before: unknown,
  after: unknown,
  key: string,
  changed: Changed,
  isLive = false,
): unknown {
  if (isSameConfig(before, after)) return before;
  const live = isLive || notes(schema).live === true;
  const table = tableOf(schema, before);
  if (table !== undefined && table === tableOf(schema, after) && isTable(before) && isTable(after)) {
    const values = keysOf(table).map(([name, child]) => {
      const inner = key === '' ? name : `${key}.${name}`;
      return [name, merge(child, before[name], after[name], inner, changed, live)] as const;
    });
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }
  if (IsArray(schema) && Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.map((item: unknown, index) =>
      merge(schema.items, item, after[index], `${key}[${index}]`, changed, live),
    );
  changed[live ? 'live' : 'restart'].push(key);
  return live ? after : before;
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
  /** What cannot be used: the reload succeeds next to it. */
  readonly faults: readonly Warning[];
}

export type ReloadOutcome =
  | { readonly ok: true; readonly report: ReloadReport }
  /** `reason`: why nothing has changed; `unavailable`: it was not the configuration. */
  | { readonly ok: false; readonly reason: string; readonly unavailable?: EstuaryError };

/** Runs reloads one at a time. Never rejects. */
export type Reload = (order: ReloadOrder) => Promise<ReloadOutcome>;
