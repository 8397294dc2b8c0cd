/**
 * Reads a parsed TOML document against the schema and reports every problem. It always returns a complete value, with
 * defaults or empty values in place of invalid ones, so that cross-key checks can run too.
 */
import { resolve } from 'node:path';
import {
  IsArray,
  IsBoolean,
  IsEnum,
  IsInteger,
  IsNumber,
  IsObject,
  IsOptional,
  IsRecord,
  IsUnion,
  RecordValue,
  type TArray,
  type TObject,
  type TRecord,
  type TSchema,
  type TUnion,
} from 'typebox';
import { Check, Create } from 'typebox/value';
import { keysOf, notes, tablesOf } from './keys.ts';
import { editDistance, nearest } from './nearest.ts';
import { type Fault, isTable, type Problem, type Table, typeName } from './problem.ts';
import { Secret, secretFromEnv, type SecretForm, secretFromFile, type Surroundings } from './secret.ts';

const SECRET_NAME = /(^|_)(pin|password|passphrase|passwd|secret|hmac_key|lookup_key|symmetric_key|token)$/i;

/** Keys of earlier versions and their replacements. */
const REMOVED: Readonly<Record<string, string>> = {
  'server.workers':
    'removed in version 0.2: a server is one process (for several processes, run several nodes with store.driver = "postgres", ' +
    'on one host with server.reuse_port = true: docs/guides/nodes-on-one-host.md)',
};

/** Maximum edit distance of a typing error. */
const MISTYPED = 3;

/**
 * Checks the key names of a table.
 * @param root searched for the key in other tables
 * @param also further names that the caller handles
 */
function checkKeys(root: TObject, table: TObject, raw: Table, key: string, also: readonly string[]): Problem[] {
  const known = keysOf(table).flatMap(([name, child]) => (isSecret(child) ? [`${name}_file`, `${name}_env`] : [name]));
  const unknown = Object.keys(raw).filter((name) => !known.includes(name) && !also.includes(name));
  return unknown.map((name) => {
    const child = table.properties[name];
    const message =
      child !== undefined && isSecret(child)
        ? `a secret must not be in the configuration file (${name}_file = "path" or ${name}_env = "VARIABLE")`
        : explain(root, known, name, key);
    return { key: key === '' ? name : `${key}.${name}`, message };
  });
}

const isSecret = (schema: TSchema): boolean => secretForm(schema) !== undefined;

function secretForm(schema: TSchema): SecretForm | undefined {
  const { form } = notes(schema);
  return form === 'secret' || form === 'bytes' || form === 'pin' ? form : undefined;
}

function explain(root: TObject, known: readonly string[], name: string, key: string): string {
  const removed = REMOVED[key === '' ? name : `${key}.${name}`];
  if (removed !== undefined) return removed;
  const suggestion = suggest(root, known, name, key);
  const secret = SECRET_NAME.test(name)
    ? 'unknown key, and a secret must not be in the configuration file: secrets are given as *_file or *_env'
    : 'unknown key';
  return suggestion === undefined ? secret : `${secret} (the nearest known one is "${suggestion}")`;
}

function suggest(root: TObject, known: readonly string[], name: string, key: string): string | undefined {
  const sibling = nearest(name, known);
  const far = sibling === undefined || editDistance(name, sibling) > Math.min(MISTYPED, name.length / 2);
  const elsewhere = far ? findKey(root, '', name) : undefined;
  return elsewhere ?? (sibling === undefined || key === '' ? sibling : `${key}.${sibling}`);
}

