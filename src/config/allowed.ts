import type { Node } from './keys.ts';

/** What a key may hold, as a noun phrase: for messages and for the reference. */
export function allowed(node: Node): string {
  switch (node.kind) {
    case 'string':
      return node.allowed;
    case 'integer':
      return integerAllowed(node);
    case 'boolean':
      return 'true or false';
    case 'choice':
      return node.values.map((value) => `"${value}"`).join(', ');
    case 'path':
      return [...node.words.map((word) => `"${word}"`), 'a path, relative to the configuration file'].join(', ');
    case 'secret':
      return 'a secret from a file or from an environment variable';
    case 'list':
      return node.minItems > 0 ? `a list with at least ${count(node.minItems)}` : 'a list';
    case 'map':
      return `a table, each value ${allowed(node.value)}`;
    case 'table':
    case 'variants':
      return 'a table';
  }
}

function integerAllowed(node: Extract<Node, { kind: 'integer' }>): string {
  const unit = node.unit === undefined ? '' : ` of ${node.unit}`;
  const step = node.multipleOf === 1 ? '' : `, a multiple of ${node.multipleOf}`;
  const range =
    node.maximum === Number.MAX_SAFE_INTEGER ? `from ${node.minimum}` : `from ${node.minimum} to ${node.maximum}`;
  return `a whole number${unit} ${range}${step}`;
}

function count(items: number): string {
  return items === 1 ? 'one item' : `${items} items`;
}
