/**
 * The shared secrets of `[[cmc.shared_secrets]]`. Failures count toward the lockout like those of one-time passwords,
 * per address and identification (`otp.lockout_scope`). A valid proof does not clear the count: a secret can be used
 * without limit, so its holder could otherwise guess others indefinitely.
 */
import { randomBytes } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import { presentableName, type Lockout } from '../auth/lockout.ts';
import { AttemptLimiter } from '../auth/otp/hashing-pool.ts';
import type { BodyPartReference } from '../pki/cmc/body-part.ts';
import type { SharedSecret } from '../pki/cmc/identity-proof.ts';
import type { CmcParties } from './sender.ts';
import { CmcRefusal } from './refusal.ts';
import { requestIdField } from '../request-context.ts';

interface SharedSecretsOptions {
  /** In force. */
  readonly parties: () => Pick<CmcParties, 'secrets'>;
  readonly lockout: Lockout;
  /** `otp.token_length`: a name that looks like a token is not stored. */
  readonly tokenLength: number;
  readonly retryAfter: number;
}

interface SecretAttempt {
  readonly address: string;
  readonly caLabel: string;
  readonly now: number;
  /** The part that a failure concerns. */
  readonly bodyPart: BodyPartReference;
}

const WAITING_PER_KEY = 64;

export class SharedSecrets {
  readonly #options: SharedSecretsOptions;
  readonly #attempts: AttemptLimiter;
  /** Replaces a missing secret, so that timing reveals nothing. */
  readonly #nobodys = randomBytes(32);

  constructor(options: SharedSecretsOptions) {
    this.#options = options;
    // Sequential: concurrent guesses must not all be checked before the first failure counts.
    this.#attempts = new AttemptLimiter({ concurrency: 1, queue: WAITING_PER_KEY }, options.retryAfter);
  }

  /**
   * Checks a proof with an identification's secret: lockout first, then the proof. A secret for other labels counts as
   * unknown.
   * @param identification undefined: the message names none, so no secret matches
   * @param check whether the proof matches the secret; also called for an unknown secret
   * @throws CmcRefusal 401 badIdentity; EstuaryError 401 `LOCKED_OUT`, 503; errors of `check`, which do not count
   */
  async verify(
    identification: string | undefined,
    attempt: SecretAttempt,
    check: (secret: SharedSecret) => boolean | Promise<boolean>,
  ): Promise<SharedSecret> {
    const known = identification === undefined ? undefined : this.#options.parties().secrets.get(identification);
    const works = known?.labels?.includes(attempt.caLabel) ?? known !== undefined;
    const shared: SharedSecret = { secret: known?.secret ?? this.#nobodys, identification };
    const problem = known === undefined ? 'no such identification' : 'wrong secret';
    const detail = works || known === undefined ? problem : 'the secret is for other labels';
    await this.guard(identification, attempt, detail, async () => (await check(shared)) && works);
    return shared;
  }

  /**
   * Another check of a secret with the same lockout.
   * @param name lockout key in addition to the address
   * @throws CmcRefusal and EstuaryError as {@link verify}
   */
  async guard(
    name: string | undefined,
    attempt: SecretAttempt,
    detail: string,
    check: () => Promise<boolean>,
  ): Promise<void> {
    const { lockout } = this.#options;
    const event = this.#failure(name, attempt);
    const keys = lockout.keys(attempt.address, { kind: 'identification', name: event.subject });
    await this.#attempts.run(keys, async () => {
      await lockout.check(keys, attempt.now, event);
      if (await check()) return;
      await lockout.countFailure(keys, attempt.now, { ...event, detail });
      throw new CmcRefusal('unauthenticated', 'badIdentity', [attempt.bodyPart], 'The shared secret is wrong.', {
        detail,
        audited: true,
      });
    });
  }

  #failure(identification: string | undefined, { address, caLabel }: SecretAttempt): AuditEvent & { subject: string } {
    const subject = presentableName(identification ?? '', this.#options.tokenLength);
    return { type: 'auth.cmc', outcome: 'failure', subject, address, ca: caLabel, ...requestIdField() };
  }
}
