import { signal } from '@preact/signals';

const narrow = matchMedia('(max-width: 52rem)');

/** Whether the screen is a phone's, as the style sheet sees it. */
export const isNarrow = signal(narrow.matches);

narrow.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches;
});