/** The first key with this name anywhere in the schema. */
function findKey(schema: TSchema, path: string, name: string): string | undefined {
  for (const [child, inner] of children(schema)) {
    const here = [path, child].filter((part) => part !== '').join('.');
    const found = child === name ? here : findKey(inner, here, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A schema's members by name; lists and variants add no name. */
function children(schema: TSchema): readonly (readonly [string, TSchema])[] {
  if (IsObject(schema)) return keysOf(schema);
  if (IsArray(schema)) return [['', schema.items]];
  return IsUnion(schema) ? schema.anyOf.map((alternative) => ['', alternative] as const) : [];
}

interface Reading {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Secrets whose files cannot be read. */
  readonly faults: readonly Fault[];
}

export async function readDocument(schema: TObject, document: Table, where: Surroundings): Promise<Reading> {
  const reader = new Reader(schema, where);
  return { value: await reader.table(schema, document, ''), problems: reader.problems, faults: reader.faults };
}

class Reader {
  readonly problems: Problem[] = [];
  readonly faults: Fault[] = [];
  readonly #root: TObject;
  readonly #where: Surroundings;

  constructor(root: TObject, where: Surroundings) {
    this.#root = root;
    this.#where = where;
  }

  /** @param also names that the caller handles */
  async table(schema: TObject, raw: Table, key: string, also: readonly string[] = []): Promise<Table> {
    this.problems.push(...checkKeys(this.#root, schema, raw, key, also));
    const values: [string, unknown][] = [];
    for (const [name, child] of keysOf(schema)) {
      const path = key === '' ? name : `${key}.${name}`;
      const { elsewhere } = notes(child);
      const other = elsewhere?.value(raw);
      const form = secretForm(child);
      const [first = name, ...more] = form === undefined ? [name] : [`${name}_file`, `${name}_env`];
      const twice = other === undefined ? undefined : [first, ...more].find((key) => key in raw);
      if (elsewhere !== undefined && twice !== undefined)
        this.#problem(`${key}.${twice}`, `is given, and so is ${elsewhere.name}`, 'one of the two');
      const given = other === undefined || twice !== undefined ? raw : { ...raw, [first]: other };
      const at = given === raw ? path : `${key}.${elsewhere?.key ?? name}`;
      const value =
        form === undefined
          ? await this.#value(child, given[name], at)
          : await this.#secret(child, form, given, path, name, given === raw ? undefined : at);
      if (value !== undefined) values.push([name, value]);
    }
    return Object.fromEntries(values);
  }

  async #value(schema: TSchema, raw: unknown, key: string): Promise<unknown> {
    const { shorthand, single, pairs, default: given } = notes(schema);
    if (raw === undefined) {
      if (given !== undefined) return this.#standIn(schema);
      if (IsOptional(schema)) return undefined;
      return IsObject(schema) ? this.table(schema, {}, key) : this.#wrong(schema, 'is missing', key);
    }
    if (IsObject(schema) && shorthand !== undefined && typeof raw === 'string')
      return this.table(schema, { [shorthand]: raw }, key);
    if (IsObject(schema) && isTable(raw)) return this.table(schema, raw, key);
    if (IsUnion(schema) && isTable(raw)) return this.#variants(schema, raw, key);
    if (IsRecord(schema) && isTable(raw)) return this.#map(schema, raw, key);
    if (IsArray(schema) && single === true && typeof raw === 'string') return this.#list(schema, [raw], key);
    if (IsArray(schema) && pairs === true && isTable(raw))
      return this.#list(
        schema,
        Object.entries(raw).map(([name, value]) => (typeof value === 'string' ? `${name}=${value}` : value)),
        key,
      );
    if (IsArray(schema) && Array.isArray(raw)) return this.#list(schema, raw, key);
    return this.#scalar(schema, raw, key);
  }

  #scalar(schema: TSchema, given: unknown, key: string): unknown {
    const { check, form, words = [] } = notes(schema);
    const isText = (form === 'time' && given instanceof Date) || (form === 'integer' && typeof given === 'bigint');
    const raw = !isText ? given : given instanceof Date ? given.toISOString() : String(given);
    const reason = mismatch(schema, raw) ?? check?.(String(raw));
    if (reason !== undefined) return this.#wrong(schema, reason, key);
    if (form === 'path' && !words.includes(String(raw))) return resolve(this.#where.folder, String(raw));
    return typeof raw === 'bigint' ? Number(raw) : raw;
  }

  async #list(schema: TArray, raw: readonly unknown[], key: string): Promise<unknown> {
    if (raw.length === 0 && !Check(schema, raw)) return this.#wrong(schema, 'is empty', key);
    const items: unknown[] = [];
    for (const [index, item] of raw.entries()) items.push(await this.#value(schema.items, item, `${key}[${index}]`));
    return items;
  }

  async #map(schema: TRecord, raw: Table, key: string): Promise<Table> {
    const values: [string, unknown][] = [];
    for (const [name, value] of Object.entries(raw)) {
      const path = `${key}.${/^[\w-]+$/.test(name) ? name : `"${name}"`}`;
      values.push([name, await this.#value(RecordValue(schema), value, path)]);
    }
    return Object.fromEntries(values);
  }

  async #variants(schema: TUnion, raw: Table, key: string): Promise<unknown> {
    const { on = '' } = notes(schema);
    const tables = tablesOf(schema);
    const names = [...tables.keys()];
    const selector = raw[on];
    const chosen = typeof selector === 'string' ? tables.get(selector) : undefined;
    if (chosen !== undefined) {
      // Reports it as belonging to another variant rather than as unknown.
      const foreign = names.filter((name) => name !== selector && name in raw);
      for (const name of foreign)
        this.#problem(`${key}.${name}`, `requires ${on} = "${name}"`, `${on} is "${String(selector)}"`);
      return this.table(chosen, raw, key, foreign);
    }
    const wrong = typeof selector === 'string' ? `"${selector}" is not known` : `is ${typeName(selector)}`;
    const allowed = names.map((name) => `"${name}"`).join(', ');
    this.#problem(`${key}.${on}`, selector === undefined ? 'is missing' : wrong, allowed);
    const guess = names.find((name) => name in raw) ?? nearest(String(selector), names) ?? '';
    const table = tables.get(guess);
    return table === undefined ? Create(schema) : this.table(table, { ...raw, [on]: guess }, key, names);
  }

  /** @param from the key that contains the path of the file, if it is another one */
  async #secret(
    schema: TSchema,
    form: SecretForm,
    raw: Table,
    key: string,
    name: string,
    from?: string,
  ): Promise<unknown> {
    const file = raw[`${name}_file`];
    const variable = raw[`${name}_env`];
    const source = file ?? variable;
    if (source === undefined) {
      if (IsOptional(schema)) return undefined;
      // checkKeys has reported an inline secret.
      if (!(name in raw)) this.#problem(key, 'is missing', `${name}_file = "path" or ${name}_env = "VARIABLE"`);
      return Create(schema);
    }
    if (file !== undefined && variable !== undefined) {
      this.#problem(key, `both ${name}_file and ${name}_env are given`, 'one of the two');
      return Create(schema);
    }
    const at = from ?? `${key}${file === undefined ? '_env' : '_file'}`;
    if (typeof source !== 'string' || source === '') {
      this.#problem(at, `is ${source === '' ? 'empty' : typeName(source)}`, file === undefined ? 'a name' : 'a path');
      return Create(schema);
    }
    const { fits } = notes(schema);
    const misfit = (loaded: Secret | string) => (loaded instanceof Secret ? fits?.(loaded.reveal()) : undefined);
    if (file === undefined) {
      const loaded = secretFromEnv(source, form, this.#where);
      const message = misfit(loaded);
      if (message !== undefined) this.problems.push({ key, message });
      if (loaded instanceof Secret) return named(loaded, at);
      this.#problem(at, loaded, 'the name of a variable that is set');
      return Create(schema);
    }
    const loaded = await secretFromFile(source, form, this.#where);
    const message = misfit(loaded);
    const kept = loaded instanceof Secret && message === undefined ? loaded : this.#where.secretBefore?.(at, source);
    if (!(loaded instanceof Secret))
      this.faults.push({ key: at, message: `${loaded} (a readable file)`, isKept: kept !== undefined });
    else if (message !== undefined) this.faults.push({ key, message, isKept: kept !== undefined });
    if (kept !== undefined) this.#where.keepSecret?.(at, source, kept);
    return kept === undefined ? Create(schema) : named(kept, at);
  }

  #wrong(schema: TSchema, reason: string, key: string): unknown {
    this.#problem(key, reason, notes(schema).allowed);
    return this.#standIn(schema);
  }

  /** The default, or an empty value of the right type; the configuration is refused anyway. */
  #standIn(schema: TSchema): unknown {
    const { form, default: given } = notes(schema);
    if (form === 'path' && typeof given === 'string') return resolve(this.#where.folder, given);
    if (given === undefined) return Create(schema);
    return typeof given === 'object' ? structuredClone(given) : given;
  }

  #problem(key: string, message: string, hint: string): void {
    this.problems.push({ key, message: `${message} (${hint})` });
  }
}

/** @param key that contains the path or the variable */
const named = (secret: Secret, key: string): Secret => new Secret(secret.reveal(), key.slice(key.lastIndexOf('.') + 1));

/** Why a value does not match the schema's type, or undefined. */
function mismatch(schema: TSchema, raw: unknown): string | undefined {
  // TOML integers are bigint here; 1.0 is not an integer.
  const value = typeof raw === 'bigint' && (IsInteger(schema) || IsNumber(schema)) ? Number(raw) : raw;
  if ((typeof raw !== 'number' || IsNumber(schema)) && Check(schema, value)) return undefined;
  if (IsEnum(schema) && typeof raw === 'string') return `"${raw}" is not known`;
  if (typeof raw === 'bigint' && IsInteger(schema)) return `${raw} is out of range`;
  // Keys of other types could contain a secret by mistake.
  const isHarmless = IsInteger(schema) || IsNumber(schema) || IsBoolean(schema);
  return `${isHarmless && typeof raw === 'string' ? `${JSON.stringify(raw)} ` : ''}is ${typeName(raw)}`;
}
