/** A configuration on its way from one process of the service to another, secrets included: for a private channel only. */
import { deepFreeze } from './freeze.ts';
import { asConfig } from './schema.ts';
import type { Config } from './schema.ts';
import { Secret } from './secret.ts';

/** Scalars as they are; everything else says what it is, so that no key of an operator's can be mistaken for it. */
type Packed =
  | string
  | number
  | boolean
  | { readonly secret: string }
  | { readonly list: readonly Packed[] }
  | { readonly table: readonly (readonly [string, Packed])[] };

/** As JSON can carry it. Holds the secrets in clear. */
export function packConfig(config: Config): unknown {
  return pack(config);
}

/**
 * What {@link packConfig} packed.
 *
 * @throws TypeError when it is something else
 */
export function unpackConfig(packed: unknown): Config {
  return deepFreeze(asConfig(unpack(packed)));
}

function pack(value: unknown): Packed {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (value instanceof Secret) return { secret: value.reveal().toString('base64') };
  if (Array.isArray(value)) return { list: value.map(pack) };
  if (typeof value !== 'object' || value === null) throw new TypeError('a configuration holds no such value');
  const given = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return { table: given.map(([name, inner]) => [name, pack(inner)] as const) };
}

function unpack(packed: unknown): unknown {
  if (typeof packed !== 'object' || packed === null) return packed;
  if ('secret' in packed && typeof packed.secret === 'string') return new Secret(Buffer.from(packed.secret, 'base64'));
  if ('list' in packed && Array.isArray(packed.list)) return packed.list.map(unpack);
  if ('table' in packed && Array.isArray(packed.table)) return Object.fromEntries(packed.table.map(unpackEntry));
  throw new TypeError('this is no packed configuration');
}

function unpackEntry(entry: unknown): readonly [string, unknown] {
  const list: readonly unknown[] = Array.isArray(entry) ? entry : [];
  const [name, inner] = list;
  if (typeof name !== 'string') throw new TypeError('this is no packed configuration');
  return [name, unpack(inner)];
}
