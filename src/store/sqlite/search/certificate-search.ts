/** Which certificates a list has, and along which index they are found. */
import type { CertificateFilter, CertificateStatus } from '../../certificate-store.ts';
import type { Db } from '../database.ts';
import { fold } from './fold.ts';
import { type Condition, given, ListSearch } from './list-search.ts';
import { type SearchLimits, walk, type Walked } from './walk.ts';

const STATUSES: Readonly<Record<CertificateStatus, Condition>> = {
  revoked: { sql: 'revoked_at IS NOT NULL', index: 'certificate_revoked' },
  valid: { sql: 'revoked_at IS NULL AND not_after >= @now' },
  expired: { sql: 'revoked_at IS NULL AND not_after < @now' },
};

/** What each filter asks of a row; first those that mostly leave the least. */
function conditions(filter: CertificateFilter): readonly Condition[] {
  const { device_key, device, requester, ca, label, status, subject, san, issued_after, expires_before } = filter;
  return [
    ...given([
      { value: device_key, sql: 'device_key = @device_key', index: 'certificate_by_device' },
      { value: device, sql: 'device = @device', index: 'certificate_by_device_id' },
      { value: requester, sql: 'requester = @requester', index: 'certificate_by_requester' },
    ]),
    ...(status === undefined ? [] : [STATUSES[status]]),
    ...given([
      { value: label, sql: 'label = @label', index: 'certificate_by_label' },
      { value: ca, sql: 'ca = @ca', index: 'certificate_by_ca' },
      { value: expires_before, sql: 'not_after < @expires_before' },
      { value: issued_after, sql: 'coalesce(issued_at, not_before) > @issued_after' },
      { value: subject, sql: 'instr(subject_folded, @subject) > 0' },
      {
        value: san,
        sql: 'EXISTS (SELECT 1 FROM json_each(sans) WHERE instr(estuary_fold(value), @san) > 0)',
      },
    ]),
  ];
}

/** Finds certificates. @typeParam Row with its `position` */
export class CertificateSearch<Row> {
  readonly #list: ListSearch<Row>;

  constructor(db: Db, columns: string, limits: SearchLimits) {
    db.function('estuary_fold', { deterministic: true }, fold);
    this.#list = new ListSearch(db, { table: 'certificate', place: 'position', columns }, limits);
  }

  /** Those behind a place, in order. @param now milliseconds since the epoch, for their status */
  find(filter: CertificateFilter, now: number, after: number): Walked<Row> {
    const asked = conditions(filter);
    const { order = 'asc', limit, subject, san } = filter;
    const parameters = {
      ...filter,
      now,
      ...(subject === undefined ? {} : { subject: fold(subject) }),
      ...(san === undefined ? {} : { san: fold(san) }),
    };
    if (filter.serial === undefined) return this.#list.find(asked, parameters, { ...filter, after });
    const { table, limits } = this.#list;
    const ofSerial = 'SELECT position FROM certificate WHERE serial = @serial';
    const source = table.among(
      ofSerial,
      asked.map(({ sql }) => sql),
      parameters,
      order,
    );
    return walk(source, { after, order, take: limit + 1, patience: limits.patience });
  }
}
