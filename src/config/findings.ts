/** What was found in a configuration, as people read it. */
import { isTable, type Problem, type Warning } from './problem.ts';

/** The lists of tables that have labels, and the key of the label. */
const LABELED = [
  ['ca', 'label'],
  ['label', 'name'],
] as const;

/**
 * Names the tables in keys by their labels: `ca[0].chain` becomes `ca[devices].chain`. A table keeps its number, counted from 0, if its
 * label is missing, malformed, or that of another table, too.
 *
 * @param tables a configuration, or a document that need not be valid
 */
export function keysWithLabels(tables: { readonly ca?: unknown; readonly label?: unknown }): (text: string) => string {
  const names = new Map(LABELED.map(([list, name]) => [list as string, labelsIn(tables[list], name)]));
  return (text) =>
    text.replace(/\b(ca|label)\[(\d+)\]/g, (key, list: string, index: string) => {
      const labels = names.get(list) ?? [];
      const label = labels[Number(index)];
      return label === undefined || labels.indexOf(label) !== labels.lastIndexOf(label) ? key : `${list}[${label}]`;
    });
}

function labelsIn(list: unknown, name: string): readonly (string | undefined)[] {
  if (!Array.isArray(list)) return [];
  return list.map((table: unknown) => {
    const label = isTable(table) ? table[name] : undefined;
    return typeof label === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(label) ? label : undefined;
  });
}

/**
 * What was found as it is reported: each finding once, even if several readers of a file found it, and `[[ca]]` tables by their label.
 *
 * @param tables the configuration, or a document that need not be valid
 */
export function findings<Found extends Problem | Warning>(
  found: readonly Found[],
  tables: Parameters<typeof keysWithLabels>[0],
): Found[] {
  const withLabels = keysWithLabels(tables);
  const named = found.map((one) => ({ ...one, key: withLabels(one.key), message: withLabels(one.message) }));
  return [...new Map(named.map((one) => [`${one.key}: ${one.message}`, one])).values()];
}

/** A problem that several keys make together; it is dropped when one of them is wrong by itself. */
export interface Finding extends Problem {
  /** The other keys it depends on. */
  readonly about?: readonly string[];
}

export interface CrossChecks {
  readonly problems: readonly Finding[];
  readonly warnings: readonly Warning[];
}
