/**
 * Builders for the schema. Each creates a TypeBox schema with additional data for the reader, the reference and the
 * reload.
 *
 * The static types are computed here and passed to TypeBox as `Unsafe`: its own inference takes the type checker
 * sixteen seconds for a configuration this deep (docs/internals/decisions.md).
 */
import { IsEnum, IsObject, IsUnion, Type } from 'typebox';
import type { TObject, TOptional, TSchema, TUnion, TUnsafe } from 'typebox';
import { readTimestamp } from '../timestamp.ts';
import { isTable } from './problem.ts';
import { Secret } from './secret.ts';

/** Common options of the builders. */
interface KeyOptions<T> {
  /** One paragraph for the reference. */
  readonly description: string;
  readonly default?: T;
  /** For the reference, if the default is not one value. */
  readonly defaultText?: string;
  /** SIGHUP applies a change of this key without a restart. */
  readonly live?: boolean;
}

/** Another key of the same table that may contain the value of this one. */
interface Elsewhere {
  /** Name in messages. */
  readonly name: string;
  /** The other key, to which messages about the value belong. */
  readonly key: string;
  readonly value: (table: Readonly<Record<string, unknown>>) => string | undefined;
}

/** A schema's additional data. */
interface Notes extends KeyOptions<unknown> {
  /** The allowed values as a noun phrase, for messages and the reference. */
  readonly allowed: string;
  /** The value is never printed. */
  readonly sensitive?: boolean;
  /**
   * Kind of text: `bytes` is a secret of raw bytes, other secrets lose one line end, and a `pin` may be empty; `time` may
   * be a TOML date, and `integer` a TOML integer.
   */
  readonly form?: 'path' | 'secret' | 'bytes' | 'pin' | 'time' | 'integer';
  readonly elsewhere?: Elsewhere;
  /** Keywords that are allowed instead of a path. */
  readonly words?: readonly string[];
  /** Returns the reason why a text is invalid, or undefined. */
  readonly check?: (value: string) => string | undefined;
  /** Returns the reason why a secret is invalid, with the allowed values in parentheses, or undefined. */
  readonly fits?: (secret: Buffer) => string | undefined;
  /** A bare string is accepted as a list of one item. */
  readonly single?: boolean;
  /** A table is accepted as a list of `key=value` strings. */
  readonly pairs?: boolean;
  /** A bare string is accepted as a table with this key. */
  readonly shorthand?: string;
  /** The key that selects one of several tables. */
  readonly on?: string;
}

export type Key<T> = TUnsafe<T>;

export type Static<K extends Key<unknown>> = K['~unsafe'];

type Keys = Readonly<Record<string, Key<unknown>>>;
type OptionalNames<P extends Keys> = { [N in keyof P]: P[N] extends TOptional ? N : never }[keyof P];
type Flat<T> = { [N in keyof T]: T[N] };
type TableOf<P extends Keys> = Flat<
  { readonly [N in Exclude<keyof P, OptionalNames<P>>]: Static<P[N]> } & {
    readonly [N in OptionalNames<P>]?: Static<P[N]>;
  }
>;

interface TextOptions extends KeyOptions<string> {
  /** `integer`: TOML may have it as an integer too. */
  readonly form?: 'integer';
  readonly allowed: string;
  readonly pattern?: RegExp;
  readonly check?: (value: string) => string | undefined;
  readonly sensitive?: boolean;
}

export function text({ pattern, check, sensitive = false, ...notes }: TextOptions): Key<string> {
  const wrong = (value: string): string | undefined =>
    check?.(value) ??
    (pattern?.test(value) === false ? `${sensitive ? 'the value' : `"${value}"`} has the wrong form` : undefined);
  return Type.Unsafe(Type.String({ ...notes, sensitive, check: wrong }));
}

/** A point in time, ISO 8601 with `Z` or an offset: a string or a TOML date, a string in `Config`. */
export function timestamp(options: KeyOptions<string>): Key<string> {
  const check = (value: string): string | undefined =>
    readTimestamp(value) === undefined ? `"${value}" is not a time` : undefined;
  const allowed = 'a time with its offset, such as 2030-01-31T12:00:00Z';
  return Type.Unsafe(Type.String({ ...options, form: 'time', check, allowed }));
}

interface IntegerOptions extends KeyOptions<number> {
  readonly multipleOf?: number;
  readonly unit?: string;
}

