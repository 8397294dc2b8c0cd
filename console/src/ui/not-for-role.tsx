import type { Role } from '../api/types.ts';
import { caller, rolesInWords } from '../session.ts';
import { Heading } from './bits.tsx';
import { Empty } from './states.tsx';

/** In the place of a page that the caller's roles do not lead to; the API would refuse what is on it, too. */
export function NotForRole({ title, roles }: { readonly title: string; readonly roles: readonly Role[] }) {
  const now = caller.value;
  return (
    <>
      <Heading title={title} />
      <Empty title="This page is not for your role">
        It needs the role {[...roles, 'admin'].join(' or ')}. You have{' '}
        {now.state === 'in' ? rolesInWords(now.session) : 'no role'}. The server configuration assigns roles.
      </Empty>
    </>
  );
}
