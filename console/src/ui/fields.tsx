/** Fields with their labels, and the filters of a list, which stand in its link. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { go, route, setQuery } from '../router.ts';
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

/** What a form's field holds. */
export function valueOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** Takes a form's submission and hands over the form. */
export const submitted =
  (run: (form: HTMLFormElement) => void) =>
  (event: Event): void => {
    event.preventDefault();
    if (event.currentTarget instanceof HTMLFormElement) run(event.currentTarget);
  };

export interface Filter {
  readonly name: string;
  readonly label: string;
  /** One of these; absent: any text, or a date. */
  readonly options?: readonly string[];
  readonly date?: boolean;
  readonly placeholder?: string;
}

/** The first text field is what `/` leads to. */
export function Filters({ of, search }: { readonly of: readonly Filter[]; readonly search: string }) {
  const { path, query } = route.value;
  const read = (form: HTMLFormElement) =>
    setQuery(
      Object.fromEntries(
        of.map(({ name, date }) => [name, date === true ? startOfDay(valueOf(form, name)) : valueOf(form, name)]),
      ),
    );
  const isFiltered = of.some(({ name }) => query[name] !== undefined);
  return (
    <form
      class="filters"
      role="search"
      aria-label={search}
      key={JSON.stringify([path, query])}
      onSubmit={submitted(read)}
    >
      {of.map((filter) => (
        <Field key={filter.name} label={filter.label} name={filter.name}>
          {(attributes) => <FilterInput filter={filter} attributes={attributes} value={query[filter.name] ?? ''} />}
        </Field>
      ))}
      <div class="filter-actions">
        <button type="submit">Search</button>
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => go(path)}>
            Clear
          </button>
        )}
      </div>
    </form>
  );
}

function FilterInput({
  filter: { options, date, placeholder },
  attributes,
  value,
}: {
  readonly filter: Filter;
  readonly attributes: object;
  readonly value: string;
}) {
  if (options !== undefined)
    return (
      <select {...attributes} onChange={(event) => event.currentTarget.form?.requestSubmit()}>
        <option value="" selected={value === ''}>
          any
        </option>
        {options.map((option) => (
          <option key={option} value={option} selected={option === value}>
            {option}
          </option>
        ))}
      </select>
    );
  if (date === true) return <input {...attributes} type="date" defaultValue={dateOf(value)} />;
  return (
    <input
      {...attributes}
      type="search"
      autoComplete="off"
      spellcheck={false}
      data-search
      defaultValue={value}
      {...(placeholder === undefined ? {} : { placeholder })}
    />
  );
}
