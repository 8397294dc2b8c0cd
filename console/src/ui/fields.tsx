/** Form fields, and the filters of a list. The link of the page contains the filters. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { timeZone } from '../shared/preferences.ts';
import { go, route, setQuery } from '../shared/router.ts';
import { labels } from '../shared/service.ts';
import { Drop } from './drop.tsx';
import { isNarrow } from './screen.ts';
import { dateOf, startOfDay } from './time.ts';

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: ComponentChildren;
  readonly children: (attributes: {
    readonly id: string;
    readonly name: string;
    readonly 'aria-describedby'?: string;
  }) => ComponentChildren;
}

export function Field({ label, name, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, name, ...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }) })}
      {hint !== undefined && (
        <p id={`${id}-hint`} class="fine">
          {hint}
        </p>
      )}
    </div>
  );
}

/** What is wrong with a form. */
export function FieldProblem({ of }: { readonly of: string | undefined }) {
  return of === undefined ? null : (
    <p class="field-problem" role="alert">
      {of}
    </p>
  );
}

/** The trimmed value of a form field. */
export function valueOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** Handles the submission of a form. */
export const submitted =
  (run: (form: HTMLFormElement) => void) =>
  (event: Event): void => {
    event.preventDefault();
    if (event.currentTarget instanceof HTMLFormElement) run(event.currentTarget);
  };

export interface Filter {
  readonly name: string;
  readonly label: string;
  /** The choices, with words for a value if it needs them. Absent: any text, a date, or a label of the server. */
  readonly options?: readonly (string | readonly [value: string, words: string])[];
  readonly kind?: 'date' | 'label';
  readonly placeholder?: string;
}

type Choice = readonly [value: string, words: string];

/** The choices of a filter; undefined if it takes any text. */
function choicesOf({ options, kind }: Filter, now: string): readonly Choice[] | undefined {
  const offered = kind === 'label' ? labels.value : options;
  if (offered === undefined) return undefined;
  const choices = offered.map((choice): Choice => (typeof choice === 'string' ? [choice, choice] : choice));
  const isKnown = now === '' || choices.some(([value]) => value === now);
  return isKnown ? choices : [...choices, [now, now]];
}

/** One line has the search and the choices. The other filters are behind a button. The next line has chips for them, and the tools. */
interface FiltersProps {
  readonly of: readonly Filter[];
  readonly search: string;
  /** Buttons for all records that match the filters. */
  readonly tools?: ComponentChildren;
}

export function Filters({ of, search, tools = false }: FiltersProps) {
  const { path, query } = route.value;
  const read = (form: HTMLFormElement) =>
    setQuery(
      Object.fromEntries(
        of.map(({ name, kind }) => {
          const before = query[name];
          // The panel behind the button is closed.
          if (form.elements.namedItem(name) === null) return [name, before];
          const value = valueOf(form, name);
          if (kind !== 'date') return [name, value];
          // A link may have a time of that day.
          const isSame = before !== undefined && dateOf(before, timeZone.value) === value;
          return [name, isSame ? before : startOfDay(value, timeZone.value)];
        }),
      ),
    );
  const [first, ...rest] = of;
  const isInLine = (filter: Filter): boolean => !isNarrow.value && choicesOf(filter, '') !== undefined;
  const inLine = rest.filter(isInLine);
  const behind = rest.filter((filter) => !isInLine(filter));
  const active = behind.filter(({ name }) => query[name] !== undefined);
  const field = (filter: Filter) => <FilterField key={filter.name} filter={filter} now={query[filter.name] ?? ''} />;
  return (
    <form
      class="filters"
      role="search"
      aria-label={search}
      key={JSON.stringify([path, query])}
      onSubmit={submitted(read)}
    >
      {first !== undefined && field(first)}
      {inLine.map(field)}
      {behind.length > 0 && (
        <Drop label={active.length === 0 ? 'Filters' : `Filters (${active.length})`}>
          <div class="drop-fields">
            {behind.map(field)}
            <button type="submit">Apply</button>
          </div>
        </Drop>
      )}
      {(tools !== false || of.some(({ name }) => query[name] !== undefined)) && (
        <div class="chips">
          {active.map((filter) => (
            <Chip key={filter.name} filter={filter} value={query[filter.name] ?? ''} />
          ))}
          <button type="button" class="quiet" onClick={() => go(path)}>
            Clear
          </button>
          {tools}
        </div>
      )}
    </form>
  );
}

function Chip({ filter, value }: { readonly filter: Filter; readonly value: string }) {
  const { name, label, kind } = filter;
  const words =
    kind === 'date'
      ? dateOf(value, timeZone.value)
      : (choicesOf(filter, value)?.find(([choice]) => choice === value)?.[1] ?? value);
  return (
    <button
      type="button"
      class="chip"
      title={`Remove this filter: ${label} ${words}`}
      onClick={() => setQuery({ [name]: undefined })}
    >
      <span>
        {label}: {words}
      </span>
      <span aria-hidden="true">✕</span>
    </button>
  );
}

function FilterField({ filter, now }: { readonly filter: Filter; readonly now: string }) {
  const id = useId();
  const { name, label, kind, placeholder } = filter;
  const choices = choicesOf(filter, now);
  return (
    <div class={choices === undefined ? 'filter' : 'filter choice'}>
      <label for={id}>{label}</label>
      {choices !== undefined ? (
        <select id={id} name={name} onChange={(event) => event.currentTarget.form?.requestSubmit()}>
          <option value="" selected={now === ''}>
            any
          </option>
          {choices.map(([value, words]) => (
            <option key={value} value={value} selected={value === now}>
              {words}
            </option>
          ))}
        </select>
      ) : kind === 'date' ? (
        <input id={id} name={name} type="date" defaultValue={now === '' ? '' : dateOf(now, timeZone.value)} />
      ) : (
        <input
          id={id}
          name={name}
          type="search"
          autoComplete="off"
          spellcheck={false}
          data-search
          defaultValue={now}
          {...(placeholder === undefined ? {} : { placeholder })}
        />
      )}
    </div>
  );
}
