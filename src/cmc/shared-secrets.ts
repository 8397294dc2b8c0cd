/**
 * The shared secrets of `[[cmc.shared_secrets]]`: whoever proves to know one is its holder. Failures count toward the
 * lockout like those of one-time passwords, on the address and on the identification (`otp.lockout_scope`). A right
 * proof clears no count: a secret has no uses to spend, so that its holder could guess others for ever.
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
  /** As they are in force. */
  readonly parties: () => Pick<CmcParties, 'secrets'>;
  readonly lockout: Lockout;
  /** `otp.token_length`: a name that looks like a token is not kept. */
  readonly tokenLength: number;
  /** Seconds. */
  readonly retryAfter: number;
}

interface SecretAttempt {
  readonly address: string;
  readonly caLabel: string;
  /** Milliseconds. */
  readonly now: number;
  /** What the failure is about. */
  readonly bodyPart: BodyPartReference;
}

/** Guesses of one key that may wait for one another. */
const WAITING_PER_KEY = 64;

export class SharedSecrets {
  readonly #options: SharedSecretsOptions;
  readonly #attempts: AttemptLimiter;
  /** In the place of a secret that does not exist, so that the time does not tell. */
  readonly #nobodys = randomBytes(32);

  constructor(options: SharedSecretsOptions) {
    this.#options = options;
    // One after the other: a thousand guesses at once must not all be checked before the first failure is counted.
    this.#attempts = new AttemptLimiter({ concurrency: 1, queue: WAITING_PER_KEY }, options.retryAfter);
  }

  /**
   * Checks a proof with the secret of an identification: lockout first, then the proof. A secret for other labels counts as unknown.
   *
   * @param identification undefined: the message names none, so it can be nobody's
   * @param check whether the proof is one by this secret; called also where there is no such secret
   * @throws CmcRefusal 401 badIdentity; EstuaryError 401 `LOCKED_OUT`, 503; what `check` throws, which counts nothing
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
   * Any other check of a secret, with the same lockout.
   *
   * @param name what failures are counted on beside the address
   * @throws CmcRefusal and EstuaryError as {@link verify}
   */
  async guard(
    name: string | undefined,
    attempt: SecretAttempt,
    detail: string,
    check: () => Promise<boolean>,
  ): Promise<void> {
    const { lockout } = this.#options;
    const event = this.failure(name, attempt);
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

  /** The event of a failure; the subject is fit for the store and the log. */
  failure(identification: string | undefined, { address, caLabel }: SecretAttempt): AuditEvent & { subject: string } {
    const subject = presentableName(identification ?? '', this.#options.tokenLength);
    return { type: 'auth.cmc', outcome: 'failure', subject, address, ca: caLabel, ...requestIdField() };
  }
}
