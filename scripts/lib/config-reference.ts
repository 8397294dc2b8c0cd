/** Renders docs/configuration.md from the schema: one table of keys for each TOML table. */
import { allowed } from '../../src/config/allowed.ts';
import type { Node, TableNode, VariantsNode } from '../../src/config/keys.ts';
import { schemaNode } from '../../src/config/schema.ts';
import { INTRODUCTION } from './config-introduction.ts';

/** The whole page. */
export function configReference(): string {
  return `${[INTRODUCTION, ...section(schemaNode(), '', 'table')].join('\n\n')}\n`;
}

type Form = 'table' | 'list';

/** A table and, below it, the tables in it. */
function* section(node: TableNode, path: string, form: Form): Generator<string> {
  const inner: string[] = [];
  const rows: string[] = [];
  for (const [name, child] of node.keys) {
    const key = path === '' ? name : `${path}.${name}`;
    if (child.kind === 'table') inner.push(...section(child, key, 'table'));
    else if (child.kind === 'list' && child.item.kind === 'variants')
      inner.push(...variantSections(child.item, key, child.description));
    else if (child.kind === 'list' && child.item.kind === 'table' && child.item.shorthand === undefined)
      inner.push(...section({ ...child.item, description: child.description, live: child.live }, key, 'list'));
    else rows.push(row(name, child));
  }
  yield* page(path, form, node, rows);
  yield* inner;
}

function* page(path: string, form: Form, node: Node, rows: readonly string[]): Generator<string> {
  yield path === '' ? '## At the top of the file' : `${path.includes('.') ? '###' : '##'} \`${header(path, form)}\``;
  if (path !== '') yield [node.description, optionalNote(node), liveNote(node)].filter((text) => text !== '').join(' ');
  if (rows.length > 0) yield ['| key | value | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

const header = (path: string, form: Form): string => (form === 'list' ? `[[${path}]]` : `[${path}]`);

function optionalNote(node: Node): string {
  return node.optional ? 'The section may be left out.' : '';
}

const liveNote = (node: Node): string => (node.live ? '*SIGHUP applies a change.*' : '');

/** A list of tables of several kinds: what they share, then what each adds. */
function* variantSections(node: VariantsNode, path: string, description: string): Generator<string> {
  const tables = [...node.tables.values()];
  const [first] = tables;
  if (first === undefined) return;
  const shared = [...first.keys].filter(([name]) => tables.every((table) => table.keys.has(name)));
  const keys = new Map<string, Node>();
  for (const [name, child] of shared)
    keys.set(name, name === node.on ? selector(node, child) : { ...child, ...exceptions(node, name) });
  yield* section({ ...first, description, keys }, path, 'list');
  for (const [value, table] of node.tables) {
    const own = table.keys.get(value);
    if (own?.kind !== 'table') continue;
    const hint = `Needed with \`${node.on} = "${value}"\`, and refused with any other.`;
    yield* section({ ...own, description: `${own.description} ${hint}` }, `${path}.${value}`, 'table');
  }
}

/** A key that only some kinds need. */
function exceptions(node: VariantsNode, name: string): { defaultText?: string } {
  const without = [...node.tables].filter(([, table]) => table.keys.get(name)?.optional === true).map(([kind]) => kind);
  return without.length === 0 || without.length === node.tables.size
    ? {}
    : { defaultText: `**required**, but for ${without.map((kind) => `\`"${kind}"\``).join(', ')}` };
}

/** The key that tells the kinds apart, with the values of all of them. */
function selector(node: VariantsNode, child: Node): Node {
  return child.kind === 'choice'
    ? { ...child, values: [...node.tables.keys()], description: 'Where the key of the CA is.' }
    : child;
}

function row(name: string, node: Node): string {
  const names = node.kind === 'secret' ? `\`${name}_file\`, \`${name}_env\`` : `\`${name}\``;
  const meaning = [node.description, liveNote(node)];
  return `| ${[names, value(node), fallback(node), meaning.filter((text) => text !== '').join(' ')].map(cell).join(' | ')} |`;
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');

function value(node: Node): string {
  switch (node.kind) {
    case 'choice':
      return node.values.map((one) => `\`"${one}"\``).join(', ');
    case 'secret':
      return node.raw
        ? 'the path of a file with the raw bytes, or the name of a variable'
        : 'the path of a file with the text, or the name of a variable';
    case 'list':
      return `${allowed(node)} of: ${value(node.item)}`;
    case 'map':
      return `a table; each value: ${value(node.value)}`;
    case 'table':
      return node.shorthand === undefined
        ? 'a table'
        : `a text, or a table with ${[...node.keys].map(([name, child]) => `\`${name}\` (${child.description} ${value(child)})`).join(' and ')}`;
    default:
      return allowed(node);
  }
}

function fallback(node: Node): string {
  if (node.defaultText !== undefined) return node.defaultText;
  if (node.default !== undefined) return `\`${JSON.stringify(node.default)}\``;
  return node.optional ? 'none' : '**required**';
}
