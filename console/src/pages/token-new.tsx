/** Creates a token and shows it once, with commands that use it and a QR code. */
import { useState } from 'preact/hooks';
import { call, toApiError } from '../api/client.ts';
import type { CreatedToken } from '../api/types.ts';
import { go } from '../shared/router.ts';
import { CopyLine, Facts, Heading, Moment, Panel } from '../ui/bits.tsx';
import { Field, FieldProblem, submitted, valueOf } from '../ui/fields.tsx';
import { QrCode } from '../ui/qr.tsx';
import { LabelField } from '../ui/text-fields.tsx';
import { counted } from '../shared/words.ts';
import { qrText, readyLines } from '../../../src/ready-lines.ts';
import { estAddress, saveEstAddress, shownEstUrl } from '../shared/est-address.ts';

interface NewTokenProps {
  /** The client ID. A device gives its own ID. */
  readonly client?: string;
  readonly ca?: string;
  readonly onClose?: () => void;
}

export function NewToken({ client = '', ca = '', onClose = () => go(['tokens']) }: NewTokenProps) {
  const [made, setMade] = useState<{ readonly token: CreatedToken; readonly ca: string }>();
  if (made !== undefined)
    return <MadeToken token={made.token} ca={made.ca} another={() => setMade(undefined)} onClose={onClose} />;
  return <TokenForm client={client} ca={ca} onClose={onClose} made={(token, label) => setMade({ token, ca: label })} />;
}

interface TokenFormProps extends Required<NewTokenProps> {
  readonly made: (token: CreatedToken, ca: string) => void;
}

function TokenForm({ client, ca: label, onClose, made }: TokenFormProps) {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement) => {
    setBusy(true);
    setProblem(undefined);
    const [uses, days, ca] = [valueOf(form, 'max_uses'), valueOf(form, 'days'), valueOf(form, 'ca')];
    try {
      const body = {
        client_id: valueOf(form, 'client_id'),
        ...(uses === '' ? {} : { max_uses: Number(uses) }),
        ...(days === '' ? {} : { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() }),
        ...(ca === '' ? {} : { ca }),
      };
      made(await call<CreatedToken>('/admin/otp', { method: 'POST', body }), ca);
    } catch (error) {
      setProblem(toApiError(error).message);
      setBusy(false);
    }
  };
  return (
    <>
      <Heading title="New token" lead="Only the next page shows the token." />
      <form class="form panel" onSubmit={submitted((form) => void submit(form))}>
        <Field
          label="Client ID"
          name="client_id"
          hint="The device that may use it. The profile of the CA can put this name into the certificate."
        >
          {(attributes) => (
            <input
              {...attributes}
              required
              maxLength={255}
              autoComplete="off"
              spellcheck={false}
              data-search
              autoFocus
              readOnly={client !== ''}
              defaultValue={client}
            />
          )}
        </Field>
        <div class="row">
          <Field label="Certificates" name="max_uses" hint="How many the token can get.">
            {(attributes) => <input {...attributes} type="number" min={1} max={1000000} placeholder="as configured" />}
          </Field>
          <Field label="Days" name="days" hint="Until it expires.">
            {(attributes) => (
              <input {...attributes} type="number" min={0.01} max={3652} step="any" placeholder="as configured" />
            )}
          </Field>
          <LabelField name="ca" label="CA" value={label} />
        </div>
        <FieldProblem of={problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {busy ? 'Creating …' : 'Create the token'}
          </button>
        </div>
      </form>
    </>
  );
}

interface MadeTokenProps {
  readonly token: CreatedToken;
  readonly ca: string;
  readonly another: () => void;
  readonly onClose: () => void;
}

function MadeToken({ token, ca, another, onClose }: MadeTokenProps) {
  const [address, setAddress] = useState(estAddress());
  const enrollment = {
    est: shownEstUrl(address),
    label: ca === '' ? undefined : ca,
    clientId: token.client_id,
    token: token.token,
    anchors: 'root.pem',
  };
  const lines = readyLines(enrollment);
  return (
    <>
      <Heading title={`Token for ${token.client_id}`} lead="Copy it now. You cannot view it again.">
        <button type="button" onClick={another}>
          New token
        </button>
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </Heading>
      <div class="columns">
        <Panel title="Token">
          <CopyLine label="Token" text={token.token} secret />
          <Facts
            of={[
              ['For', counted(token.max_uses, 'certificate')],
              ['Expires', <Moment at={token.expires_at} />],
              ['CA', ca === '' ? 'any' : ca],
            ]}
          />
        </Panel>
        <Panel title="QR code">
          <QrCode text={qrText(enrollment)} title={`QR code with the token of ${token.client_id}`} />
          <p class="fine">It contains the server, the client ID and the token. Keep it secret.</p>
        </Panel>
      </div>
      <Panel title="Commands">
        <Field label="EST server" name="address" hint="The address that devices use.">
          {(attributes) => (
            <input
              {...attributes}
              value={address}
              spellcheck={false}
              onInput={(event) => {
                setAddress(event.currentTarget.value);
                saveEstAddress(event.currentTarget.value);
              }}
            />
          )}
        </Field>
        <CopyLine label="Estuary’s client" text={lines.client} />
        <CopyLine label="openssl and curl" text={lines.curl} />
      </Panel>
    </>
  );
}
