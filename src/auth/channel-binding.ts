/**
 * Linking identity and proof of possession (RFC 7030 §3.5): the CSR's challengePassword holds the channel binding of
 * the TLS connection it came over, so that nobody can have it certified from elsewhere.
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

/**
 * Compares the request's challengePassword with the connection's channel binding.
 *
 * @param challengePassword as the request has it, base64 of the binding (RFC 7030 §3.5)
 * @throws EstuaryError 400 `POP_LINKING_MISSING` or `POP_LINKING_MISMATCH`
 */
export function checkPopLinking(
  challengePassword: string | undefined,
  linking: PopLinking,
  policy: PopLinkingPolicy,
): void {
  if (policy.challenge_password === 'ignore' || linking.kind === 'carried') return;
  if (challengePassword === undefined) {
    if (!policy.require_pop_linking || linking.linked) return;
    throw badRequest(
      'POP_LINKING_MISSING',
      'The CSR needs a challengePassword with the channel binding of this TLS connection.',
    );
  }
  const binding = linking.binding();
  const claimed = Buffer.from(challengePassword, 'base64');
  if (binding === undefined || claimed.length !== binding.length || !timingSafeEqual(claimed, binding))
    throw badRequest(
      'POP_LINKING_MISMATCH',
      "The CSR's challengePassword is not the channel binding of this TLS connection.",
    );
}
