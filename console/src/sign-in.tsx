import { useState } from 'preact/hooks';
import { toApiError } from './api/client.ts';
import { findSession, hasOidc, signIn } from './session.ts';
import { Field, submitted, valueOf } from './ui/fields.tsx';
import { Mark } from './ui/mark.tsx';

interface SignInProps {
  readonly ended: boolean;
  /** Whose certificate the browser shows. */
  readonly certificate: string | undefined;
}

/** A token is sent once, for a session, and kept nowhere. */
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
          Your session has ended. Sign in to go on where you were.
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
          <button type="button" class="primary" disabled={busy} onClick={() => void submit()}>
            Sign in with this certificate
          </button>
        </div>
      )}
      <form onSubmit={submitted((form) => void submit(valueOf(form, 'token')))}>
        <Field
          label="Administrator’s token"
          name="token"
          hint="It is exchanged for a short session, and not kept in this browser."
        >
          {(attributes) => <input {...attributes} type="password" required autoComplete="off" spellcheck={false} />}
        </Field>
        {problem !== undefined && (
          <p class="field-problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class={certificate === undefined ? 'primary' : ''} disabled={busy}>
          {busy ? 'Signing in …' : 'Sign in with the token'}
        </button>
      </form>
      {certificate === undefined && (
        <p class="fine">
          With a client certificate, choose it where the browser asks for one, and{' '}
          <button type="button" class="inline" onClick={() => void findSession()}>
            look again
          </button>
          .
        </p>
      )}
    </main>
  );
}
