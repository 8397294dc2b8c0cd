/**
 * The walk of a parsed TOML document along the schema. It reports every problem it meets and always gives back a
 * whole value: in place of what was wrong stands the default or an empty value, so that the checks across keys can
 * run too and everything is said at once.
 */
import { resolve } from 'node:path';
import { allowed } from './allowed.ts';
import { filler } from './filler.ts';
import type { IntegerNode, ListNode, MapNode, Node, SecretNode, StringNode, TableNode, VariantsNode } from './keys.ts';
import { secretFromEnv, secretFromFile } from './load-secret.ts';
import type { Surroundings } from './load-secret.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './problem.ts';
import { Secret } from './secret.ts';
import { isTable, typeName } from './toml.ts';
import type { Table } from './toml.ts';
import { checkKeys } from './unknown-keys.ts';

export interface Walk {
  readonly value: unknown;
  readonly problems: readonly Problem[];
}

/** Walks the whole document. */
export async function walk(root: TableNode, document: Table, where: Surroundings): Promise<Walk> {
  const walker = new Walker(where);
  return { value: await walker.table(root, document, ''), problems: walker.problems };
}

/** A value that the walker put in place of a wrong one; nothing more is to be said of it. */
class Guess {
  readonly value: string;
  constructor(value: string) {
    this.value = value;
  }
}

class Walker {
  readonly problems: Problem[] = [];
  readonly #where: Surroundings;

  constructor(where: Surroundings) {
    this.#where = where;
  }

  async table(
    node: TableNode,
    raw: Table,
    key: string,
    also: readonly string[] = [],
  ): Promise<Record<string, unknown>> {
    this.problems.push(...checkKeys(node, raw, key, also));
    const result: Record<string, unknown> = {};
    for (const [name, child] of node.keys) {
      const path = key === '' ? name : `${key}.${name}`;
      const value =
        child.kind === 'secret'
          ? await this.#secret(child, raw, path, name)
          : await this.#child(child, raw[name], path);
      if (value !== undefined) result[name] = value;
    }
    return result;
  }

