import type { Signal } from '@preact/signals';

interface SwitchProps<T extends string> {
  readonly name: string;
  readonly legend: string;
  readonly of: readonly (readonly [value: T, words: string])[];
  readonly value: Signal<T>;
}

/** A choice between a few values. */
export function Switch<T extends string>({ name, legend, of, value }: SwitchProps<T>) {
  return (
    <fieldset class="switch">
      <legend class="visually-hidden">{legend}</legend>
      {of.map(([choice, words]) => (
        <label key={choice}>
          <input type="radio" name={name} checked={value.value === choice} onChange={() => (value.value = choice)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}
