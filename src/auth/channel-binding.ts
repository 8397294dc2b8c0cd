/**
 * Links identity and proof of possession (RFC 7030 §3.5): the CSR's estIdentityLinking (RFC 7894) or challengePassword
 * contains the channel binding of its TLS connection, so that nobody can submit it on another connection.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/schema.ts';
import { badRequest } from '../errors.ts';

/** `challenge_password`: whether a challengePassword is a channel binding. */
export type PopLinkingPolicy = Pick<Config['est'], 'challenge_password' | 'require_pop_linking'>;

/** What links a request's key to its sender. */
export type PopLinking =
  | {
      readonly kind: 'connection';
      /** The channel binding of the requester's own connection, computed on demand. */
      readonly binding: () => Buffer | undefined;
      /** CMC's own mechanism has already linked them (RFC 5272 §6.3). */
      readonly linked: boolean;
    }
  /** It arrived over the connection of a registration authority, which vouches for the link. */
  | { readonly kind: 'carried' };

/** Attributes that may contain the binding in base64 (RFC 7030 §3.5). */
export interface LinkingAttributes {
  readonly challengePassword: string | undefined;
  /** RFC 7894 §3.3: with it, challengePassword has other uses. */
  readonly identityLinking: string | undefined;
}

/**
 * Compares the request's attributes with the connection's channel binding. estIdentityLinking always counts, whatever
 * `est.challenge_password` is.
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
