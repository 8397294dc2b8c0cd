/** The form for a new device, and to edit one. */
import { useState } from 'preact/hooks';
import { devicePath, order, toApiError } from '../api/client.ts';
import type { Device } from '../api/types.ts';
import { timeZone } from '../shared/preferences.ts';
import { Field, FieldProblem, submitted, valueOf } from '../ui/fields.tsx';
import { given, LabelField, TextField } from '../ui/text-fields.tsx';
import { dateOf, startOfDay } from '../ui/time.ts';

interface DeviceFormProps {
  /** The device to change; absent: a new one. */
  readonly device?: Device;
  readonly onClose: () => void;
  readonly done: (device: Pick<Device, 'id' | 'ca'>) => void;
}

const MATCH = ['issuer', 'issuer_spki_sha256', 'serial_number', 'common_name', 'san', 'fingerprint_sha256'] as const;

export function DeviceForm({ device, onClose, done }: DeviceFormProps) {
  const [problem, setProblem] = useState<string>();
  const submit = async (form: HTMLFormElement) => {
    try {
      const fields = fieldsOf(form);
      const id = device?.id ?? valueOf(form, 'id');
      if (device === undefined) await order('/admin/devices', { method: 'POST', body: { id, ...present(fields) } });
      else await order(devicePath(device), { method: 'PATCH', body: changes(device, fields) });
      done({ id, ca: valueOf(form, 'ca') || null });
    } catch (error) {
      setProblem(toApiError(error).message);
    }
  };
  const match = device?.match ?? {};
  const matched = (name: (typeof MATCH)[number]) => (name === 'issuer' ? '' : match[name]);
  return (
    <form class="form panel" onSubmit={submitted((form) => void submit(form))}>
      {device === undefined && (
        <TextField name="id" label="ID" hint="The client ID of its tokens, or its Kerberos principal." required />
      )}
      <div class="row">
        <LabelField name="ca" label="CA" value={device?.ca ?? ''} />
        <Field label="Expires" name="not_after" hint="The device gets no certificates from this day on. Empty: never.">
          {(attributes) => (
            <input {...attributes} type="date" defaultValue={dateOf(device?.not_after ?? undefined, timeZone.value)} />
          )}
        </Field>
      </div>
      <TextField name="note" label="Note" value={device?.note ?? ''} />
      <Field
        label="Attributes"
        name="attributes"
        hint="One per line, such as site = hall 4. Names in certificates can use them."
      >
        {(attributes) => (
          <textarea
            {...attributes}
            class="short"
            spellcheck={false}
            defaultValue={Object.entries(device?.attributes ?? {})
              .map(([name, value]) => `${name} = ${value}`)
              .join('\n')}
          />
        )}
      </Field>
      <details open={device !== undefined && device.match !== null}>
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
            value={matched('issuer_spki_sha256')}
          />
          <div class="row">
            <TextField name="serial_number" label="Its serialNumber" value={matched('serial_number')} />
            <TextField name="common_name" label="Its common name" value={matched('common_name')} />
          </div>
          <TextField name="san" label="One of its names" hint="DNS:device-1.example" value={matched('san')} />
          <TextField
            name="fingerprint_sha256"
            label="SHA-256 of the certificate"
            value={matched('fingerprint_sha256')}
          />
        </div>
      </details>
      <FieldProblem of={problem} />
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary">
          {device === undefined ? 'Register the device' : 'Save'}
        </button>
      </div>
    </form>
  );
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(form: HTMLFormElement): Fields {
  const value = (name: string) => valueOf(form, name);
  const match = given(Object.fromEntries(MATCH.map((name) => [name, value(name)])));
  return {
    ca: value('ca') || null,
    note: value('note') || null,
    not_after: startOfDay(value('not_after'), timeZone.value) ?? null,
    attributes: readAttributes(value('attributes')),
    match: Object.keys(match).length === 0 ? null : match,
  };
}

/** @throws Error that names the line */
function readAttributes(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([^=]+)=(.*)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new Error(`Attributes: “${line}” must be NAME = VALUE.`);
      return [name.trim(), value.trim()];
    }),
  );
}

const present = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/** The fields that differ from the device's. A day that is the same leaves the time of day as it is. */
function changes(device: Device, fields: Fields): Fields {
  const before: Fields = {
    ...device,
    not_after: startOfDay(dateOf(device.not_after ?? undefined, timeZone.value), timeZone.value) ?? null,
  };
  const sorted = (value: unknown): string =>
    JSON.stringify(typeof value === 'object' && value !== null ? Object.entries(value).sort() : value);
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => sorted(value) !== sorted(before[name])));
}
