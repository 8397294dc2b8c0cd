/** Who may make which call: each route has its rule, and the server does not start with a route that has none. */
import type { FastifyRequest } from 'fastify';
import { ADMIN_ROLES, type AdminRole } from '../../config/vocabulary.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { forbidden } from '../../errors.ts';

/** `admin` may make every call; the list has the other roles that may. `everybody`: every administrator; `public`: without authentication. */
export type Access = 'public' | 'everybody' | readonly Exclude<AdminRole, 'admin'>[];

/** The roles of which a call needs one; undefined: it needs none. */
export function neededRoles(access: Access): readonly AdminRole[] | undefined {
  return typeof access === 'string'
    ? undefined
    : ADMIN_ROLES.filter((role) => role === 'admin' || access.includes(role));
}

/** The part of a Fastify route that has the rule. */
interface AccessRule {
  readonly url?: string | undefined;
  readonly config?: { readonly access?: Access } | undefined;
}

/** @throws TypeError for a route without a rule */
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
