/**
 * Schema builders for `client.toml`, like the server's (src/config/keys.ts) but without TypeBox, whose loading alone
 * would exceed the client's time budget.
 */
import { resolve } from 'node:path';
import { editDistance, nearest } from '../../config/nearest.ts';
import { isTable, type Table, typeName } from '../../config/problem.ts';

/** Collects problems. */
interface Reading {
  /** Absolute folder of relative paths. */
  readonly folder: string;
  problem(key: string, reason: string, allowed: string): void;
}

export interface Key<T> {
  readonly description: string;
  /** The allowed values, as a noun phrase. */
  readonly allowed: string;
  /** For the reference; undefined: required, or a table. */
  readonly defaultText: string | undefined;
  /** Of a table, or of the tables in a list. */
  readonly keys: Readonly<Record<string, Key<unknown>>> | undefined;
  readonly isList: boolean;
  /** @param raw TOML value; undefined: the key is absent */
  read(raw: unknown, key: string, reading: Reading): T;
}

type Value<K> = K extends Key<infer T> ? T : never;
type TableValue<P> = { readonly [N in keyof P]: Value<P[N]> };

interface Options<T> {
  readonly description: string;
  /** Replaces an absent value, which is otherwise a problem. */
  readonly default?: T;
}

interface Scalar<T> extends Options<T> {
  readonly allowed: string;
  /** Replaces an invalid value without a default; the configuration is refused anyway. */
  readonly empty: T;
  /** undefined: wrong type; a string: why it is invalid. */
  readonly take: (raw: unknown, reading: Reading) => { readonly value: T } | string | undefined;
}

function scalar<T>({ description, allowed, default: given, empty, take }: Scalar<T>): Key<T> {
  const otherwise = given ?? empty;
  return {
    description,
    allowed,
    defaultText: given === undefined ? undefined : `\`${JSON.stringify(given)}\``,
    keys: undefined,
    isList: false,
    read(raw, key, reading) {
      if (raw === undefined) {
        if (given === undefined) reading.problem(key, 'is missing', allowed);
        return otherwise;
      }
      const taken = take(raw, reading);
      if (typeof taken === 'object') return taken.value;
      reading.problem(key, taken ?? `is ${typeName(raw)}`, allowed);
      return otherwise;
    },
  };
}

interface TextOptions extends Options<string> {
  readonly allowed: string;
  /** Returns the reason why a text is invalid. */
  readonly check?: (value: string) => string | undefined;
}

export function text({ check, ...options }: TextOptions): Key<string> {
  return scalar({
    ...options,
    empty: '',
    take: (raw) => (typeof raw === 'string' ? (check?.(raw) ?? { value: raw }) : undefined),
  });
}

/** A file or folder; made absolute. */
export function path({ description }: { readonly description: string }): Key<string> {
  return scalar({
    description,
    allowed: 'a path, relative to the configuration file',
    empty: '',
    take(raw, { folder }) {
      if (typeof raw !== 'string') return undefined;
      if (raw === '') return 'is empty';
      return raw.includes('\0') ? 'contains a NUL character' : { value: resolve(folder, raw) };
    },
  });
}

interface IntegerOptions extends Options<number> {
  readonly minimum: number;
  readonly maximum: number;
  readonly unit: string;
}

export function integer({ minimum, maximum, unit, ...options }: IntegerOptions): Key<number> {
  return scalar({
    ...options,
    allowed: `a whole number of ${unit} from ${minimum} to ${maximum}`,
    empty: minimum,
    take(raw) {
      if (typeof raw !== 'bigint') return undefined;
      const value = Number(raw);
      return value < minimum || value > maximum ? `is ${value}` : { value };
    },
  });
}

export function boolean(options: Options<boolean>): Key<boolean> {
  return scalar({
    ...options,
    allowed: 'true or false',
    empty: false,
    take: (raw) => (typeof raw === 'boolean' ? { value: raw } : undefined),
  });
}

export function choice<const V extends readonly [string, ...string[]]>(
  values: V,
  options: Options<V[number]>,
): Key<V[number]> {
  return scalar<V[number]>({
    ...options,
    allowed: values.map((value) => `"${value}"`).join(', '),
    empty: values[0],
    take(raw) {
      if (typeof raw !== 'string') return undefined;
      const value = values.find((value) => value === raw);
      return value === undefined
        ? `"${raw}" is not known (the nearest known one is "${nearest(raw, values) ?? ''}")`
        : { value };
    },
  });
}

/** A key that may be absent. */
export function optional<T>(key: Key<T>, defaultText = 'none'): Key<T | undefined> {
  return {
    ...key,
    defaultText,
    read: (raw, name, reading) => (raw === undefined ? undefined : key.read(raw, name, reading)),
  };
}

export function list<T>(item: Key<T>, { description }: { readonly description: string }, least = 0): Key<readonly T[]> {
  return {
    description,
    allowed: item.keys === undefined ? `a list, each ${item.allowed}` : 'one or more tables',
    defaultText: least === 0 ? '`[]`' : undefined,
    keys: item.keys,
    isList: true,
    read(raw, key, reading) {
      if (raw !== undefined && !Array.isArray(raw)) reading.problem(key, `is ${typeName(raw)}`, 'a list');
      const items: readonly unknown[] = Array.isArray(raw) ? raw : [];
      if (items.length < least) reading.problem(key, 'is missing', item.keys === undefined ? 'a list' : `[[${key}]]`);
      return items.map((element, index) => item.read(element, `${key}[${index}]`, reading));
    },
  };
}

/** One value, or a list of them. */
export function oneOrMore<T>(item: Key<T>): Key<readonly T[]> {
  const several = list(item, item, 1);
  return {
    ...several,
    allowed: `${item.allowed}, or a list of them`,
    isList: false,
    read: (raw, key, reading) =>
      raw === undefined || Array.isArray(raw) ? several.read(raw, key, reading) : [item.read(raw, key, reading)],
  };
}

export function table<P extends Readonly<Record<string, Key<unknown>>>>(
  keys: P,
  { description }: { readonly description: string },
): Key<TableValue<P>> {
  return {
    description,
    allowed: 'a table',
    defaultText: undefined,
    keys,
    isList: false,
    read(raw, key, reading) {
      if (raw !== undefined && !isTable(raw)) reading.problem(key, `is ${typeName(raw)}`, 'a table');
      return readTable(keys, isTable(raw) ? raw : {}, key, reading);
    },
  };
}

function readTable<P extends Readonly<Record<string, Key<unknown>>>>(
  keys: P,
  raw: Table,
  key: string,
  reading: Reading,
): TableValue<P> {
  const at = (name: string): string => (key === '' ? name : `${key}.${name}`);
  const known = Object.keys(keys);
  for (const name of Object.keys(raw)) {
    if (Object.hasOwn(keys, name)) continue;
    const close = nearest(name, known) ?? '';
    // No section has a similar name: naming one of them would mislead.
    const isFar = key === '' && editDistance(name, close) > name.length / 2;
    const help = isFar ? `known are ${known.join(', ')}` : `the nearest known one is "${close}"`;
    reading.problem(at(name), 'unknown key', help);
  }
  const values = Object.entries(keys).map(([name, child]) => [name, child.read(raw[name], at(name), reading)]);
  return Object.fromEntries(values) as TableValue<P>;
}
