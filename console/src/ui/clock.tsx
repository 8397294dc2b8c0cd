/** Times in the style and the zone that the user chose. */
import { signal } from '@preact/signals';
import { timeStyle, timeZone } from '../shared/preferences.ts';
import { ago, exactTime, shortTime } from './time.ts';

/** Updated every 30 seconds, so that relative times stay right. */
const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 30_000);

interface TimeProps {
  readonly at: string | null | undefined;
  readonly empty?: string;
}

/** A time in the chosen style. Hovering shows the other style. */
export function Time({ at, empty = '—' }: TimeProps) {
  if (at === null || at === undefined) return <span class="fine">{empty}</span>;
  const isNear = timeStyle.value === 'relative';
  const [distance, exact] = [ago(at, Math.max(now.value, Date.now())), exactTime(at, timeZone.value)];
  return (
    <time dateTime={at} title={isNear ? exact : `${exact}, ${distance}`}>
      {isNear ? distance : shortTime(at, timeZone.value)}
    </time>
  );
}

/** A time, absolute and relative. */
export function Moment({ at, empty = '—' }: TimeProps) {
  if (at === null || at === undefined) return <span class="fine">{empty}</span>;
  return (
    <time dateTime={at} title={at}>
      {exactTime(at, timeZone.value)} <span class="fine">({ago(at, Math.max(now.value, Date.now()))})</span>
    </time>
  );
}
