/** Configuration problems and warnings in reported form. */
import { isTable, type Problem, type Warning } from './problem.ts';

/** Lists of tables with labels, and their label keys. */
const LABELED = [
  ['ca', 'label'],
  ['label', 'name'],
] as const;

/**
 * Replaces table indexes in keys by labels: `ca[0].chain` becomes `ca[devices].chain`. A table keeps its index, counted
 * from 0, if its label is missing, malformed or not unique.
 * @param tables a configuration, or a possibly invalid document
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
 * Deduplicates findings, which several readers of a file may report, and replaces `[[ca]]` indexes by labels.
 * @param tables the configuration, or a possibly invalid document
 */
export function findings<Found extends Problem | Warning>(
  found: readonly Found[],
  tables: Parameters<typeof keysWithLabels>[0],
): Found[] {
  const withLabels = keysWithLabels(tables);
  const named = found.map((one) => ({ ...one, key: withLabels(one.key), message: withLabels(one.message) }));
  return [...new Map(named.map((one) => [`${one.key}: ${one.message}`, one])).values()];
}

/** A problem of several keys together; dropped if one of them is invalid on its own. */
export interface Finding extends Problem {
  /** The other keys involved. */
  readonly about?: readonly string[];
}

/** @param about the other keys involved */
export function finding(key: string, message: string, ...about: readonly string[]): Finding {
  return about.length === 0 ? { key, message } : { key, message, about };
}

export interface CrossChecks {
  readonly problems: readonly Finding[];
  readonly warnings: readonly Warning[];
}
