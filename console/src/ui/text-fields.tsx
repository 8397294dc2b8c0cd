/** Text fields of forms, and the choice of a label. */
import { labels } from '../shared/service.ts';
import { labelHint, labelsOf } from '../shared/session.ts';
import { Field } from './fields.tsx';

/** The fields that have a value. */
export const given = (fields: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''));

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly required?: boolean;
  readonly value?: string | undefined;
}

export function TextField({ name, label, hint, required = false, value = '' }: TextFieldProps) {
  return (
    <Field label={label} name={name} {...(hint === undefined ? {} : { hint })}>
      {(attributes) => (
        <input {...attributes} required={required} autoComplete="off" spellcheck={false} defaultValue={value} />
      )}
    </Field>
  );
}

interface RejectionFieldProps {
  readonly hint: string;
  readonly reason: string;
  readonly choose: (reason: string) => void;
}

/** Why a request is rejected, for its requester. */
export function RejectionField({ hint, reason, choose }: RejectionFieldProps) {
  return (
    <Field label="Reason" name="reason" hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          required
          maxLength={500}
          value={reason}
          onInput={(event) => choose(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface LabelFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly required?: boolean;
}

/** Selects a label of the server. A role that is limited to labels must choose one of them. */
export function LabelField({ name, label, value = '', required = false }: LabelFieldProps) {
  const own = labelsOf('ra');
  const all = [...new Set([...(value === '' ? [] : [value]), ...(own ?? labels.value ?? [])])];
  const chosen = value === '' && own !== undefined ? (own[0] ?? '') : value;
  return (
    <Field label={label} name={name} {...(required ? {} : { hint: labelHint() })}>
      {(attributes) => (
        <select {...attributes}>
          {own === undefined && !required && <option value="">any</option>}
          {all.map((value) => (
            <option key={value} value={value} selected={value === chosen}>
              {value}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
