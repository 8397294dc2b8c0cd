import { useState } from 'preact/hooks';
import { toApiError } from './api/client.ts';
import { findSession, hasOidc, signIn } from './shared/session.ts';
import { Field, FieldProblem, submitted, valueOf } from './ui/fields.tsx';
import { Mark } from './ui/mark.tsx';

interface SignInProps {
  readonly ended: boolean;
  /** The subject of the browser's certificate. */
  readonly certificate: string | undefined;
}

/** Sends a token once, for a session, and does not keep it. */
export function SignIn({ ended, certificate }: SignInProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const submit = async (token?: string) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await signIn(token);
    } catch (error) {
      const { status, message } = toApiError(error);
      setProblem(status === 401 ? 'This token is unknown or has expired.' : message);
      setBusy(false);
    }
  };
  return (
    <main class="alone sign-in">
      <h1>
        <Mark />
        Estuary
      </h1>
      {ended && (
        <p class="notice" role="status">
          Your session has ended. Sign in to continue.
        </p>
      )}
      {hasOidc.value && (
        <p>
          <a class="button primary" href="/auth/oidc/login">
            Sign in with single sign-on
          </a>
        </p>
      )}
      {certificate !== undefined && (
        <div class="panel">
          <p>
            Your browser shows the certificate of <strong>{certificate}</strong>.
          </p>
          <button type="button" class={hasOidc.value ? '' : 'primary'} disabled={busy} onClick={() => void submit()}>
            Sign in with this certificate
          </button>
        </div>
      )}
      <form onSubmit={submitted((form) => void submit(valueOf(form, 'token')))}>
        <Field
          label="Administrator’s token"
          name="token"
          hint="The browser exchanges it for a short session and does not keep it."
        >
          {(attributes) => <input {...attributes} type="password" required autoComplete="off" spellcheck={false} />}
        </Field>
        <FieldProblem of={problem} />
        <button type="submit" class={certificate === undefined && !hasOidc.value ? 'primary' : ''} disabled={busy}>
          {busy ? 'Signing in …' : 'Sign in with the token'}
        </button>
      </form>
      {certificate === undefined && (
        <p class="fine">
          To use a client certificate, select it when the browser asks, and{' '}
          <button type="button" class="inline" onClick={() => void findSession()}>
            check again
          </button>
          .
        </p>
      )}
    </main>
  );
}
