/** Basic credentials of a directory as a way to authenticate on the EST listener. */
import type { GuardedAttempts } from '../guarded-attempts.ts';
import type { ClientIdBinding, LdapIdentity, PresentedCredentials } from '../identity.ts';
import { isBasic, parseBasic } from '../otp/basic.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import type { Directory } from './directory.ts';

export class LdapPlugin implements AuthPlugin {
  readonly method = 'ldap';
  /** A failure is committed together with its count. */
  readonly auditsFailures = true;
  readonly #directory: Pick<Directory, 'authenticate'>;
  readonly #attempts: GuardedAttempts;
  readonly #binding: ClientIdBinding;

  constructor(directory: Pick<Directory, 'authenticate'>, attempts: GuardedAttempts, binding: ClientIdBinding) {
    this.#directory = directory;
    this.#attempts = attempts;
    this.#binding = binding;
  }

  async authenticate(
    { authorization, address }: PresentedCredentials,
    context: AuthContext,
  ): Promise<LdapIdentity | undefined> {
    if (!isBasic(authorization)) return undefined;
    const { username = '', password = '' } = parseBasic(authorization) ?? {};
    const entry = await this.#attempts.run(username, { ...context, address }, () =>
      this.#directory.authenticate(username, password),
    );
    const { client_id } = entry;
    return {
      method: 'ldap',
      requester: `ldap:${client_id}`,
      display: client_id,
      note: `as ${JSON.stringify(username)}`,
      binding: this.#binding,
      ...entry,
    };
  }
}
