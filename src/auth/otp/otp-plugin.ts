/** Authenticates EST requests by one-time password, in HTTP Basic or in the request (RFC 7894). */
import type { OtpIdentity, PresentedCredentials } from '../identity.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import { isBasic, parseBasic } from './basic.ts';
import type { OtpService } from './otp-service.ts';

export class OtpPlugin implements AuthPlugin {
  readonly method = 'otp';
  /** A failure is committed together with its count. */
  readonly auditsFailures = true;
  readonly #service: OtpService;

  constructor(service: OtpService) {
    this.#service = service;
  }

  async authenticate(
    { authorization, address, otpChallenge }: PresentedCredentials,
    context: AuthContext,
  ): Promise<OtpIdentity | undefined> {
    const attempt = { ...context, address };
    if (isBasic(authorization)) return this.#service.authenticate(parseBasic(authorization), attempt);
    const challenge = await otpChallenge?.();
    return challenge === undefined ? undefined : this.#service.authenticate(challenge, attempt);
  }
}
