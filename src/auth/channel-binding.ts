/**
 * Linking identity and proof of possession (RFC 7030 §3.5): the CSR's estIdentityLinking (RFC 7894), or its challengePassword, holds the
 * channel binding of the TLS connection it came over, so that nobody can have it certified from elsewhere.
 */
import { timingSafeEqual } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { badRequest } from '../errors.ts';

/** RFC 9266 §2. */
const EXPORTER_LABEL = 'EXPORTER-Channel-Binding';
const EXPORTER_LENGTH = 32;

/**
 * tls-unique on TLS 1.2 (RFC 5929 §3), tls-exporter on TLS 1.3 (RFC 9266); undefined where the connection has none.
 *
 * tls-unique is the first Finished message of the handshake: the client's in a full one, the server's in a resumed one.
 */
export function channelBinding(socket: TLSSocket): Buffer | undefined {
  if (socket.getProtocol() === 'TLSv1.3')
    return socket.exportKeyingMaterial(EXPORTER_LENGTH, EXPORTER_LABEL, Buffer.alloc(0));
  return socket.isSessionReused() ? socket.getFinished() : socket.getPeerFinished();
}

export interface PopLinkingPolicy {
  /** `est.challenge_password`: whether a challengePassword is taken for a channel binding at all. */
  readonly challenge_password: 'binding' | 'ignore';
  /** `est.require_pop_linking`. */
  readonly require_pop_linking: boolean;
}

/** What may tie a request's key to whoever sends it. */
export type PopLinking =
  | {
      readonly kind: 'connection';
      /** The channel binding of the requester's own connection; worked out only when somebody asks. */
      readonly binding: () => Buffer | undefined;
      /** CMC's own way has linked them already (RFC 5272 §6.3), to which this one is the alternative. */
      readonly linked: boolean;
    }
  /** It came over the connection of somebody who answers for the link: a registration authority. */
  | { readonly kind: 'carried' };

/** What of a request may hold base64 of the binding (RFC 7030 §3.5). */
export interface LinkingAttributes {
  readonly challengePassword: string | undefined;
  /** RFC 7894 §3.3: then the challengePassword is for other uses. */
  readonly identityLinking: string | undefined;
}

/**
 * Compares what the request claims with the connection's channel binding. An estIdentityLinking is nothing else, so it counts whatever a
 * challengePassword is taken for.
 *
 * @throws EstuaryError 400 `POP_LINKING_MISSING` or `POP_LINKING_MISMATCH`
 */
export function checkPopLinking(
  { challengePassword, identityLinking }: LinkingAttributes,
  linking: PopLinking,
  policy: PopLinkingPolicy,
): void {
  if (linking.kind === 'carried') return;
  const password = policy.challenge_password === 'ignore' ? undefined : challengePassword;
  if (identityLinking !== undefined) compare('estIdentityLinking', identityLinking, linking.binding());
  else if (password !== undefined) compare('challengePassword', password, linking.binding());
  else if (policy.challenge_password === 'binding' && policy.require_pop_linking && !linking.linked)
    throw badRequest(
      'POP_LINKING_MISSING',
      'The CSR needs an estIdentityLinking or a challengePassword with the channel binding of this TLS connection.',
    );
}

function compare(attribute: string, base64: string, binding: Buffer | undefined): void {
  const claimed = Buffer.from(base64, 'base64');
  if (binding === undefined || claimed.length !== binding.length || !timingSafeEqual(claimed, binding))
    throw badRequest(
      'POP_LINKING_MISMATCH',
      `The CSR's ${attribute} is not the channel binding of this TLS connection.`,
    );
}
