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
      {of.map(([one, words]) => (
        <label key={one}>
          <input type="radio" name={name} checked={value.value === one} onChange={() => (value.value = one)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}
