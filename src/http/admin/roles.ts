/** Who may make which call (contract §10): the rule stands beside each call, and a call without one does not start. */
import type { FastifyRequest } from 'fastify';
import { ADMIN_ROLES, type AdminRole } from '../../config/admin-roles.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { forbidden } from '../../errors.ts';

/** `admin` may make every call; of the other roles those that are listed. `everybody`: whoever is authenticated; `public`: nobody is asked. */
export type Access = 'public' | 'everybody' | readonly Exclude<AdminRole, 'admin'>[];

/** The roles of which a call needs one; undefined: none is needed. */
export function neededRoles(access: Access): readonly AdminRole[] | undefined {
  return typeof access === 'string'
    ? undefined
    : ADMIN_ROLES.filter((role) => role === 'admin' || access.includes(role));
}

/** What Fastify knows of a route. */
interface AccessRule {
  readonly url?: string | undefined;
  readonly config?: { readonly access?: Access } | undefined;
}

/** @throws TypeError for a route that does not say who may call it */
export function accessOf({ url, config }: AccessRule): Access {
  const access = config?.access;
  if (access === undefined) throw new TypeError(`the route ${url ?? ''} does not say who may call it`);
  return access;
}

/** @throws EstuaryError 403 `ROLE_MISSING` that names the roles */
export function checkRole({ roles }: AdminIdentity, request: FastifyRequest): void {
  const needed = neededRoles(accessOf(request.routeOptions));
  if (needed === undefined || needed.some((role) => roles.includes(role))) return;
  throw forbidden('ROLE_MISSING', `this call needs the role ${needed.join(' or ')}`, {
    detail: `the caller has ${roles.length === 0 ? 'no role' : roles.join(', ')}`,
  });
}
