/** Names in a table that the schema does not know, and secrets written into the file. */
import { IsArray, IsObject, IsUnion } from 'typebox';
import type { TObject, TSchema } from 'typebox';
import { keysOf, notes } from './keys.ts';
import { editDistance, nearest } from './nearest.ts';
import type { Problem } from './problem.ts';
import type { Table } from './toml.ts';

/** Names under which an operator may try to write a secret into the file. */
const SECRET_NAME = /(^|_)(pin|password|passphrase|passwd|secret|hmac_key|lookup_key|symmetric_key|token)$/i;

/** Keys that a former version had, with their replacements. */
const REMOVED: Readonly<Record<string, string>> = {
  'server.workers':
    'removed in version 0.2: a server is one process (for several processes, run several nodes with store.driver = "postgres", ' +
    'on one host with server.reuse_port = true: docs/guides/nodes-on-one-host.md)',
};

/** A word that differs in more letters than this is not a typing error. */
const MISTYPED = 3;

/**
 * The problems of the names in a table.
 *
 * @param root where a key of another table is looked for
 * @param also further names that the caller has dealt with
 */
export function checkKeys(root: TObject, table: TObject, raw: Table, key: string, also: readonly string[]): Problem[] {
  const known = keysOf(table).flatMap(([name, child]) => (isSecret(child) ? [`${name}_file`, `${name}_env`] : [name]));
  const unknown = Object.keys(raw).filter((name) => !known.includes(name) && !also.includes(name));
  return unknown.map((name) => {
    const child = table.properties[name];
    const message =
      child !== undefined && isSecret(child)
        ? `a secret must not stand in the configuration file (${name}_file = "path" or ${name}_env = "VARIABLE")`
        : explain(root, known, name, key);
    return { key: key === '' ? name : `${key}.${name}`, message };
  });
}

const isSecret = (schema: TSchema): boolean => ['secret', 'bytes'].includes(notes(schema).form ?? '');

function explain(root: TObject, known: readonly string[], name: string, key: string): string {
  const removed = REMOVED[key === '' ? name : `${key}.${name}`];
  if (removed !== undefined) return removed;
  const suggestion = suggest(root, known, name, key);
  const secret = SECRET_NAME.test(name)
    ? 'unknown key, and a secret must not stand in the configuration file: secrets are given as *_file or *_env'
    : 'unknown key';
  return suggestion === undefined ? secret : `${secret} (the nearest known one is "${suggestion}")`;
}

function suggest(root: TObject, known: readonly string[], name: string, key: string): string | undefined {
  const sibling = nearest(name, known);
  const far = sibling === undefined || editDistance(name, sibling) > Math.min(MISTYPED, name.length / 2);
  const elsewhere = far ? findKey(root, '', name) : undefined;
  return elsewhere ?? (sibling === undefined || key === '' ? sibling : `${key}.${sibling}`);
}

/** The first key of that name anywhere in the schema. */
function findKey(schema: TSchema, path: string, name: string): string | undefined {
  for (const [child, inner] of children(schema)) {
    const here = [path, child].filter((part) => part !== '').join('.');
    const found = child === name ? here : findKey(inner, here, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What a schema holds, by name; lists and variants add no name of their own. */
function children(schema: TSchema): readonly (readonly [string, TSchema])[] {
  if (IsObject(schema)) return keysOf(schema);
  if (IsArray(schema)) return [['', schema.items]];
  return IsUnion(schema) ? schema.anyOf.map((one) => ['', one] as const) : [];
}
