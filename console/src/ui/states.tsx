import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api/client.ts';
import type { Loaded } from './load.ts';

/** A placeholder while something loads. */
export function Loading({ lines = 5 }: { readonly lines?: number }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">Loading …</span>
      {Array.from({ length: lines }, (_, n) => (
        <div key={n} class="bone" />
      ))}
    </div>
  );
}

/** An error, in the API's words, and a button to try again. */
export function Problem({ error, again }: { readonly error: ApiError; readonly again?: () => void }) {
  return (
    <div class="state problem" role="alert">
      <h2>{TITLES[error.status] ?? 'The request failed'}</h2>
      <p>{error.message}</p>
      <p class="fine">
        <code>{error.code}</code>
        {error.requestId !== '' && (
          <>
            {' '}
            · request <code>{error.requestId}</code>
          </>
        )}
      </p>
      {again !== undefined && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

const TITLES: Readonly<Record<number, string | undefined>> = {
  0: 'The server cannot be reached',
  403: 'Your role does not allow this',
  404: 'Not found',
  503: 'The server is temporarily unavailable',
};

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** Shows what was loaded, or the error. */
export function Show<T>({
  of,
  again,
  lines,
  children,
}: {
  readonly of: Loaded<T>;
  readonly again?: () => void;
  readonly lines?: number;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (of.state === 'loading') return <Loading {...(lines === undefined ? {} : { lines })} />;
  if (of.state === 'failed') return <Problem error={of.error} {...(again === undefined ? {} : { again })} />;
  return <>{children(of.value)}</>;
}
