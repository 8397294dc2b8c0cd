/** The state of the service on one page. What needs attention comes first. Each part appears only for its roles. */
import type { ComponentChildren } from 'preact';
import type { FleetSummary, OverviewRecord, Statistics } from '../api/types.ts';
import { timeZone } from '../shared/preferences.ts';
import { link, route, setQuery } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Bars } from '../ui/bars.tsx';
import { Heading, Panel } from '../ui/bits.tsx';
import { Chart, type Series } from '../ui/chart.tsx';
import { useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { shortTime } from '../ui/time.ts';
import { HOLDER_STATES } from './fleet.tsx';
import { Health, HealthTile } from './health.tsx';

const DAY = 86_400_000;

export function Overview() {
  const { loaded, again } = useRecord<OverviewRecord>('/admin/overview', ['*']);
  return (
    <>
      <Heading title="Overview" {...(loaded.state === 'ready' ? { lead: `Estuary ${loaded.value.version}` } : {})} />
      <Show of={loaded} again={again}>
        {(overview) => (
          <>
            <section class="tiles" aria-label="What needs attention">
              {overview.requests !== undefined && <Pending of={overview.requests} />}
              {overview.certificates !== undefined && <Expiring of={overview.certificates} now={overview.time} />}
              <Rejected of={overview.rejections} />
              {overview.health !== undefined && <HealthTile of={overview.health} lockouts={overview.lockouts ?? 0} />}
            </section>
            <div class="dashboard">
              <Activity />
              {overview.certificates !== undefined && <Validity of={overview.certificates} now={overview.time} />}
              <Holders />
              {overview.health !== undefined && <Health of={overview.health} />}
            </div>
          </>
        )}
      </Show>
    </>
  );
}

interface TileProps {
  readonly title: string;
  readonly count: number;
  readonly href?: string;
  /** The color of a count above zero. */
  readonly kind: 'waiting' | 'bad';
  readonly children: ComponentChildren;
}

function Tile({ title, count, href, kind, children }: TileProps) {
  const number = count.toLocaleString('en');
  return (
    <div class={count === 0 ? 'tile' : `tile ${kind}`}>
      <h2>{title}</h2>
      <p class="big">{href === undefined ? number : <a href={href}>{number}</a>}</p>
      <p class="fine">{children}</p>
    </div>
  );
}

function Pending({ of: { pending } }: { readonly of: NonNullable<OverviewRecord['requests']> }) {
  const count = pending.reduce((sum, queue) => sum + queue.count, 0);
  return (
    <Tile title="Pending requests" count={count} href={link(['requests'], { status: 'pending' })} kind="waiting">
      {count === 0
        ? 'No pending requests.'
        : pending.map((queue, n) => (
            <span key={queue.ca}>
              {n > 0 && ', '}
              <a href={link(['requests'], { status: 'pending', ca: queue.ca })}>
                {queue.ca} {queue.count.toLocaleString('en')}
              </a>
            </span>
          ))}
    </Tile>
  );
}

interface CertificatesProps {
  readonly of: NonNullable<OverviewRecord['certificates']>;
  readonly now: string;
}

/** Lists the certificates of a count. */
const expiringLink = (now: string, days: number): string =>
  link(['certificates'], { status: 'valid', expires_before: new Date(Date.parse(now) + days * DAY).toISOString() });

function Expiring({ of: { ending }, now }: CertificatesProps) {
  const within = (days: number): number => ending.find((period) => period.days === days)?.count ?? 0;
  return (
    <Tile title="Expiring within 7 days" count={within(7)} href={expiringLink(now, 7)} kind="waiting">
      <a href={expiringLink(now, 30)}>{within(30).toLocaleString('en')} within 30 days</a>
    </Tile>
  );
}

const CHANGES = ['certificate.*', 'request.*', 'auth.*'];

/** Codes on the tile; the rest is a number. */
const CODES = 4;

function Rejected({ of: { total, codes, since } }: { readonly of: OverviewRecord['rejections'] }) {
  const others = codes.slice(CODES).reduce((sum, { count }) => sum + count, 0);
  const audit = (type?: string): string => link(['audit'], { ...(type === undefined ? {} : { type }), since });
  return (
    <Tile title="Rejected, last 24 hours" count={total} kind="bad" {...(may('auditor') ? { href: audit() } : {})}>
      {total === 0
        ? 'No rejections.'
        : codes.slice(0, CODES).map(({ code, count, audit_type }, n) => {
            const words = `${count.toLocaleString('en')} ${code}`;
            return (
              <span key={code}>
                {n > 0 && ', '}
                {may('auditor') ? <a href={audit(audit_type)}>{words}</a> : words}
              </span>
            );
          })}
      {others > 0 && `, ${others.toLocaleString('en')} others`}
    </Tile>
  );
}

const SPANS: readonly (readonly [interval: 'hour' | 'day', words: string])[] = [
  ['hour', 'Last 24 hours'],
  ['day', 'Last 30 days'],
];

function Activity() {
  const interval = route.value.query['by'] === 'day' ? 'day' : 'hour';
  const { loaded, again } = useRecord<Statistics>('/admin/statistics', CHANGES, { interval });
  return (
    <div class="double">
      <Panel
        title="Activity"
        actions={SPANS.map(([name, words]) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={name === interval}
            onClick={() => setQuery({ by: name === 'day' ? name : undefined })}
          >
            {words}
          </button>
        ))}
      >
        <Show of={loaded} again={again} lines={4}>
          {({ items }) => <ActivityChart items={items} interval={interval} />}
        </Show>
      </Panel>
    </div>
  );
}

