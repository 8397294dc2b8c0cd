/** Times as the user wants them: near ones as a distance or all of them exactly, in the chosen zone. */
import { signal } from '@preact/signals';
import { timeStyle, timeZone } from '../preferences.ts';
import { ago, exactTime, shortTime } from './time.ts';

/** The time of the last look at the clock; distances are as old as this. */
const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 30_000);

interface TimeProps {
  readonly at: string | null | undefined;
  readonly empty?: string;
}

/** A moment, in the form that the user has chosen; the other one on hovering. */
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

/** A moment, exactly and as a distance. */
export function Moment({ at, empty = '—' }: TimeProps) {
  if (at === null || at === undefined) return <span class="fine">{empty}</span>;
  return (
    <time dateTime={at} title={at}>
      {exactTime(at, timeZone.value)} <span class="fine">({ago(at, Math.max(now.value, Date.now()))})</span>
    </time>
  );
}
