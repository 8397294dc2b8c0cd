/** What this browser keeps: how the console looks and listens to keys. Nothing of anybody's data. */
import { effect, signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

const isTheme = (value: string | null): value is Theme => value === 'light' || value === 'dark';

const kept = localStorage.getItem('theme');
export const theme = signal<Theme>(isTheme(kept) ? kept : 'auto');
/** Single keys do something (WCAG 2.1.4 wants a way to switch that off). */
export const hasShortcuts = signal(localStorage.getItem('shortcuts') !== 'off');

effect(() => {
  if (theme.value === 'auto') {
    delete document.documentElement.dataset['theme'];
    localStorage.removeItem('theme');
  } else {
    document.documentElement.dataset['theme'] = theme.value;
    localStorage.setItem('theme', theme.value);
  }
});

effect(() => {
  if (hasShortcuts.value) localStorage.removeItem('shortcuts');
  else localStorage.setItem('shortcuts', 'off');
});
