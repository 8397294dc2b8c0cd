/** A configuration on its way from one process of the service to another, secrets included: for a private channel only. */
import { isDeepStrictEqual } from 'node:util';
import { asConfig } from './schema.ts';
import type { Config } from './schema.ts';
import { Secret } from './secret.ts';
import { isTable } from './toml.ts';

/**
 * A configuration, or a part of one, as JSON can carry it. Holds the secrets in clear. A table says that it is one, so
 * that no key of an operator's can be mistaken for a secret.
 */
export function packConfig(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal().toString('base64') };
  if (Array.isArray(value)) return value.map(packConfig);
  if (!isTable(value)) return value;
  const given = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return { table: Object.fromEntries(given.map(([name, inner]) => [name, packConfig(inner)])) };
}

/** Whether two parts of a configuration say the same, secrets included. */
export function isSameConfig(one: unknown, other: unknown): boolean {
  // Packed, secrets can be compared like all else.
  return isDeepStrictEqual(packConfig(one), packConfig(other));
}

/**
 * What {@link packConfig} packed.
 *
 * @throws TypeError when it is something else
 */
export function unpackConfig(packed: unknown): Config {
  return asConfig(unpack(packed));
}

function unpack(packed: unknown): unknown {
  if (Array.isArray(packed)) return packed.map(unpack);
  if (!isTable(packed)) return packed;
  const { secret, table } = packed;
  if (typeof secret === 'string') return new Secret(Buffer.from(secret, 'base64'));
  return isTable(table)
    ? Object.fromEntries(Object.entries(table).map(([name, inner]) => [name, unpack(inner)]))
    : packed;
}
