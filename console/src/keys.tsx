/** The keyboard: `/` searches, `g` and a letter opens a page, `?` lists the keys. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { PLACES } from './pages/places.tsx';
import { shortcuts } from './shared/preferences.ts';
import { go } from './shared/router.ts';
import { may } from './shared/session.ts';
import { Dialog } from './ui/dialog.tsx';

export const keysOpen = signal(false);

/** Milliseconds for the second key after `g`. */
const SECOND_KEY = 1500;

export function Keys() {
  useEffect(() => {
    let since = -Infinity;
    const listen = (event: KeyboardEvent) => {
      if (shortcuts.value === 'off' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const isSecond = performance.now() - since < SECOND_KEY;
      since = -Infinity;
      if (isSecond) {
        const place = PLACES.find(({ key, roles }) => key === event.key && may(...roles));
        if (place === undefined) return;
        event.preventDefault();
        go(place.path === '' ? [] : [place.path]);
      } else if (event.key === 'g') since = performance.now();
      else if (event.key === '/') {
        event.preventDefault();
        search();
      } else if (event.key === '?') keysOpen.value = true;
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  if (!keysOpen.value) return null;
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (keysOpen.value = false)}>
      <dl class="keys">
        <Key keys="/" what={may('ra', 'auditor') ? 'Find anything' : 'Search on this page'} />
        <Key keys="?" what="Keyboard shortcuts" />
        {PLACES.filter(({ roles }) => may(...roles)).map(({ key, title }) => (
          <Key key={key} keys={`g ${key}`} what={title} />
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={shortcuts.value === 'on'}
          onChange={(event) => (shortcuts.value = event.currentTarget.checked ? 'on' : 'off')}
        />
        Single-key shortcuts
      </label>
      <form method="dialog" class="dialog-end">
        <button type="button" onClick={(event) => event.currentTarget.closest('dialog')?.close()}>
          Close
        </button>
      </form>
    </Dialog>
  );
}

function Key({ keys, what }: { readonly keys: string; readonly what: string }) {
  return (
    <div>
      <dt>
        {keys.split(' ').map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{what}</dd>
    </div>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input:not([type=checkbox], [type=radio]), select, textarea');
}

function search(): void {
  const field = document.querySelector<HTMLInputElement>('[data-find]') ?? document.querySelector('main [data-search]');
  if (!(field instanceof HTMLInputElement)) return;
  field.focus();
  field.select();
}