  async #child(node: Node, raw: unknown, key: string): Promise<unknown> {
    if (raw === undefined) return this.#absent(node, key);
    if (raw instanceof Guess) return raw.value;
    return this.#present(node, raw, key);
  }

  async #absent(node: Node, key: string): Promise<unknown> {
    if (node.default !== undefined) return this.#default(node);
    if (node.optional) return undefined;
    if (node.kind === 'table') return this.table(node, {}, key);
    this.#problem(key, 'is missing', allowed(node));
    return this.#filler(node);
  }

  #default(node: Node): unknown {
    return node.kind === 'path' && typeof node.default === 'string'
      ? resolve(this.#where.folder, node.default)
      : structuredClone(node.default);
  }

  async #present(node: Node, raw: unknown, key: string): Promise<unknown> {
    switch (node.kind) {
      case 'string':
        return typeof raw === 'string' ? this.#string(node, raw, key) : this.#wrongType(node, raw, key);
      case 'integer':
        return typeof raw === 'bigint' ? this.#integer(node, raw, key) : this.#wrongType(node, raw, key);
      case 'boolean':
        return typeof raw === 'boolean' ? raw : this.#wrongType(node, raw, key);
      case 'choice':
        if (typeof raw !== 'string') return this.#wrongType(node, raw, key);
        if (node.values.includes(raw)) return raw;
        this.#problem(key, `"${raw}" is not known`, allowed(node));
        return this.#filler(node);
      case 'path':
        if (typeof raw !== 'string') return this.#wrongType(node, raw, key);
        if (raw === '' || raw.includes('\0')) return this.#wrong(node, 'is empty or no path', key);
        return node.words.includes(raw) ? raw : resolve(this.#where.folder, raw);
      case 'list':
        return Array.isArray(raw) ? this.#list(node, raw, key) : this.#wrongType(node, raw, key);
      case 'map':
        return isTable(raw) ? this.#map(node, raw, key) : this.#wrongType(node, raw, key);
      case 'table':
        if (typeof raw === 'string' && node.shorthand !== undefined)
          return this.table(node, { [node.shorthand]: raw }, key);
        return isTable(raw) ? this.table(node, raw, key) : this.#wrongType(node, raw, key);
      case 'variants':
        return isTable(raw) ? this.#variants(node, raw, key) : this.#wrongType(node, raw, key);
      case 'secret':
        return undefined;
    }
  }

  #string(node: StringNode, raw: string, key: string): unknown {
    const shown = node.sensitive ? 'the value' : `"${raw}"`;
    const reason = node.check?.(raw) ?? (node.pattern?.test(raw) === false ? `${shown} has the wrong form` : undefined);
    return reason === undefined ? raw : this.#wrong(node, reason, key);
  }

  #integer(node: IntegerNode, raw: bigint, key: string): unknown {
    const fits = raw >= BigInt(node.minimum) && raw <= BigInt(node.maximum) && raw % BigInt(node.multipleOf) === 0n;
    return fits ? Number(raw) : this.#wrong(node, `${raw.toString()} is out of range`, key);
  }

  async #list(node: ListNode, raw: readonly unknown[], key: string): Promise<unknown[]> {
    if (raw.length < node.minItems) this.#problem(key, 'is empty', allowed(node));
    const items: unknown[] = [];
    for (const [index, item] of raw.entries()) items.push(await this.#present(node.item, item, `${key}[${index}]`));
    return items;
  }

  async #map(node: MapNode, raw: Table, key: string): Promise<Record<string, unknown>> {
    const result: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(raw))
      result[name] = await this.#present(node.value, value, `${key}.${/^[\w-]+$/.test(name) ? name : `"${name}"`}`);
    return result;
  }

  async #variants(node: VariantsNode, raw: Table, key: string): Promise<unknown> {
    const selector = raw[node.on];
    const chosen = typeof selector === 'string' ? node.tables.get(selector) : undefined;
    if (chosen !== undefined) {
      // Named for what it is, not merely as an unknown key.
      const foreign = [...node.tables.keys()].filter((name) => name !== selector && name in raw);
      for (const name of foreign)
        this.#problem(`${key}.${name}`, `goes with ${node.on} = "${name}"`, `${node.on} is "${String(selector)}" here`);
      return this.table(chosen, raw, key, foreign);
    }
    const choices = [...node.tables.keys()];
    const guess = choices.find((name) => name in raw) ?? nearest(String(selector), choices);
    const table = node.tables.get(guess ?? '');
    const values = choices.map((name) => `"${name}"`).join(', ');
    const wrong = typeof selector === 'string' ? `"${selector}" is not known` : `is ${typeName(selector)}`;
    this.#problem(`${key}.${node.on}`, selector === undefined ? 'is missing' : wrong, values);
    if (table === undefined) return {};
    return this.table(table, { ...raw, [node.on]: new Guess(guess ?? '') }, key, choices);
  }

  async #secret(node: SecretNode, raw: Table, key: string, name: string): Promise<Secret | undefined> {
    const file = raw[`${name}_file`];
    const variable = raw[`${name}_env`];
    const forms = `${name}_file = "path" or ${name}_env = "VARIABLE"`;
    if (file !== undefined && variable !== undefined) {
      this.#problem(key, `both ${name}_file and ${name}_env are given`, 'one of the two');
      return new Secret(Buffer.alloc(0));
    }
    if (file === undefined && variable === undefined) {
      // An inline secret has been reported by checkKeys.
      if (!node.optional && !(name in raw)) this.#problem(key, 'is missing', forms);
      return node.optional ? undefined : new Secret(Buffer.alloc(0));
    }
    const source = file ?? variable;
    const at = `${key}${file === undefined ? '_env' : '_file'}`;
    if (typeof source !== 'string' || source === '') {
      this.#problem(at, `is ${source === '' ? 'empty' : typeName(source)}`, file === undefined ? 'a name' : 'a path');
      return new Secret(Buffer.alloc(0));
    }
    const loaded =
      file === undefined ? secretFromEnv(source, this.#where) : await secretFromFile(node, source, this.#where);
    if (loaded instanceof Secret) return loaded;
    this.#problem(at, loaded, file === undefined ? 'the name of a variable that is set' : 'a readable file');
    return new Secret(Buffer.alloc(0));
  }

  #wrongType(node: Node, raw: unknown, key: string): unknown {
    return this.#wrong(node, `is ${typeName(raw)}`, key);
  }

  #wrong(node: Node, reason: string, key: string): unknown {
    this.#problem(key, reason, allowed(node));
    return this.#filler(node);
  }

  #filler(node: Node): unknown {
    return node.default === undefined ? filler(node) : this.#default(node);
  }

  #problem(key: string, message: string, hint: string): void {
    this.problems.push({ key, message: `${message} (${hint})` });
  }
}