interface ActivityProps extends Pick<Statistics, 'items'> {
  readonly interval: 'hour' | 'day';
}

function ActivityChart({ items, interval }: ActivityProps) {
  // The server counts days in UTC.
  const zone = interval === 'day' ? 'UTC' : timeZone.value;
  const times = items.map(({ time }) => shortTime(time, zone));
  const series: readonly Series[] = [
    { name: 'issued', kind: '', values: items.map(({ issued }) => issued) },
    { name: 'renewed', kind: 'good', values: items.map(({ renewed }) => renewed) },
    { name: 'queued', kind: 'waiting', values: items.map(({ queued }) => queued) },
    {
      name: 'rejected or failed',
      kind: 'bad',
      // Version 0.2 counted audit records only.
      values: items.map(({ rejected, refused, failed, unauthenticated }) =>
        Math.max(rejected, refused + failed + unauthenticated),
      ),
    },
  ];
  return (
    <Chart
      title="Certificates and rejections"
      names={interval === 'day' ? times.map((time) => time.slice(0, 10)) : times}
      ticks={times.map((time, n) => {
        if (n % (interval === 'day' ? 7 : 6) !== 0) return '';
        return interval === 'day' ? time.slice(5, 10) : time.slice(11);
      })}
      series={series}
    />
  );
}

/** A shorter period is more urgent. */
const kindOf = (days: number): string => (days > 30 ? '' : days > 7 ? 'waiting' : 'bad');
const SHOWN = new Set([1, 7, 30, 90, 180, 365]);

function Validity({ of: { valid, ending }, now }: CertificatesProps) {
  return (
    <Panel title="Valid certificates by expiry">
      <Bars
        of={[
          ...ending
            .filter(({ days }) => SHOWN.has(days))
            .map(({ days, count }) => ({
              name: days === 1 ? 'within a day' : `within ${days} days`,
              count,
              kind: kindOf(days),
              href: expiringLink(now, days),
            })),
          { name: 'all', count: valid, href: link(['certificates'], { status: 'valid' }) },
        ]}
      />
    </Panel>
  );
}

function Holders() {
  const events = ['holder.*', 'certificate.*', 'request.*', 'device.*'];
  const { loaded, again } = useRecord<FleetSummary>('/admin/fleet/summary', events);
  return (
    <Panel title="Holders by state">
      <Show of={loaded} again={again} lines={4}>
        {({ labels, expiring }) => (
          <>
            <Bars
              of={HOLDER_STATES.map(({ name, kind }) => ({
                name,
                kind,
                count: Object.values(labels).reduce((sum, of) => sum + of[name], 0),
                ...(may('ra', 'auditor') ? { href: link(['fleet'], { state: name }) } : {}),
              }))}
            />
            <p class="fine">
              The newest certificate expires within 1 day: {expiring[1].toLocaleString('en')}, 7 days:{' '}
              {expiring[7].toLocaleString('en')}, 30 days: {expiring[30].toLocaleString('en')}
            </p>
          </>
        )}
      </Show>
    </Panel>
  );
}
