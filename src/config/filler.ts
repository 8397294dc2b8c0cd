import type { Node } from './keys.ts';
import { Secret } from './secret.ts';

/**
 * An empty value of the right type, for the place of a wrong one. It only lets the remaining checks run: a
 * configuration with a filler in it has a problem and is refused.
 */
export function filler(node: Node): unknown {
  switch (node.kind) {
    case 'string':
    case 'path':
      return '';
    case 'integer':
      return node.minimum;
    case 'boolean':
      return false;
    case 'choice':
      return node.values[0];
    case 'secret':
      return new Secret(Buffer.alloc(0));
    case 'list':
      return [];
    case 'map':
      return {};
    case 'table': {
      const result: Record<string, unknown> = {};
      for (const [name, child] of node.keys) if (!child.optional) result[name] = child.default ?? filler(child);
      return result;
    }
    case 'variants': {
      const [first] = node.tables.values();
      return first === undefined ? {} : filler(first);
    }
  }
}
