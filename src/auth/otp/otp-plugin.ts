/** One-time passwords by HTTP Basic as a way to authenticate on the EST listener. */
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
    { authorization, address }: PresentedCredentials,
    context: AuthContext,
  ): Promise<OtpIdentity | undefined> {
    if (!isBasic(authorization)) return undefined;
    return this.#service.authenticate(parseBasic(authorization), { ...context, address });
  }
}
