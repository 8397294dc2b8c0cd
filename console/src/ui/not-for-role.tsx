import type { Role } from '../api/types.ts';
import { caller, rolesInWords } from '../shared/session.ts';
import { Heading } from './bits.tsx';
import { Empty } from './states.tsx';

/** Replaces a page that the caller's roles do not allow. The API rejects the calls of that page, too. */
export function NotForRole({ title, roles }: { readonly title: string; readonly roles: readonly Role[] }) {
  const now = caller.value;
  return (
    <>
      <Heading title={title} />
      <Empty title="Your role does not allow this page">
        You need the role {[...roles, 'admin'].join(' or ')}. Your roles:{' '}
        {now.state === 'in' ? rolesInWords(now.session) : 'none'}. The server configuration assigns roles.
      </Empty>
    </>
  );
}
