import { recentSearches, rememberSearch } from '../shared/find.ts';
import { shortcuts } from '../shared/preferences.ts';
import { go, route } from '../shared/router.ts';
import { submitted, valueOf } from './fields.tsx';

/** One search field for everything, on every page. `/` leads to it. */
export function FindField() {
  const { path, query } = route.value;
  const now = path[0] === 'find' ? (query['q'] ?? '') : '';
  const find = (form: HTMLFormElement) => {
    const text = valueOf(form, 'q');
    if (text !== '') rememberSearch(text);
    go(['find'], { q: text });
  };
  return (
    <form class="find" role="search" aria-label="Everything" key={now} onSubmit={submitted(find)}>
      <input
        type="search"
        name="q"
        aria-label="Find anything"
        placeholder="Find anything"
        title="A part of a name, an ID, or a serial number"
        list="recent-searches"
        autoComplete="off"
        spellcheck={false}
        maxLength={255}
        data-find
        defaultValue={now}
      />
      {shortcuts.value === 'on' && <kbd aria-hidden="true">/</kbd>}
      <datalist id="recent-searches">
        {recentSearches.value.map((search) => (
          <option key={search} value={search} />
        ))}
      </datalist>
    </form>
  );
}
