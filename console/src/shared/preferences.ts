/** Settings that this browser keeps. They contain no data of the server. */
import { effect, signal, type Signal } from '@preact/signals';

/** A signal that this browser keeps under a name, unless it has its default. */
function kept<T extends string>(name: string, usual: T, isValid: (value: string) => value is T): Signal<T> {
  const before = localStorage.getItem(name);
  const value = signal<T>(before !== null && isValid(before) ? before : usual);
  effect(() => {
    if (value.value === usual) localStorage.removeItem(name);
    else localStorage.setItem(name, value.value);
  });
  return value;
}

const oneOf =
  <T extends string>(...values: readonly T[]) =>
  (value: string): value is T =>
    values.some((known) => known === value);

export type Theme = 'auto' | 'light' | 'dark';
export const theme = kept<Theme>('theme', 'auto', oneOf('auto', 'light', 'dark'));

effect(() => {
  if (theme.value === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
});

/** Whether single-key shortcuts are on. WCAG 2.1.4 requires a way to turn them off. */
export const shortcuts = kept<'on' | 'off'>('shortcuts', 'on', oneOf('on', 'off'));

export type TimeStyle = 'relative' | 'absolute';
export const timeStyle = kept<TimeStyle>('times', 'relative', oneOf('relative', 'absolute'));

/** The zone of this computer. */
export const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

function isZone(value: string): value is string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** An IANA zone; the log and the API have UTC. */
export const timeZone = kept<string>('zone', 'UTC', isZone);

const anyText = (value: string): value is string => value !== '';
const keptColumns = kept<string>('columns', '{}', anyText);

/** The columns that the user chose for a list; undefined for the default. */
export function chosenColumns(list: string): readonly string[] | undefined {
  const chosen = readColumns()[list];
  return Array.isArray(chosen) ? chosen.filter((head): head is string => typeof head === 'string') : undefined;
}

export function chooseColumns(list: string, heads: readonly string[] | undefined): void {
  keptColumns.value = JSON.stringify({ ...readColumns(), [list]: heads });
}

function readColumns(): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(keptColumns.value);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
