/** Permissions: each route has a rule; the server does not start otherwise. */
import type { FastifyRequest } from 'fastify';
import { ADMIN_ROLES, type AdminRole } from '../../config/vocabulary.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { forbidden } from '../../errors.ts';

/**
 * `admin` may make every call; the list has further roles. `everybody`: every administrator; `public`: no
 * authentication.
 */
export type Access = 'public' | 'everybody' | readonly Exclude<AdminRole, 'admin'>[];

/** Roles of which a call needs one; undefined: none. */
export function neededRoles(access: Access): readonly AdminRole[] | undefined {
  return typeof access === 'string'
    ? undefined
    : ADMIN_ROLES.filter((role) => role === 'admin' || access.includes(role));
}

/** The part of a Fastify route with the rule. */
interface AccessRule {
  readonly url?: string | undefined;
  readonly config?: { readonly access?: Access } | undefined;
}

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
