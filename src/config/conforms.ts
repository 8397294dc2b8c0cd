import type { Node, TableNode } from './keys.ts';
import { Secret } from './secret.ts';
import { isTable } from './toml.ts';

/** Whether a value has the type of the key: the check behind the one place where `unknown` becomes `Config`. */
export function conforms(node: Node, value: unknown): boolean {
  switch (node.kind) {
    case 'string':
    case 'path':
      return typeof value === 'string';
    case 'integer':
      return Number.isSafeInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'choice':
      return node.values.some((allowed) => allowed === value);
    case 'secret':
      return value instanceof Secret;
    case 'list':
      return Array.isArray(value) && value.every((item) => conforms(node.item, item));
    case 'map':
      return isTable(value) && Object.values(value).every((item) => conforms(node.value, item));
    case 'table':
      return isTable(value) && tableConforms(node, value);
    case 'variants':
      return isTable(value) && [...node.tables.values()].some((table) => tableConforms(table, value));
  }
}

function tableConforms(node: TableNode, value: Readonly<Record<string, unknown>>): boolean {
  return (
    Object.keys(value).every((name) => node.keys.has(name)) &&
    [...node.keys].every(([name, child]) => (value[name] === undefined ? child.optional : conforms(child, value[name])))
  );
}
