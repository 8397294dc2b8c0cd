/** Renders docs/reference/configuration.md from the schema: one table of keys for each TOML table. */
import { IsArray, IsEnum, IsObject, IsOptional, IsRecord, IsUnion, RecordValue, Type } from 'typebox';
import type { TObject, TSchema, TUnion } from 'typebox';
import { keysOf, notes, tablesOf } from '../../src/config/keys.ts';
import { configSchema } from '../../src/config/schema.ts';
import { INTRODUCTION } from './config-introduction.ts';

/** The whole page. */
export function configReference(): string {
  described.clear();
  return `${[INTRODUCTION, ...section(configSchema, configSchema, '', 'table')].join('\n\n')}\n`;
}

type Form = 'table' | 'list';

/** The keys of the tables that stand on the page already, and where. */
const described = new Map<unknown, string>();

/**
 * A table and, below it, the tables in it.
 *
 * @param about what the section says of the table: its own notes, or those of the list it stands in
 */
function* section(table: TObject, about: TSchema, path: string, form: Form): Generator<string> {
  const earlier = described.get(table.properties);
  if (earlier !== undefined) {
    yield* page(path, form, about, [], `Its keys are those of \`[${earlier}]\`.`);
    return;
  }
  described.set(table.properties, path);
  const inner: string[] = [];
  const rows: string[] = [];
  for (const [name, child] of keysOf(table)) {
    const key = path === '' ? name : `${path}.${name}`;
    const item = IsArray(child) ? child.items : undefined;
    if (IsObject(child)) inner.push(...section(child, child, key, 'table'));
    else if (IsUnion(item)) inner.push(...variantSections(item, key, child));
    else if (IsObject(item) && notes(item).shorthand === undefined) inner.push(...section(item, child, key, 'list'));
    else rows.push(row(name, child));
  }
  yield* page(path, form, about, rows);
  yield* inner;
}

function* page(path: string, form: Form, about: TSchema, rows: readonly string[], more = ''): Generator<string> {
  yield path === '' ? '## At the top of the file' : `${path.includes('.') ? '###' : '##'} \`${header(path, form)}\``;
  const said = [notes(about).description, optionalNote(about), liveNote(about), more];
  if (path !== '') yield said.filter((text) => text !== '').join(' ');
  if (rows.length > 0) yield ['| key | value | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

const header = (path: string, form: Form): string => (form === 'list' ? `[[${path}]]` : `[${path}]`);

const optionalNote = (schema: TSchema): string =>
  IsOptional(schema) && IsObject(schema) ? 'The section may be left out.' : '';

const liveNote = (schema: TSchema): string => (notes(schema).live === true ? '*SIGHUP applies a change.*' : '');

/** A list of tables of several kinds: what they share, then what each adds. */
function* variantSections(union: TUnion, path: string, about: TSchema): Generator<string> {
  const { on = '' } = notes(union);
  const tables = tablesOf(union);
  const [first] = tables.values();
  if (first === undefined) return;
  const shared = keysOf(first).filter(([name]) => [...tables.values()].every(({ properties }) => name in properties));
  const keys = shared.map(
    ([name, child]) => [name, name === on ? selector(tables) : exceptions(tables, name, child)] as const,
  );
  yield* section(Type.Object(Object.fromEntries(keys)), about, path, 'list');
  for (const [value, { properties }] of tables) {
    const own = properties[value];
    if (!IsObject(own)) continue;
    const hint = `Needed with \`${on} = "${value}"\`, and refused with any other.`;
    yield* section(
      own,
      { ...notes(own), description: `${notes(own).description} ${hint}` },
      `${path}.${value}`,
      'table',
    );
  }
}

type Tables = ReadonlyMap<string, TObject>;

/** A key that only some kinds need. */
function exceptions(tables: Tables, name: string, child: TSchema): TSchema {
  const without = [...tables]
    .filter(([, { properties }]) => IsOptional(properties[name]))
    .map(([kind]) => `\`"${kind}"\``);
  if (without.length === 0 || without.length === tables.size) return child;
  return Type.Unsafe({ ...child, defaultText: `**required**, but for ${without.join(', ')}` });
}

/** The key that tells the kinds apart, with the values of all of them. */
const selector = (tables: Tables): TSchema =>
  Type.Enum([...tables.keys()], { description: 'Where the key of the CA is.', allowed: '' });

function row(name: string, schema: TSchema): string {
  const { description, form } = notes(schema);
  const names = form === 'secret' || form === 'bytes' ? `\`${name}_file\`, \`${name}_env\`` : `\`${name}\``;
  const meaning = [description, liveNote(schema)].filter((text) => text !== '').join(' ');
  return `| ${[names, value(schema), fallback(schema), meaning].map(cell).join(' | ')} |`;
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');

function value(schema: TSchema): string {
  const { allowed, form, shorthand } = notes(schema);
  if (IsEnum(schema)) return schema.enum.map((value) => `\`"${value}"\``).join(', ');
  if (form === 'bytes') return 'the path of a file with the raw bytes, or the name of a variable';
  if (form === 'secret') return 'the path of a file with the text, or the name of a variable';
  if (IsArray(schema)) return `${allowed} of: ${value(schema.items)}`;
  if (IsRecord(schema)) return `a table; each value: ${value(RecordValue(schema))}`;
  if (!IsObject(schema) || shorthand === undefined) return allowed;
  const keys = keysOf(schema).map(([name, child]) => `\`${name}\` (${notes(child).description} ${value(child)})`);
  return `a text, or a table with ${keys.join(' and ')}`;
}

function fallback(schema: TSchema): string {
  const { default: given, defaultText, form } = notes(schema);
  if (defaultText !== undefined) return defaultText;
  // The default of a secret is what stands in for a wrong one.
  if (given !== undefined && form !== 'secret' && form !== 'bytes') return `\`${JSON.stringify(given)}\``;
  return IsOptional(schema) ? 'none' : '**required**';
}
