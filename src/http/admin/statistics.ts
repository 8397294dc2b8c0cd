import { Type } from '@fastify/type-provider-typebox';
import { badRequest } from '../../errors.ts';
import { STATISTICS, STATISTICS_HOUR, type Count, type Statistic } from '../../store/statistics-store.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { limited, pendingRejections } from './access.ts';
import { route } from './route.ts';
import { Integer, oneOf, Timestamp, titled, whole } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { parseOptionalTimestamp } from './values.ts';

const INTERVALS = { hour: STATISTICS_HOUR, day: 24 * STATISTICS_HOUR } as const;
/** Default number of intervals: a day of hours, a month of days. */
const SHOWN = { hour: 24, day: 30 } as const;
/** Maximum per response. A day is 24 rows per type and CA. */
const MAX_INTERVALS = { hour: 1000, day: 400 } as const;

const MEANINGS: Readonly<Record<Statistic, string>> = {
  issued: 'Certificates issued, without renewals.',
  renewed: 'Certificates issued by simplereenroll.',
  refused: 'Rejected requests of authenticated clients.',
  failed: 'Requests that failed in the CA or in this server.',
  queued: 'Requests queued for approval.',
  revoked: 'Certificates revoked.',
  unauthenticated: 'Audit records of rejected credentials. Repeated ones share a record.',
  rejected: 'Error responses of any code to devices, and rejected credentials of administrators.',
};

const counters = Object.fromEntries(STATISTICS.map((what) => [what, Integer(MEANINGS[what])] as const));

const Statistics = titled('Statistics', 'The events per interval.', {
  interval: oneOf(['hour', 'day']),
  since: Timestamp('The start of the first interval.'),
  until: Timestamp('The end of the last interval.'),
  items: Type.Array(
    Type.Object({ time: Timestamp('The start of the interval, UTC.'), ...counters }, { title: 'StatisticsItem' }),
    { description: 'One item per interval, also for intervals without events; the oldest first.' },
  ),
});

export function registerStatistics(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'GET /admin/statistics',
    access: ['ra', 'auditor', 'operator'],
    labels: 'records',
    summary: 'Get issuance, renewals and rejections over time',
    description:
      'Counters per hour. The store keeps them longer than the audit records. The current interval is incomplete; ' +
      `at most ${MAX_INTERVALS.hour} hours or ${MAX_INTERVALS.day} days.`,
    query: {
      since: Type.Optional(Timestamp('Intervals from this time on; default one day ago, with `day` 30 days ago.')),
      until: Type.Optional(Timestamp('Intervals up to this time; default now.')),
      interval: Type.Optional(oneOf(['hour', 'day'], { description: 'Default `hour`; days are in UTC.' })),
      ca: whole('A label.'),
    },
    response: { 200: Statistics },
    handler: async (request) => {
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
      const pending = pendingRejections(deps, request)
        .filter((row) => ca === undefined || row.ca === ca)
        .map(({ count }) => ({ time: begin(deps.now()), what: 'rejected' as const, count }));
      return {
        interval,
        since: formatTimestamp(since),
        until: formatTimestamp(until),
        items: itemsOf([...counts, ...pending], since, until, step),
      };
    },
  });
}

function itemsOf(counts: readonly Count[], since: number, until: number, step: number) {
  const none = Object.fromEntries(STATISTICS.map((what) => [what, 0]));
  const items = new Map<number, Record<string, number>>();
  for (let time = since; time < until; time += step) items.set(time, { ...none });
  for (const { time, what, count } of counts) {
    const item = items.get(time);
    if (item !== undefined) item[what] = count + (item[what] ?? 0);
  }
  return [...items].map(([time, item]) => ({ time: formatTimestamp(time), ...item }));
}
