/** Substring search by trigrams: names with all trigrams of the substring are candidates. */
import type { Order } from '../../page.ts';
import type { Db } from '../database.ts';
import { Statements } from '../statements.ts';
import type { Source } from './list-search.ts';

/** Trigrams per search: the rarest ones. More cost more than they exclude. */
const LOOKED_FOR = 3;
/** The entry of a trigram whose row number estimates its rarity. */
const SAMPLE = 200;
/** Characters of a trigram. */
const LENGTH = 3;

/** Whether trigrams can find a substring. No name contains a line feed. */
export const hasTrigrams = (part: string): boolean => Array.from(part).length >= LENGTH && !part.includes('\n');

export function trigramsOf(text: string): ReadonlySet<string> {
  const characters = Array.from(text);
  return new Set(characters.slice(LENGTH - 1).map((_, n) => characters.slice(n, n + LENGTH).join('')));
}

export function trigramMatches(db: Db, table: string): (parts: readonly (readonly [string, string])[]) => string {
  const statements = new Statements(db);
  const nth = `SELECT rowid AS place FROM ${table} WHERE ${table} MATCH ? ORDER BY rowid LIMIT 1 OFFSET ${SAMPLE}`;
  // The later the entry, the rarer the trigram.
  const rarity = (match: string): number =>
    statements.get<{ place: number }>(nth, match)?.place ?? Number.MAX_SAFE_INTEGER;
  const ofPart = (column: string, part: string): string => {
    const all = trigramsOf(part);
    const rarest = [...all]
      .map((trigram) => `${column} : "${trigram.replaceAll('"', '""')}"`)
      .map((match) => ({ match, rarity: all.size <= LOOKED_FOR ? 0 : rarity(match) }))
      .sort((a, b) => b.rarity - a.rarity)
      .slice(0, LOOKED_FOR);
    return rarest.map(({ match }) => `(${match})`).join(' AND ');
  };
  return (parts) => parts.map(([column, part]) => ofPart(column, part)).join(' AND ');
}

/**
 * A list whose beginning is indexed, while its newest rows are not.
 * @param upto the last indexed row
 * @param indexed finds rows up to it; its steps end there
 * @param plain finds any row
 */
export function withTail<Row>(upto: number, indexed: Source<Row>, plain: Source<Row>, order: Order): Source<Row> {
  if (order === 'asc')
    return {
      end: (after) => (after < upto ? Math.min(indexed.end(after) ?? upto, upto) : plain.end(after)),
      read: (after, end, take) => (after < upto ? indexed : plain).read(after, end, take),
    };
  return {
    end: (after) => (after > upto + 1 ? Math.max(plain.end(after) ?? 0, upto + 1) : indexed.end(after)),
    read: (after, end, take) => (after > upto + 1 ? plain : indexed).read(after, end, take),
  };
}

/** The end of the next window. @param size rows */
export const windowEnd = (after: number, size: number, order: Order, upto: number): number | undefined => {
  if (order === 'asc') return after + size;
  const end = Math.min(after, upto + 1) - size;
  return end <= 1 ? undefined : end;
};
