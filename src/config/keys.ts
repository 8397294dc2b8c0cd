/**
 * The words the schema is written in. Each builder returns a TypeBox type, from which the static type of `Config`
 * follows, and notes beside it what the walker, the reference and the reload need to know of the key.
 */
import Type from 'typebox';
import type { Static, TSchema, TProperties, TObject, TArray, TRecord, TUnsafe, TUnion } from 'typebox';
import { Secret } from './secret.ts';

interface NodeBase {
  /** One paragraph for the reference. */
  readonly description: string;
  /** Taken when the key is absent. */
  readonly default?: unknown;
  /** For the reference, where the default is not one value. */
  readonly defaultText?: string;
  /** May stay absent although there is no default. */
  readonly optional: boolean;
  /** SIGHUP applies a change of this key without a restart. */
  readonly live: boolean;
}

export interface StringNode extends NodeBase {
  readonly kind: 'string';
  /** What is allowed, as a noun phrase. */
  readonly allowed: string;
  readonly pattern: RegExp | undefined;
  /** A reason why the value is wrong, or undefined. */
  readonly check: ((value: string) => string | undefined) | undefined;
  /** The value is never printed. */
  readonly sensitive: boolean;
}
export interface IntegerNode extends NodeBase {
  readonly kind: 'integer';
  readonly minimum: number;
  readonly maximum: number;
  readonly multipleOf: number;
  /** `seconds`, `bytes` … */
  readonly unit: string | undefined;
}
export interface BooleanNode extends NodeBase {
  readonly kind: 'boolean';
}
export interface ChoiceNode extends NodeBase {
  readonly kind: 'choice';
  readonly values: readonly string[];
}
export interface PathNode extends NodeBase {
  readonly kind: 'path';
}
export interface SecretNode extends NodeBase {
  readonly kind: 'secret';
  /** Raw bytes; a text secret loses one line end. */
  readonly raw: boolean;
}
export interface ListNode extends NodeBase {
  readonly kind: 'list';
  readonly item: Node;
  readonly minItems: number;
}
export interface MapNode extends NodeBase {
  readonly kind: 'map';
  readonly value: Node;
}
export interface TableNode extends NodeBase {
  readonly kind: 'table';
  readonly keys: ReadonlyMap<string, Node>;
  /** A bare string stands for a table with this one key. */
  readonly shorthand: string | undefined;
}
export interface VariantsNode extends NodeBase {
  readonly kind: 'variants';
  /** The key whose value chooses the table. */
  readonly on: string;
  readonly tables: ReadonlyMap<string, TableNode>;
}
export type Node =
  | StringNode
  | IntegerNode
  | BooleanNode
  | ChoiceNode
  | PathNode
  | SecretNode
  | ListNode
  | MapNode
  | TableNode
  | VariantsNode;

/** What every builder takes beside its own. */
export interface KeyOptions<T> {
  readonly description: string;
  readonly default?: T;
  readonly defaultText?: string;
  readonly live?: boolean;
}

const nodes = new WeakMap<TSchema, Node>();

/** What the schema says of a key beyond its type. */
export function nodeOf(schema: TSchema): Node {
  const node = nodes.get(schema);
  if (node === undefined) throw new TypeError('this schema was not made by config/keys.ts');
  return node;
}

function note<S extends TSchema>(schema: S, node: Node): S {
  nodes.set(schema, node);
  return schema;
}

function base(options: KeyOptions<unknown>): NodeBase {
  const { description, defaultText } = options;
  return {
    description,
    optional: false,
    live: options.live ?? false,
    ...(options.default === undefined ? {} : { default: options.default }),
    ...(defaultText === undefined ? {} : { defaultText }),
  };
}

/** A key that may stay absent and then is `undefined`. */
export function optional<S extends TSchema>(schema: S) {
  return note(Type.Optional(schema), { ...nodeOf(schema), optional: true });
}

export interface TextOptions extends KeyOptions<string> {
  readonly allowed: string;
  readonly pattern?: RegExp;
  readonly check?: (value: string) => string | undefined;
  readonly sensitive?: boolean;
}

export function text(options: TextOptions) {
  const { allowed, pattern, check, sensitive = false } = options;
  return note(Type.String(), { ...base(options), kind: 'string', allowed, pattern, check, sensitive });
}

export interface IntegerOptions extends KeyOptions<number> {
  readonly minimum: number;
  readonly maximum: number;
  readonly multipleOf?: number;
  readonly unit?: string;
}

export function integer(options: IntegerOptions) {
  const { minimum, maximum, multipleOf = 1, unit } = options;
  return note(Type.Integer(), { ...base(options), kind: 'integer', minimum, maximum, multipleOf, unit });
}

export function boolean(options: KeyOptions<boolean>) {
  return note(Type.Boolean(), { ...base(options), kind: 'boolean' });
}

export function choice<const V extends string[]>(values: readonly [...V], options: KeyOptions<V[number]>) {
  return note(Type.Enum(values), { ...base(options), kind: 'choice', values });
}

/** A file or folder; absolute in `Config`, relative to the configuration file's folder in the TOML. */
export function path(options: KeyOptions<string>) {
  return note(Type.String(), { ...base(options), kind: 'path' });
}

/** Given as `<key>_file` or `<key>_env`, never inline. `raw`: the file's bytes as they are, else without one line end. */
export function secret(options: KeyOptions<never> & { readonly raw?: boolean }): TUnsafe<Secret> {
  const schema = Type.Refine(Type.Unsafe<Secret>({}), (value) => value instanceof Secret);
  return note(schema, { ...base(options), kind: 'secret', raw: options.raw ?? false });
}

export function list<S extends TSchema>(
  item: S,
  options: KeyOptions<readonly Static<S>[]> & { readonly minItems?: number },
): TArray<S> {
  const { minItems = 0 } = options;
  return note(Type.Array(item), { ...base(options), kind: 'list', item: nodeOf(item), minItems });
}

/** A table whose keys are the operator's. */
export function map<S extends TSchema>(
  value: S,
  options: KeyOptions<Readonly<Record<string, Static<S>>>>,
): TRecord<'^.*$', S> {
  return note(Type.Record(Type.String(), value), { ...base(options), kind: 'map', value: nodeOf(value) });
}

/** A table. Absent and not optional: as if it stood there empty. */
export function table<P extends TProperties>(
  properties: P,
  options: KeyOptions<never> & { readonly shorthand?: string },
): TObject<P> {
  return note(Type.Object(properties), tableNode(properties, options));
}

function tableNode(properties: TProperties, options: KeyOptions<never> & { readonly shorthand?: string }): TableNode {
  const keys = new Map<string, Node>();
  for (const [key, schema] of Object.entries(properties)) keys.set(key, nodeOf(schema));
  return { ...base(options), kind: 'table', keys, shorthand: options.shorthand };
}

/** One of several tables; in each, the key `on` is a choice of one value, which tells them apart. */
export function variants<T extends TObject[]>(
  on: string,
  types: readonly [...T],
  options: KeyOptions<never>,
): TUnion<T> {
  const tables = new Map<string, TableNode>();
  for (const schema of types) {
    const node = nodeOf(schema);
    const selector = node.kind === 'table' ? node.keys.get(on) : undefined;
    const value = selector?.kind === 'choice' ? selector.values[0] : undefined;
    if (node.kind !== 'table' || value === undefined) throw new TypeError(`a variant is a table with the choice ${on}`);
    tables.set(value, node);
  }
  return note(Type.Union([...types]), { ...base(options), kind: 'variants', on, tables });
}
