/** The signed-in user. No credential is kept here: a session is a cookie that scripts cannot read. */
import { signal } from '@preact/signals';
import { ApiError, call, order, toApiError, whenSignedOut } from '../api/client.ts';
import type { Role, Session } from '../api/types.ts';
import { forgetSearches } from './find.ts';

export type Caller =
  | { readonly state: 'asking' }
  /** `ended`: a session has ended. `certificate`: the subject of the browser's certificate, which can start a session. */
  | { readonly state: 'out'; readonly ended: boolean; readonly certificate?: string }
  | { readonly state: 'in'; readonly session: Session }
  | { readonly state: 'failed'; readonly error: ApiError };

/** Whether the server has an OpenID provider to sign in at. */
export const hasOidc = signal(false);

export const caller = signal<Caller>({ state: 'asking' });

whenSignedOut(() => {
  caller.value = { state: 'out', ended: caller.value.state === 'in' };
});

/** Finds an existing session. A certificate alone starts none, so that signing out has an effect. */
export async function findSession(): Promise<void> {
  const methods = await call<{ oidc: boolean }>('/auth/methods').catch(() => ({ oidc: false }));
  hasOidc.value = methods.oidc;
  try {
    const session = await call<Session>('/admin/session');
    caller.value =
      session.session === undefined
        ? { state: 'out', ended: false, certificate: session.subject }
        : { state: 'in', session };
  } catch (error) {
    const failure = toApiError(error);
    if (failure.status !== 401) caller.value = { state: 'failed', error: failure };
  }
}

/** Exchanges a token, or the browser's certificate, for a session. @throws ApiError */
export async function signIn(token?: string): Promise<void> {
  const session = await call<Session>('/admin/session', {
    method: 'POST',
    ...(token === undefined ? {} : { bearer: token }),
  });
  caller.value = { state: 'in', session };
}

export async function signOut(): Promise<void> {
  await order('/admin/session', { method: 'DELETE' }).catch(() => undefined);
  forgetSearches();
  caller.value = { state: 'out', ended: false };
  await findSession();
}

export const METHODS: Readonly<Record<Session['method'], string>> = {
  bearer: 'a token',
  mtls: 'a certificate',
  oidc: 'single sign-on',
};

/** `ra for devices, lab; auditor` */
export const rolesInWords = ({ grants }: Session): string =>
  grants
    .filter(({ roles }) => roles.length > 0)
    .map(({ roles, labels }) => `${roles.join(', ')}${labels === null ? '' : ` for ${labels.join(', ')}`}`)
    .join('; ') || 'no role';

/** The labels to which a role is limited; undefined: no limit. */
export function labelsOf(role: Role): readonly string[] | undefined {
  const now = caller.value;
  const grants = now.state === 'in' ? now.session.grants : [];
  const used = grants.filter(({ roles }) => roles.includes('admin') || roles.includes(role));
  return used.some(({ labels }) => labels === null)
    ? undefined
    : [...new Set(used.flatMap(({ labels }) => labels ?? []))];
}

/** The hint of a label field. */
export function labelHint(): string {
  const labels = labelsOf('ra');
  return labels === undefined ? 'The label of a CA, or any.' : `Your role is limited to ${labels.join(', ')}.`;
}

/** Whether the caller has one of these roles; an administrator has them all. */
export function may(...roles: readonly Role[]): boolean {
  const now = caller.value;
  return now.state === 'in' && now.session.roles.some((role) => role === 'admin' || roles.includes(role));
}
