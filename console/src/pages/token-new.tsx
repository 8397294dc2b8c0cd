/** Creates a token and shows it, the only time: with commands that use it, and a code to scan. */
import { useState } from 'preact/hooks';
import { call, toApiError, type ApiError } from '../api/client.ts';
import type { CreatedToken } from '../api/types.ts';
import { link } from '../router.ts';
import { CopyLine, Facts, Heading, Moment, Panel } from '../ui/bits.tsx';
import { Field, LabelField, submitted, valueOf } from '../ui/fields.tsx';
import { QrCode } from '../ui/qr.tsx';
import { qrText, readyLines } from '../../../src/ready-lines.ts';
import { estAddress, saveEstAddress, shownEstUrl } from '../est-address.ts';

export function NewToken() {
  const [made, setMade] = useState<{ readonly token: CreatedToken; readonly ca: string }>();
  if (made !== undefined) return <MadeToken token={made.token} ca={made.ca} another={() => setMade(undefined)} />;
  return <TokenForm made={(token, ca) => setMade({ token, ca })} />;
}

function TokenForm({ made }: { readonly made: (token: CreatedToken, ca: string) => void }) {
  const [problem, setProblem] = useState<ApiError>();
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
      setProblem(toApiError(error));
      setBusy(false);
    }
  };
  return (
    <>
      <Heading title="New token" lead="The next page shows it once. No other page does." />
      <form class="form panel" onSubmit={submitted((form) => void submit(form))}>
        <Field
          label="Client ID"
          name="client_id"
          hint="The client ID of the device. The CA’s profile decides whether the certificate gets this name."
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
            />
          )}
        </Field>
        <div class="row">
          <Field label="Certificates" name="max_uses" hint="The number of certificates that it is valid for.">
            {(attributes) => <input {...attributes} type="number" min={1} max={1000000} placeholder="as configured" />}
          </Field>
          <Field label="Days" name="days" hint="The number of days until it expires.">
            {(attributes) => (
              <input {...attributes} type="number" min={0.01} max={3652} step="any" placeholder="as configured" />
            )}
          </Field>
          <LabelField any />
        </div>
        {problem !== undefined && (
          <p class="field-problem" role="alert">
            {problem.message}
          </p>
        )}
        <div class="actions">
          <a class="button" href={link(['tokens'])}>
            Cancel
          </a>
          <button type="submit" class="primary" disabled={busy}>
            {busy ? 'Creating …' : 'Create the token'}
          </button>
        </div>
      </form>
    </>
  );
}

function MadeToken({
  token,
  ca,
  another,
}: {
  readonly token: CreatedToken;
  readonly ca: string;
  readonly another: () => void;
}) {
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
      <Heading title={`Token for ${token.client_id}`} lead="Copy it now. No other page shows it.">
        <button type="button" onClick={another}>
          Another one
        </button>
        <a class="button primary" href={link(['tokens'])}>
          Done
        </a>
      </Heading>
      <div class="columns">
        <Panel title="Token">
          <CopyLine label="Token" text={token.token} secret />
          <Facts
            of={[
              ['Valid for', `${token.max_uses} ${token.max_uses === 1 ? 'certificate' : 'certificates'}`],
              ['Expires', <Moment at={token.expires_at} />],
              ['CA', ca === '' ? 'any' : ca],
            ]}
          />
        </Panel>
        <Panel title="Code to scan">
          <QrCode text={qrText(enrollment)} title={`QR code with the token of ${token.client_id}`} />
          <p class="fine">The code contains the server, the client ID and the token. Show it to nobody else.</p>
        </Panel>
      </div>
      <Panel title="Commands for the device">
        <Field
          label="EST server"
          name="address"
          hint="The address that the server reports. Change it if devices use another one."
        >
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
