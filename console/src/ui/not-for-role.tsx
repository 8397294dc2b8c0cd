import type { Role } from '../api/types.ts';
import { Heading } from './bits.tsx';
import { Empty } from './states.tsx';

/** In the place of a page that the caller's roles do not lead to; the API would refuse what is on it, too. */
export function NotForRole({ title, roles }: { readonly title: string; readonly roles: readonly Role[] }) {
  return (
    <>
      <Heading title={title} />
      <Empty title="This page is not for your role">
        It needs {[...roles, 'admin'].join(' or ')}. Whoever keeps the server’s configuration gives out roles.
      </Empty>
    </>
  );
}
