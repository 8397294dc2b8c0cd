/** Maps audit records to statistics. */
import type { AuditEvent } from '../audit/event.ts';
import type { ChainedRecord } from '../audit/record.ts';
import { labelOf } from './certificate-store.ts';
import { toRecord } from './operations/audit.ts';
import { STATISTICS_HOUR, type Statistic } from './statistics-store.ts';

const OF_TYPE = new Map<string, Statistic>([
  ['certificate.issued', 'issued'],
  ['certificate.denied', 'refused'],
  ['certificate.failed', 'failed'],
  ['certificate.revoked', 'revoked'],
  ['request.queued', 'queued'],
]);

export interface Added {
  /** Hours since the epoch. */
  readonly hour: number;
  /** The label; empty: none. */
  readonly ca: string;
  readonly what: Statistic;
  count: number;
}

const isAuthentication = (type: string): boolean => type.startsWith('auth.');

function statisticOf({ type, outcome, operation }: AuditEvent): Statistic | undefined {
  if (type === 'certificate.issued' && operation === 'simplereenroll') return 'renewed';
  if (isAuthentication(type)) return outcome === 'failure' ? 'unauthenticated' : undefined;
  return OF_TYPE.get(type);
}

export type Countable = Pick<ChainedRecord, 'type' | 'time' | 'line' | 'event'>;

/** @param records with their lines in the audit file, which are parsed if a record is not new */
export function countRecords(records: readonly Countable[]): Added[] {
  const counts = new Map<string, Added>();
  for (const { type, time, line, event } of records) {
    if (!OF_TYPE.has(type) && !isAuthentication(type)) continue;
    const record = event ?? toRecord({ line });
    const what = statisticOf(record);
    if (what === undefined) continue;
    const hour = Math.floor(time / STATISTICS_HOUR);
    // PostgreSQL's text cannot hold U+0000; its symbol replaces it.
    const ca = labelOf(record)?.replaceAll('\0', '\u2400') ?? '';
    const key = `${hour} ${what} ${ca}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { hour, ca, what, count: 1 });
    else known.count++;
  }
  return [...counts.values()];
}
