import { useState } from 'preact/hooks';
import { order, toApiError } from '../api/client.ts';
import { go, link } from '../router.ts';
import { Heading } from '../ui/bits.tsx';
import { Field, LabelField, submitted, valueOf } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { startOfDay } from '../ui/time.ts';
import { timeZone } from '../preferences.ts';

/** The fields that a form has, those that are empty left out. */
const given = (fields: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''));

export function NewDevice() {
  const [problem, setProblem] = useState<string>();
  const submit = async (form: HTMLFormElement) => {
    const value = (name: string) => valueOf(form, name);
    const match = given({
      issuer: value('issuer'),
      issuer_spki_sha256: value('issuer_spki_sha256'),
      serial_number: value('serial_number'),
      common_name: value('common_name'),
      san: value('san'),
      fingerprint_sha256: value('fingerprint_sha256'),
    });
    const body = {
      ...given({
        id: value('id'),
        ca: value('ca'),
        note: value('note'),
        not_after: startOfDay(value('not_after'), timeZone.value),
      }),
      ...(Object.keys(match).length === 0 ? {} : { match }),
    };
    try {
      await order('/admin/devices', { method: 'POST', body });
      notify(`${value('id')} is registered.`);
      go(['devices', 'id', value('id')]);
    } catch (error) {
      setProblem(toApiError(error).message);
    }
  };
  return (
    <>
      <Heading title="New device" />
      <form class="form panel" onSubmit={submitted((form) => void submit(form))}>
        <TextField name="id" label="Id" hint="Whom tokens are made for, or a Kerberos principal." required />
        <div class="row">
          <LabelField any />
          <Field label="Ends" name="not_after" hint="From then on it is no device any more.">
            {(attributes) => <input {...attributes} type="date" />}
          </Field>
        </div>
        <TextField name="note" label="Note" />
        <details>
          <summary>Certificate of another CA</summary>
          <div class="form">
            <TextField
              name="issuer"
              label="Issuer"
              hint="Subject of a configured trust anchor, such as CN=Maker CA,O=Maker"
            />
            <TextField
              name="issuer_spki_sha256"
              label="SHA-256 of the issuer’s public key"
              hint="Instead of its name."
            />
            <div class="row">
              <TextField name="serial_number" label="Its serialNumber" />
              <TextField name="common_name" label="Its common name" />
            </div>
            <TextField name="san" label="One of its names" hint="DNS:device-1.example" />
            <TextField name="fingerprint_sha256" label="SHA-256 of the certificate" />
          </div>
        </details>
        {problem !== undefined && (
          <p class="field-problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <a class="button" href={link(['devices'])}>
            Cancel
          </a>
          <button type="submit" class="primary">
            Register the device
          </button>
        </div>
      </form>
    </>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly required?: boolean;
}

function TextField({ name, label, hint, required = false }: TextFieldProps) {
  return (
    <Field label={label} name={name} {...(hint === undefined ? {} : { hint })}>
      {(attributes) => <input {...attributes} required={required} autoComplete="off" spellcheck={false} />}
    </Field>
  );
}
