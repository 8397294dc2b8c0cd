/**
 * The words the schema is written in. Each builder returns a key: its static type, from which that of `Config` follows,
 * and a node with what the walker, the reference and the reload need to know of it.
 *
 * The types are our own and as flat as they can be: a schema library's, on a configuration this deep, cost the type
 * checker half a minute.
 */
import type { Secret } from './secret.ts';

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
  /** Texts that stand for themselves, and for no file. */
  readonly words: readonly string[];
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

declare const type: unique symbol;

/** A key of the configuration whose value is a `T`. `O`: it may be absent. */
export interface Key<T, O extends boolean = boolean> {
  readonly [type]?: { readonly value: T; readonly optional: O };
  readonly node: Node;
}

/** The static type of a key's value. */
export type Static<K> = K extends Key<infer T> ? T : never;

type Keys = Readonly<Record<string, Key<unknown>>>;
type OptionalNames<P extends Keys> = { [N in keyof P]: P[N] extends Key<unknown, false> ? never : N }[keyof P];
/** The static type of a table with these keys. */
type TableOf<P extends Keys> = Flat<
  { readonly [N in Exclude<keyof P, OptionalNames<P>>]: Static<P[N]> } & {
    readonly [N in OptionalNames<P>]?: Static<P[N]>;
  }
>;
type Flat<T> = { [N in keyof T]: T[N] };

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
export function optional<T>(key: Key<T>): Key<T, true> {
  return { node: { ...key.node, optional: true } };
}

export interface TextOptions extends KeyOptions<string> {
  readonly allowed: string;
  readonly pattern?: RegExp;
  readonly check?: (value: string) => string | undefined;
  readonly sensitive?: boolean;
}

export function text(options: TextOptions): Key<string, false> {
  const { allowed, pattern, check, sensitive = false } = options;
  return { node: { ...base(options), kind: 'string', allowed, pattern, check, sensitive } };
}

export interface IntegerOptions extends KeyOptions<number> {
  readonly minimum: number;
  readonly maximum: number;
  readonly multipleOf?: number;
  readonly unit?: string;
}

export function integer(options: IntegerOptions): Key<number, false> {
  const { minimum, maximum, multipleOf = 1, unit } = options;
  return { node: { ...base(options), kind: 'integer', minimum, maximum, multipleOf, unit } };
}

export function boolean(options: KeyOptions<boolean>): Key<boolean, false> {
  return { node: { ...base(options), kind: 'boolean' } };
}

export function choice<const V extends readonly string[]>(
  values: V,
  options: KeyOptions<V[number]>,
): Key<V[number], false> {
  return { node: { ...base(options), kind: 'choice', values } };
}

/** A file or folder; absolute in `Config`, relative to the configuration file's folder in the TOML. */
export function path(options: KeyOptions<string> & { readonly words?: readonly string[] }): Key<string, false> {
  return { node: { ...base(options), kind: 'path', words: options.words ?? [] } };
}

/** Given as `<key>_file` or `<key>_env`, never inline. `raw`: the file's bytes as they are, else without one line end. */
export function secret(options: KeyOptions<never> & { readonly raw?: boolean }): Key<Secret, false> {
  return { node: { ...base(options), kind: 'secret', raw: options.raw ?? false } };
}

export function list<T>(
  item: Key<T>,
  options: KeyOptions<readonly NoInfer<T>[]> & { readonly minItems?: number },
): Key<readonly T[], false> {
  const { minItems = 0 } = options;
  return { node: { ...base(options), kind: 'list', item: item.node, minItems } };
}

/** A table whose keys are the operator's. */
export function map<T>(
  value: Key<T>,
  options: KeyOptions<Readonly<Record<string, NoInfer<T>>>>,
): Key<Readonly<Record<string, T>>, false> {
  return { node: { ...base(options), kind: 'map', value: value.node } };
}

/** A table. Absent and not optional: as if it stood there empty. */
export function table<P extends Keys>(
  properties: P,
  options: KeyOptions<never> & { readonly shorthand?: string },
): Key<TableOf<P>, false> {
  const keys = new Map(Object.entries(properties).map(([name, key]) => [name, key.node]));
  return { node: { ...base(options), kind: 'table', keys, shorthand: options.shorthand } };
}

/** One of several tables; in each, the key `on` is a choice of one value, which tells them apart. */
export function variants<const K extends readonly Key<unknown>[]>(
  on: string,
  types: K,
  options: KeyOptions<never>,
): Key<Static<K[number]>, false> {
  const tables = new Map<string, TableNode>();
  for (const { node } of types) {
    const selector = node.kind === 'table' ? node.keys.get(on) : undefined;
    const value = selector?.kind === 'choice' ? selector.values[0] : undefined;
    if (node.kind !== 'table' || value === undefined) throw new TypeError(`a variant is a table with the choice ${on}`);
    tables.set(value, node);
  }
  return { node: { ...base(options), kind: 'variants', on, tables } };
}
