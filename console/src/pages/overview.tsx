/** How the service is, on one page: each part for the roles that may know it. */
import { call } from '../api/client.ts';
import type { OverviewRecord, Statistics } from '../api/types.ts';
import { link, route, setQuery } from '../router.ts';
import { Heading, Panel } from '../ui/bits.tsx';
import { Bars } from '../ui/bars.tsx';
import { Chart, type Series } from '../ui/chart.tsx';
import { useEvents } from '../ui/events.ts';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { Health } from './health.tsx';

export function Overview() {
  const { loaded, again } = useLoad('overview', (signal) => call<OverviewRecord>('/admin/overview', { signal }));
  useEvents(['*'], again);
  return (
    <>
      <Heading title="Overview" {...(loaded.state === 'ready' ? { lead: `Estuary ${loaded.value.version}` } : {})} />
      <Activity />
      <Show of={loaded} again={again}>
        {(overview) => (
          <>
            <div class="columns">
              {overview.requests !== undefined && <Waiting of={overview.requests} />}
              {overview.certificates !== undefined && <Endings of={overview.certificates} now={overview.time} />}
            </div>
            {overview.health !== undefined && <Health of={overview.health} lockouts={overview.lockouts ?? 0} />}
          </>
        )}
      </Show>
    </>
  );
}

const SPANS: readonly (readonly [interval: 'hour' | 'day', words: string])[] = [
  ['hour', 'Last day'],
  ['day', 'Last 30 days'],
];

function Activity() {
  const interval = route.value.query['by'] === 'day' ? 'day' : 'hour';
  const { loaded, again } = useLoad(`statistics ${interval}`, (signal) =>
    call<Statistics>('/admin/statistics', { query: { interval }, signal }),
  );
  useEvents(['certificate.*', 'request.*', 'auth.*'], again);
  return (
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
        {({ items }) => <ActivityChart items={items} />}
      </Show>
    </Panel>
  );
}

function ActivityChart({ items }: Pick<Statistics, 'items'>) {
  const series: readonly Series[] = [
    { name: 'issued', color: 'accent', values: items.map(({ issued }) => issued) },
    { name: 'renewed', color: 'good', values: items.map(({ renewed }) => renewed) },
    { name: 'queued', color: 'waiting', values: items.map(({ queued }) => queued) },
    {
      name: 'refused or failed',
      color: 'bad',
      values: items.map(({ refused, failed, unauthenticated }) => refused + failed + unauthenticated),
    },
  ];
  return <Chart title="Certificates and refusals over time" times={items.map(({ time }) => time)} series={series} />;
}

function Waiting({ of: { pending } }: { readonly of: NonNullable<OverviewRecord['requests']> }) {
  const all = pending.reduce((sum, { count }) => sum + count, 0);
  return (
    <Panel title="Waiting for approval">
      <p class="big">
        <a href={link(['requests'], { status: 'pending' })}>{all}</a>
      </p>
      {all === 0 ? (
        <p class="fine">Nothing waits.</p>
      ) : (
        <Bars
          of={pending.map(({ ca, count }) => ({
            name: ca,
            count,
            href: link(['requests'], { status: 'pending', ca }),
            kind: 'waiting',
          }))}
        />
      )}
    </Panel>
  );
}

/** A shorter period looks more urgent. */
const kindOf = (days: number): string => (days > 30 ? '' : days > 7 ? 'waiting' : 'bad');

function Endings({
  of: { valid, ending },
  now,
}: {
  readonly of: NonNullable<OverviewRecord['certificates']>;
  readonly now: string;
}) {
  const bars = ending.map(({ days, count }) => {
    const until = new Date(Date.parse(now) + days * 86_400_000).toISOString();
    return {
      name: days === 1 ? 'within a day' : `within ${days} days`,
      count,
      kind: kindOf(days),
      href: link(['certificates'], { status: 'valid', expires_before: until }),
    };
  });
  return (
    <Panel title="Valid certificates">
      <p class="big">
        <a href={link(['certificates'], { status: 'valid' })}>{valid.toLocaleString('en')}</a>
      </p>
      <Bars of={bars} />
    </Panel>
  );
}
