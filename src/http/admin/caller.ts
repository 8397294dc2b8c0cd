/** Who makes a call: what it brings itself, or else the session that its cookie names. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AdminSession } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { isUnauthenticated } from '../../errors.ts';
import { presentedCredentials } from '../credentials.ts';
import type { AdminDependencies } from './dependencies.ts';
import { CLEAR_SESSION, sessionId } from './session-cookie.ts';

interface Caller {
  readonly admin: AdminIdentity;
  readonly session: AdminSession | null;
}

type Authentication = Pick<AdminDependencies, 'authenticator' | 'sessions'>;

/**
 * An `Authorization` header goes before a cookie. A cookie goes before the certificate of the connection, which a browser shows whether
 * its user is still signed in or not. Who signs in proves anew who it is.
 *
 * @throws EstuaryError 401
 */
export async function identify(request: FastifyRequest, { authenticator, sessions }: Authentication): Promise<Caller> {
  const presented = presentedCredentials(request.raw);
  const id = sessionId(request.headers);
  if (id === undefined || presented.authorization !== undefined || request.routeOptions.config.signsIn === true)
    return { admin: await authenticator.authenticate(presented), session: null };
  return sessions.resume(id, presented);
}

/** The same of a call that is still to be answered. @throws EstuaryError 401, with which the answer takes the cookie back */
export async function letIn(request: FastifyRequest, reply: FastifyReply, deps: Authentication): Promise<Caller> {
  try {
    return await identify(request, deps);
  } catch (error) {
    const brought = request.headers.authorization === undefined ? sessionId(request.headers) : undefined;
    if (isUnauthenticated(error) && brought !== undefined) void reply.header('set-cookie', CLEAR_SESSION);
    throw error;
  }
}
