import { failed } from '../errors.ts';
import { crossChecks } from './cross-checks.ts';
import { deepFreeze } from './freeze.ts';
import type { Node } from './keys.ts';
import { asConfig, schemaNode } from './schema.ts';
import type { Config } from './schema.ts';
import { Secret } from './secret.ts';
import { isTable } from './toml.ts';

export interface ReloadPlan {
  /** What is in force afterwards: new values of the keys that apply live, old ones of all others. */
  readonly config: Config;
  /** Changed keys that apply at once. Files that changed under an unchanged path are not among them. */
  readonly live: readonly string[];
  /** Changed keys that need a restart. */
  readonly restart: readonly string[];
}

/**
 * What a reload changes (contract §1, SIGHUP).
 *
 * @throws EstuaryError 500 `CONFIG_RELOAD` when the live changes make no sense without those that need a restart
 */
export function planReload(before: Config, after: Config): ReloadPlan {
  const live: string[] = [];
  const restart: string[] = [];
  for (const change of changes(schemaNode(), before, after, '')) (change.live ? live : restart).push(change.key);
  const config = deepFreeze(asConfig(merge(schemaNode(), before, after)));
  const [problem] = crossChecks(config).problems;
  if (problem !== undefined)
    throw failed('CONFIG_RELOAD', 'The changed configuration needs a restart.', {
      detail: `${problem.key}: ${problem.message}`,
    });
  return { config, live, restart };
}

function merge(node: Node, before: unknown, after: unknown): unknown {
  if (node.live) return after;
  if (node.kind !== 'table' || !isTable(before) || !isTable(after)) return before;
  const result: Record<string, unknown> = {};
  for (const [name, child] of node.keys) {
    const value = merge(child, before[name], after[name]);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

interface Change {
  readonly key: string;
  readonly live: boolean;
}

function* changes(node: Node, before: unknown, after: unknown, key: string): Generator<Change> {
  if (equal(before, after)) return;
  const tableNode = node.kind === 'variants' ? variant(node, before, after) : node;
  if (tableNode?.kind === 'table' && isTable(before) && isTable(after)) {
    for (const [name, child] of tableNode.keys)
      yield* changes(child, before[name], after[name], key === '' ? name : `${key}.${name}`);
  } else if (node.kind === 'list' && !node.live && isList(before) && isList(after) && before.length === after.length) {
    for (const [index, one] of before.entries()) yield* changes(node.item, one, after[index], `${key}[${index}]`);
  } else {
    yield { key, live: node.live };
  }
}

/** The table that both values are of, if it is one. */
function variant(node: Extract<Node, { kind: 'variants' }>, before: unknown, after: unknown): Node | undefined {
  if (!isTable(before) || !isTable(after) || before[node.on] !== after[node.on]) return undefined;
  return node.tables.get(String(before[node.on]));
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function equal(a: unknown, b: unknown): boolean {
  if (a instanceof Secret && b instanceof Secret) return a.equals(b);
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, index) => equal(item, b[index]));
  if (!isTable(a) || !isTable(b)) return a === b;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((name) => equal(a[name], b[name]));
}