export function integer(minimum: number, maximum: number, { unit, ...options }: IntegerOptions): Key<number> {
  const { multipleOf } = options;
  const kind = unit === undefined ? 'a whole number' : `a whole number of ${unit}`;
  const range = maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum}` : `from ${minimum} to ${maximum}`;
  const step = multipleOf === undefined ? '' : `, a multiple of ${multipleOf}`;
  return Type.Unsafe(Type.Integer({ ...options, minimum, maximum, allowed: `${kind} ${range}${step}` }));
}

export function seconds(minimum: number, maximum: number, options: KeyOptions<number>): Key<number> {
  return integer(minimum, maximum, { ...options, unit: 'seconds' });
}

/** A number that may have a fraction. */
export function number(
  options: KeyOptions<number> & { readonly minimum: number; readonly maximum: number; readonly allowed: string },
): Key<number> {
  return Type.Unsafe(Type.Number({ ...options }));
}

export function boolean(options: KeyOptions<boolean>): Key<boolean> {
  return Type.Unsafe(Type.Boolean({ ...options, allowed: 'true or false' }));
}

export function choice<const V extends readonly string[]>(values: V, options: KeyOptions<V[number]>): Key<V[number]> {
  return Type.Unsafe(Type.Enum([...values], { ...options, allowed: values.map((value) => `"${value}"`).join(', ') }));
}

/** A file or folder; absolute in `Config`, relative to the configuration file's folder in TOML. */
export function path({ words = [], ...options }: KeyOptions<string> & Pick<Notes, 'words' | 'elsewhere'>): Key<string> {
  const check = (value: string): string | undefined =>
    value === '' || value.includes('\0') ? 'is empty or not a path' : undefined;
  const allowed = [...words.map((word) => `"${word}"`), 'a path, relative to the configuration file'].join(', ');
  return Type.Unsafe(Type.String({ ...options, words, form: 'path', check, allowed }));
}

interface SecretOptions extends KeyOptions<never>, Pick<Notes, 'elsewhere' | 'fits'> {
  readonly raw?: boolean;
  readonly pin?: boolean;
}

/**
 * Given as `<key>_file` or `<key>_env`, never inline. `raw` keeps the file's bytes; otherwise one line end is removed. A
 * `pin` is UTF-8 text, and may be empty.
 */
export function secret({ raw = false, pin = false, ...options }: SecretOptions): Key<Secret> {
  const allowed = 'a secret from a file or from an environment variable';
  const form = raw ? 'bytes' : pin ? 'pin' : 'secret';
  const schema = Type.Unknown({ ...options, form, allowed, default: new Secret(Buffer.alloc(0)) });
  return Type.Unsafe(Type.Refine(schema, (value) => value instanceof Secret));
}

/** For keys that are too short to be secure. */
export const ofBytes =
  (minimum: number) =>
  ({ length }: Buffer): string | undefined =>
    length < minimum ? `has ${length} bytes (${minimum} bytes or more)` : undefined;

export function list<T>(
  item: Key<T>,
  options: KeyOptions<readonly NoInfer<T>[]> & { readonly minItems?: 1 } & Pick<Notes, 'single' | 'pairs'>,
): Key<readonly T[]> {
  const { single, pairs, minItems } = options;
  const list = minItems === undefined ? 'a list' : 'a list with at least one item';
  const allowed = `${list}${single === true ? ', or one item' : ''}${pairs === true ? ', or a table' : ''}`;
  return Type.Unsafe(Type.Array(item, { ...options, allowed }));
}

/** A table with arbitrary keys. */
export function map<T>(
  value: Key<T>,
  options: KeyOptions<Readonly<Record<string, NoInfer<T>>>>,
): Key<Readonly<Record<string, T>>> {
  return Type.Unsafe(
    Type.Record(Type.String(), value, { ...options, allowed: `a table, each value ${notes(value).allowed}` }),
  );
}

/** A table. If it is absent and not optional, it counts as empty. */
export function table<P extends Keys>(
  description: string,
  properties: P,
  options: Omit<KeyOptions<never>, 'description'> & Pick<Notes, 'shorthand'> = {},
): Key<TableOf<P>> {
  const notes = { description, ...options, additionalProperties: false, allowed: 'a table' };
  return Type.Unsafe(Type.Object(properties, notes));
}

/** One of several tables; the key `on` selects it. */
export function variants<const K extends readonly Key<unknown>[]>(
  on: string,
  tables: K,
  options: KeyOptions<never>,
): Key<K[number]['~unsafe']> {
  return Type.Unsafe(Type.Union([...tables], { ...options, on, allowed: 'a table' }));
}

const absent = <T>(key: Key<T>): TOptional<Key<T>> => Type.Optional(key);

type ItemOptions<T> = Parameters<typeof list<T>>[1];

/** A key that may be absent and then is `undefined`: `optional(key)`, or `optional.text({ … })`. */
export const optional = Object.assign(absent, {
  text: (options: TextOptions) => absent(text(options)),
  integer: (...options: Parameters<typeof integer>) => absent(integer(...options)),
  seconds: (...options: Parameters<typeof seconds>) => absent(seconds(...options)),
  boolean: (options: KeyOptions<boolean>) => absent(boolean(options)),
  choice: <const V extends readonly string[]>(values: V, options: KeyOptions<V[number]>) =>
    absent(choice(values, options)),
  path: (options: Parameters<typeof path>[0]) => absent(path(options)),
  secret: (options: Parameters<typeof secret>[0]) => absent(secret(options)),
  list: <T>(item: Key<T>, options: ItemOptions<T>) => absent(list(item, options)),
  table: <P extends Keys>(description: string, properties: P, options?: Parameters<typeof table>[2]) =>
    absent(table(description, properties, options)),
});

/** @throws TypeError unless a builder above made the schema */
export function notes(schema: TSchema): Notes {
  if (!isNoted(schema)) throw new TypeError('the schema of a key says what it may hold');
  return schema;
}

function isNoted(schema: TSchema): schema is Notes {
  return 'allowed' in schema && 'description' in schema;
}

export function keysOf(schema: TObject): readonly (readonly [string, TSchema])[] {
  return Object.entries(schema.properties);
}

/** The tables of {@link variants}, by the value that selects them. */
export function tablesOf(schema: TUnion): ReadonlyMap<string, TObject> {
  const { on = '' } = notes(schema);
  return new Map(
    schema.anyOf.flatMap((alternative) => {
      const selector = IsObject(alternative) ? alternative.properties[on] : undefined;
      return IsObject(alternative) && IsEnum(selector) ? [[String(selector.enum[0]), alternative] as const] : [];
    }),
  );
}

/** The schema of a table; of {@link variants}, the one that the value selects. */
export function tableOf(schema: TSchema, value: unknown): TObject | undefined {
  if (IsObject(schema)) return schema;
  if (!IsUnion(schema) || !isTable(value)) return undefined;
  return tablesOf(schema).get(String(value[notes(schema).on ?? '']));
}
