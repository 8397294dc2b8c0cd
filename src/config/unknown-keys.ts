import type { Node, TableNode } from './keys.ts';
import { editDistance, nearest } from './nearest.ts';
import type { Problem } from './problem.ts';
import { schemaNode } from './schema.ts';
import type { Table } from './toml.ts';

/** Names under which an operator may try to write a secret into the file. */
const SECRET_NAME = /(^|_)(pin|password|passphrase|passwd|secret|hmac_key|lookup_key|symmetric_key|token)$/i;

/** Farther than this, a word is no mistyping of another. */
const MISTYPED = 3;

/**
 * The problems of the names in a table: keys that the schema does not know, and secrets written into the file.
 *
 * @param also further names that the caller has dealt with
 */
export function checkKeys(node: TableNode, raw: Table, key: string, also: readonly string[]): Problem[] {
  const known = knownNames(node);
  const problems: Problem[] = [];
  for (const name of Object.keys(raw)) {
    if (known.includes(name) || also.includes(name)) continue;
    const path = key === '' ? name : `${key}.${name}`;
    problems.push({ key: path, message: explain(node, known, name, key) });
  }
  return problems;
}

function explain(node: TableNode, known: readonly string[], name: string, key: string): string {
  if (node.keys.get(name)?.kind === 'secret')
    return `a secret must not stand in the configuration file (${name}_file = "path" or ${name}_env = "VARIABLE")`;
  const suggestion = suggest(known, name, key);
  const secret = SECRET_NAME.test(name)
    ? 'unknown key, and a secret must not stand in the configuration file: secrets are given as *_file or *_env'
    : 'unknown key';
  return suggestion === undefined ? secret : `${secret} (the nearest known one is "${suggestion}")`;
}

function suggest(known: readonly string[], name: string, key: string): string | undefined {
  const sibling = nearest(name, known);
  const far = sibling === undefined || editDistance(name, sibling) > Math.min(MISTYPED, name.length / 2);
  if (far) {
    const elsewhere = findKey(schemaNode(), '', name);
    if (elsewhere !== undefined) return elsewhere;
  }
  return sibling === undefined || key === '' ? sibling : `${key}.${sibling}`;
}

/** The names that a table of this kind may hold, secrets in both their forms. */
export function knownNames(node: TableNode): string[] {
  return [...node.keys].flatMap(([name, child]) =>
    child.kind === 'secret' ? [`${name}_file`, `${name}_env`] : [name],
  );
}

/** The first key of that name anywhere in the schema. */
function findKey(node: Node, path: string, name: string): string | undefined {
  for (const [child, inner] of children(node)) {
    const here = [path, child].filter((part) => part !== '').join('.');
    const found = child === name ? here : findKey(inner, here, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What a node holds, by name; lists and variants add no name of their own. */
function children(node: Node): Iterable<readonly [string, Node]> {
  if (node.kind === 'table') return node.keys;
  if (node.kind === 'list') return [['', node.item]];
  return node.kind === 'variants' ? [...node.tables.values()].map((table) => ['', table] as const) : [];
}
