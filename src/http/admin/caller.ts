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

/**
 * An `Authorization` header goes before a cookie. A cookie goes before the certificate of the connection, which a browser shows whether
 * its user is still signed in or not. Who signs in proves anew who it is.
 *
 * @throws EstuaryError 401; a cookie that is of no use any more is taken back with it
 */
export async function identify(
  request: FastifyRequest,
  reply: FastifyReply,
  { authenticator, sessions }: Pick<AdminDependencies, 'authenticator' | 'sessions'>,
): Promise<Caller> {
  const presented = presentedCredentials(request.raw);
  const id = sessionId(request.headers);
  if (id === undefined || presented.authorization !== undefined || request.routeOptions.config.signsIn === true)
    return { admin: await authenticator.authenticate(presented), session: null };
  try {
    return await sessions.resume(id, presented);
  } catch (error) {
    if (isUnauthenticated(error)) void reply.header('set-cookie', CLEAR_SESSION);
    throw error;
  }
}
