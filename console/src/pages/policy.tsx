/** A dry run of a request with a CSR. */
import { useState } from 'preact/hooks';
import { call, toApiError } from '../api/client.ts';
import type { Verdict } from '../api/types.ts';
import { Heading, Panel } from '../ui/bits.tsx';
import { Field, submitted, valueOf } from '../ui/fields.tsx';
import type { Loaded } from '../ui/load.ts';
import { LabelField } from '../ui/text-fields.tsx';
import { Empty, Show } from '../ui/states.tsx';
import { VerdictFacts } from './verdict.tsx';

const SENDERS = [
  ['client_id', 'the holder of a token for', 'device-1'],
  ['principal', 'the Kerberos principal', 'host/device-1@EXAMPLE'],
  ['device', 'the registered device', 'device-1'],
  ['certificate', 'the holder of the certificate', '-----BEGIN CERTIFICATE-----'],
] as const;
type Sender = (typeof SENDERS)[number][0];

export function Policy() {
  const [answer, setAnswer] = useState<Loaded<Verdict>>();
  const ask = async (form: HTMLFormElement) => {
    setAnswer({ state: 'loading' });
    const body = {
      ca: valueOf(form, 'ca'),
      csr: valueOf(form, 'csr'),
      as: { [valueOf(form, 'kind')]: valueOf(form, 'sender') },
    };
    try {
      setAnswer({ state: 'ready', value: await call<Verdict>('/admin/check', { method: 'POST', body }) });
    } catch (error) {
      setAnswer({ state: 'failed', error: toApiError(error) });
    }
  };
  return (
    <>
      <Heading
        title="Policy"
        lead="A dry run of a request shows the result and the rule. The server stores and signs nothing."
      />
      <div class="columns">
        <Question ask={(form) => void ask(form)} />
        <div aria-live="polite">
          {answer === undefined ? (
            <Empty title="No result yet">Add a CSR, choose its sender, and check the request.</Empty>
          ) : (
            <Show of={answer} lines={3}>
              {(verdict) => (
                <Panel title="Result">
                  <VerdictFacts of={verdict} />
                </Panel>
              )}
            </Show>
          )}
        </div>
      </div>
    </>
  );
}

function Question({ ask }: { readonly ask: (form: HTMLFormElement) => void }) {
  const [csr, setCsr] = useState('');
  const [kind, setKind] = useState<Sender>('client_id');
  const [isOver, setOver] = useState(false);
  const sample = SENDERS.find(([name]) => name === kind)?.[2];
  const take = async (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (file !== undefined) setCsr(await file.text());
  };
  return (
    <form
      class={isOver ? 'form panel over' : 'form panel'}
      onSubmit={submitted(ask)}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer?.files);
      }}
    >
      <Field label="CSR" name="csr" hint="PEM: paste it, drop the file here, or choose it.">
        {(attributes) => (
          <textarea
            {...attributes}
            required
            spellcheck={false}
            data-search
            value={csr}
            onInput={(event) => setCsr(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="File" name="file">
        {(attributes) => (
          <input
            {...attributes}
            type="file"
            accept=".csr,.pem,.p10,.req"
            onChange={(event) => void take(event.currentTarget.files)}
          />
        )}
      </Field>
      <LabelField name="ca" label="CA" required />
      <Field label="Sent by" name="kind">
        {(attributes) => (
          <select
            {...attributes}
            onChange={(event) =>
              setKind(SENDERS.find(([name]) => name === event.currentTarget.value)?.[0] ?? 'client_id')
            }
          >
            {SENDERS.map(([name, words]) => (
              <option key={name} value={name} selected={name === kind}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Name or certificate" name="sender">
        {(attributes) =>
          kind === 'certificate' ? (
            <textarea {...attributes} required spellcheck={false} placeholder={sample ?? ''} />
          ) : (
            <input {...attributes} required autoComplete="off" spellcheck={false} placeholder={sample ?? ''} />
          )
        }
      </Field>
      <div class="actions">
        <button type="submit" class="primary">
          Check the request
        </button>
      </div>
    </form>
  );
}
