import { Type } from '@fastify/type-provider-typebox';
import { badRequest } from '../../errors.ts';
import { STATISTICS, STATISTICS_HOUR, type Count, type Statistic } from '../../store/statistics-store.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { limited } from './labels.ts';
import {
  errorResponses,
  formatTimestamp,
  oneOf,
  parseOptionalTimestamp,
  strictObject,
  Timestamp,
  whole,
} from './schemas.ts';

const INTERVALS = { hour: STATISTICS_HOUR, day: 24 * STATISTICS_HOUR } as const;
/** Default number of intervals: a day of hours, a month of days. */
const SHOWN = { hour: 24, day: 30 } as const;
/** Maximum per response. A day is 24 rows per type and CA. */
const MAX_INTERVALS = { hour: 1000, day: 400 } as const;

const MEANINGS: Readonly<Record<Statistic, string>> = {
  issued: 'Certificates issued, but for renewals.',
  renewed: 'Certificates issued by simplereenroll.',
  refused: 'Requests of authenticated clients that were refused.',
  failed: 'Requests that the CA, or something of ours, failed.',
  queued: 'Requests that were queued for approval.',
  revoked: 'Certificates revoked.',
  unauthenticated: 'Refused credentials of clients and administrators.',
};

const counters = Object.fromEntries(
  STATISTICS.map((what) => [what, Type.Integer({ description: MEANINGS[what] })] as const),
);

const Statistics = Type.Object(
  {
    interval: oneOf(['hour', 'day']),
    since: Timestamp('When the first interval begins.'),
    until: Timestamp('When the last one ends.'),
    items: Type.Array(
      Type.Object({ time: Timestamp('When the interval begins, UTC.'), ...counters }, { title: 'StatisticsItem' }),
      { description: 'One for each interval, also where nothing happened; the oldest first.' },
    ),
  },
  { title: 'Statistics', description: 'What happened, over time.' },
);

export function registerStatistics(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/statistics',
    {
      config: { access: ['ra', 'auditor', 'operator'], labels: 'records' },
      schema: {
        summary: 'Issuance, renewals and refusals over time',
        description:
          'Counters of whole hours, kept with the audit records and longer than these. An interval that has begun counts as far as it has come; ' +
          `at most ${MAX_INTERVALS.hour} hours or ${MAX_INTERVALS.day} days.`,
        tags: ['statistics'],
        querystring: strictObject({
          since: Type.Optional(Timestamp('The interval of this time and later; a day ago, or with `day` 30 days.')),
          until: Type.Optional(Timestamp('The interval of this time and before; now unless given.')),
          interval: Type.Optional(
            oneOf(['hour', 'day'], { description: '`hour` unless given; days are those of UTC.' }),
          ),
          ca: whole('A label.'),
        }),
        response: { 200: Statistics, ...errorResponses(400) },
      },
    },
    async (request) => {
      const { interval = 'hour', ca } = request.query;
      const step = INTERVALS[interval];
      const begin = (time: number): number => Math.floor(time / step) * step;
      const until = begin(parseOptionalTimestamp('until', request.query.until) ?? deps.now()) + step;
      const given = parseOptionalTimestamp('since', request.query.since);
      const since = given === undefined ? until - SHOWN[interval] * step : begin(given);
      if (since >= until) throw badRequest('FIELD_INVALID', 'since must not be later than until');
      if ((until - since) / step > MAX_INTERVALS[interval])
        throw badRequest(
          'FIELD_INVALID',
          `since and until must not be more than ${MAX_INTERVALS[interval]} intervals apart`,
        );
      const counts = await limited(deps, request).store.countEvents({ since, until, interval: step, ca });
      return {
        interval,
        since: formatTimestamp(since),
        until: formatTimestamp(until),
        items: itemsOf(counts, since, until, step),
      };
    },
  );
}

function itemsOf(counts: readonly Count[], since: number, until: number, step: number) {
  const none = Object.fromEntries(STATISTICS.map((what) => [what, 0]));
  const items = new Map<number, Record<string, number>>();
  for (let time = since; time < until; time += step) items.set(time, { ...none });
  for (const { time, what, count } of counts) {
    const item = items.get(time);
    if (item !== undefined) item[what] = count;
  }
  return [...items].map(([time, item]) => ({ time: formatTimestamp(time), ...item }));
}
