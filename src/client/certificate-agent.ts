/**
 * Manages one certificate from enrollment through renewals. Each step reads the disk, does what is due, and returns
 * when the next step is due. It keeps nothing in memory, so it can be killed and restarted at any time.
 */
import { InputError } from '../pki/input-error.ts';
import { describe } from '../errors.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig, ClientConfig, ServerConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import { attemptEnrollment } from './enrollment.ts';
import { runHooks } from './hooks.ts';
import { type CertificateFolder, type LiveCertificate, passwordFile } from './keep/certificate-folder.ts';
import { locked, report } from './keep-up.ts';
import { changeOf, FIRST_STATE, type State } from './keep/state.ts';
import { freshPassword, recordOfPassword } from './password.ts';
import { askForRenewal } from './renewal-information.ts';
import { CLOCK_RETRY, lifetimeOf, REJECTIONS, Schedule } from './schedule.ts';
import { clockProblem, renewalTime, retryDelay } from './status.ts';
import { removeOldTokenKeys } from './token/keys.ts';

export interface StepOptions {
  /** `enroll`: a new enrollment with the initial credentials; `renew`: an early renewal. */
  readonly force?: 'enroll' | 'renew' | undefined;
  /** Requested by a person: ignores the delay after a failure. */
  readonly explicit?: boolean;
}

export interface StepResult {
  readonly name: string;
  /** `valid`: nothing to do now; `changed`: a new certificate; `pending`: accepted, not issued yet; `failed`. */
  readonly outcome: 'valid' | 'changed' | 'pending' | 'failed';
  /** Nothing is due before. */
  readonly next: number;
  readonly error: ClientError | undefined;
  /** Why the step sent nothing, for a person who requested it. */
  readonly note?: string;
}

export class CertificateAgent {
  readonly #config: CertificateConfig;
  readonly #server: ServerConfig;
  readonly #context: ClientContext;
  readonly #folder: CertificateFolder;
  readonly #schedule: Schedule;
  /** Whether this step sent a request, or tried to. */
  #isAttempt = false;

  constructor(config: CertificateConfig, server: ServerConfig, context: ClientContext) {
    this.#config = config;
    this.#server = server;
    this.#context = context;
    this.#schedule = new Schedule(config, context);
    this.#folder = this.#schedule.folder;
  }

  get name(): string {
    return this.#config.name;
  }

  /** Never throws: errors are in the result, on disk and in the log. */
  async step(options: StepOptions = {}): Promise<StepResult> {
    this.#isAttempt = false;
    try {
      this.#folder.recover(this.#context.now());
      const stepped = await this.#certificate(options);
      await this.#removeUsedPassword();
      const before = this.#folder.state().announced;
      const hook = await this.#announce(options);
      const isAnnounced = this.#folder.state().announced !== before;
      const result = hook === undefined ? await this.#planned(stepped, isAnnounced, options) : stepped;
      const error = result.error ?? hook?.error;
      await this.#finish(result.outcome, error);
      if (hook === undefined) {
        await removeOldTokenKeys(this.#config, this.#folder, this.#context);
        return result;
      }
      return { ...result, next: Math.min(result.next, hook.next), error };
    } catch (error) {
      // The disk is full, not writable, or not ours.
      const failure = asClientError(error);
      this.#context.log('error', this.name, failure.message);
      return { name: this.name, outcome: 'failed', next: this.#context.now() + CLOCK_RETRY, error: failure };
    }
  }

  async #certificate({ force, explicit = force !== undefined }: StepOptions): Promise<StepResult> {
    const live = this.#folder.live();
    const state = this.#folder.state();
    const now = this.#context.now();
    const problem = clockProblem(now, live?.certificate);
    if (problem !== undefined) {
      this.#context.log('warning', this.name, `${problem}: waiting until it is set`);
      const error = new ClientError('local', 'CLOCK_WRONG', problem);
      return { name: this.name, outcome: 'failed', next: now + CLOCK_RETRY, error };
    }
    const due = live === undefined ? 0 : this.#schedule.renewalTime(live);
    const pending = this.#folder.pending();
    const { name } = this;
    const successor = this.#folder.successor()?.certificate.notBefore;
    if (successor !== undefined && force === undefined) {
      const note = `valid from ${isoTime(successor)}: the new certificate; the current one stays until then`;
      return { name, outcome: 'valid', next: successor.getTime(), error: undefined, note };
    }
    const isNew = force !== 'renew' && this.#schedule.hasNewPassword(state);
    const isRecovery = isNew || (state.recovering === true && pending?.operation === 'simpleenroll');
    if (live !== undefined && force === undefined && pending === undefined && !isRecovery && now < due) {
      const note = `valid until ${isoTime(live.certificate.notAfter)}, renewal ${isoTime(due)}; run with --force to replace it now`;
      return { name, outcome: 'valid', next: due, error: undefined, note };
    }
    const next = state.nextAttempt;
    if (!explicit && !isNew && now < next) {
      const { accepted, lastError } = state;
      const reason = accepted ? 'accepted, not issued yet' : (lastError?.message ?? 'the last attempt failed');
      const note = `${reason}; next attempt ${isoTime(next)}${accepted ? '' : ', or now with --force'}`;
      return { name, outcome: accepted ? 'pending' : 'failed', next, error: undefined, note };
    }
    // A forced new enrollment continues until a renewal is due.
    const anew =
      force === 'enroll' || isRecovery || (force === undefined && pending?.operation === 'simpleenroll' && now < due);
    if (isNew) this.#folder.saveState({ ...state, recovering: true, nextAttempt: 0 });
    return this.#attempt(live, { ...state, recovering: isRecovery }, anew);
  }

  #task(config: CertificateConfig): Parameters<typeof attemptEnrollment>[0] {
    return { config, server: this.#server, context: this.#context, store: this.#folder };
  }

  async #removeUsedPassword(): Promise<void> {
    const credentials = this.#schedule.credentials();
    if (credentials === this.#config || this.#config.otp_file === credentials.otp_file) return;
    const password = await freshPassword(credentials, this.#context, this.#folder.spentPasswords())?.();
    if (password === undefined) this.#context.disk.remove(passwordFile(this.#config));
  }

  /**
   * Asks the server when to renew, if it is time. A person who asked for a step does not wait for it, except after a
   * change: the request proves to the server that the new certificate is in use, so it is made after the hook.
   */
  async #planned(
    result: StepResult,
    isAnnounced: boolean,
    { force, explicit = force !== undefined }: StepOptions,
  ): Promise<StepResult> {
    const live = this.#folder.live();
    const isSettled = result.outcome === 'valid' || result.outcome === 'changed';
    if ((explicit && !isAnnounced) || live === undefined || !isSettled || this.#folder.successor() !== undefined)
      return result;
    if (isAnnounced || this.#context.now() >= this.#schedule.askAt(live)) {
      const former = this.#folder.state().renewal;
      const renewal = await askForRenewal(this.#task(this.#config), live, former);
      this.#folder.saveState({ ...this.#folder.state(), renewal });
    }
    return { ...result, next: Math.min(this.#schedule.renewalTime(live), this.#schedule.askAt(live)) };
  }

  async #attempt(live: LiveCertificate | undefined, state: State, anew: boolean): Promise<StepResult> {
    const { name } = this;
    try {
      this.#isAttempt = true;
      await runHooks('before', this.#config, this.#context, this.#environment(live)).catch((error: unknown) => {
        // A recovery does not wait for a program to be repaired.
        if (state.recovering !== true) throw error;
        this.#context.log('error', name, describe(error));
      });
      const notBefore = state.accepted ? state.nextAttempt : 0;
      const answer = await attemptEnrollment(this.#task(this.#schedule.credentials()), { anew, notBefore });
      if (answer.kind === 'pending') {
        const next = this.#context.now() + answer.retryAfter * 1000;
        this.#folder.saveState({ ...state, accepted: true, failures: 0, nextAttempt: next, lastError: undefined });
        this.#context.log('info', name, `accepted, not issued yet; asking again in ${answer.retryAfter} s`);
        return { name, outcome: 'pending', next, error: undefined };
      }
      const { announced, hookFailures, nextHook } = state;
      this.#folder.saveState({ ...FIRST_STATE, announced, hookFailures, nextHook });
      const { certificate } = answer;
      const successor = this.#folder.successor()?.certificate.notBefore;
      const validity =
        successor === undefined
          ? `valid until ${isoTime(certificate.notAfter)}`
          : `valid only from ${isoTime(successor)}: the current one stays until then`;
      this.#context.log(successor === undefined ? 'info' : 'warning', name, `has a new certificate, ${validity}`);
      const next = successor?.getTime() ?? renewalTime(certificate, this.#config.renew_at / 100);
      return { name, outcome: 'changed', next, error: undefined };
    } catch (error) {
      return this.#failed(asClientError(error), live, state, anew);
    }
  }

  #failed(error: ClientError, live: LiveCertificate | undefined, state: State, anew: boolean): StepResult {
    // The server would reject the same request again; invalid credentials for a second certificate are useless.
    const isOver = error.kind === 'refused' || error.kind === 'disabled';
    if (isOver || (error.kind === 'unauthenticated' && anew && live !== undefined)) this.#folder.dropPending();
    const now = this.#context.now();
    const failures = state.failures + 1;
    const delay = retryDelay(error, failures, live && lifetimeOf(live), this.#context.random());
    const lastError = keepingRejection(state, error, now);
    const accepted = state.accepted && !isOver;
    // A renewal sends no password.
    const isRenewal = !anew && live !== undefined && live.certificate.notAfter.getTime() >= now;
    const isSent = REJECTIONS.has(error.code) && !isRenewal;
    const rejected = isSent ? recordOfPassword(this.#schedule.credentials(), this.#context) : state.rejected;
    this.#folder.saveState({ ...state, accepted, rejected, failures, nextAttempt: now + delay, lastError });
    const left = live === undefined ? '' : `; the certificate expires ${isoTime(live.certificate.notAfter)}`;
    const remedy =
      error.kind === 'disabled'
        ? `. An administrator must enable the device, or put a new one-time password into ${passwordFile(this.#config)}`
        : '';
    const when = `next attempt in ${Math.ceil(delay / 1000)} s${left}`;
    this.#context.log('error', this.name, `${error.message}${remedy}; ${when}`);
    return { name: this.name, outcome: 'failed', next: now + delay, error };
  }

  /** Runs the hook once per change, and repeats it until it succeeds. A hook interrupted by a kill runs again. */
  async #announce({
    force,
    explicit = force !== undefined,
  }: StepOptions): Promise<{ readonly next: number; readonly error: ClientError | undefined } | undefined> {
    const live = this.#folder.live();
    const state = this.#folder.state();
    if (live === undefined) return undefined;
    const change = changeOf(live.version, this.#folder.caPem());
    if (state.announced === change) return undefined;
    const now = this.#context.now();
    if (!explicit && now < state.nextHook) return { next: state.nextHook, error: undefined };
    try {
      await runHooks('deploy', this.#config, this.#context, this.#environment(live));
    } catch (error) {
      const failure = asClientError(error);
      const hookFailures = state.hookFailures + 1;
      const next = now + retryDelay(failure, hookFailures, lifetimeOf(live), this.#context.random());
      const lastError = keepingRejection(state, failure, now);
      this.#folder.saveState({ ...state, hookFailures, nextHook: next, lastError });
      this.#context.log('error', this.name, failure.message);
      return { next, error: failure };
    }
    const lastError = state.lastError?.code === 'HOOK_FAILED' ? undefined : state.lastError;
    this.#folder.saveState({ ...state, announced: change, hookFailures: 0, nextHook: 0, lastError });
    return undefined;
  }

  /** The hooks after an attempt. Their failure changes nothing. */
  async #finish(outcome: StepResult['outcome'], error: ClientError | undefined): Promise<void> {
    const isFailure = error !== undefined && error.code !== 'CLOCK_WRONG';
    const values = { ESTUARY_OUTCOME: outcome, ESTUARY_ERROR: error?.message, ESTUARY_ERROR_CODE: error?.code };
    for (const kind of [...(isFailure ? ['failure' as const] : []), ...(this.#isAttempt ? ['after' as const] : [])])
      try {
        const environment = { ...this.#environment(this.#folder.live()), ...values };
        await runHooks(kind, this.#config, this.#context, environment);
      } catch (problem) {
        this.#context.log('error', this.name, `${kind}: ${describe(problem)}`);
      }
  }

  #environment(live: LiveCertificate | undefined): Record<string, string | undefined> {
    if (live === undefined) return {};
    return {
      ESTUARY_VERSION: String(live.version),
      ESTUARY_SERIAL: live.certificate.serialNumber,
      ESTUARY_NOT_AFTER: live.certificate.notAfter.toISOString(),
    };
  }
}

/** One step per certificate. @throws ClientError if another process uses one of the folders */
export async function stepAll(
  config: ClientConfig,
  chosen: readonly CertificateConfig[],
  context: ClientContext,
  options: StepOptions = {},
): Promise<StepResult[]> {
  return locked(chosen, 'step', async () => {
    const results: StepResult[] = [];
    for (const certificate of chosen) {
      const result = await new CertificateAgent(certificate, config.server, context).step(options);
      const { outcome, note } = result;
      // A timer run with nothing to do is silent.
      if (note !== undefined && (outcome !== 'valid' || options.explicit === true))
        context.log('info', certificate.name, note);
      results.push(result);
    }
    report(config, context);
    return results;
  });
}

/** A failed hook does not hide that the server rejects the device, after which a new password helps. */
const keepingRejection = ({ lastError }: State, { code, message }: ClientError, now: number): State['lastError'] =>
  code === 'HOOK_FAILED' && REJECTIONS.has(lastError?.code ?? '')
    ? lastError
    : { code, message, time: new Date(now).toISOString() };

const isoTime = (time: Date | number): string => new Date(time).toISOString();

function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  const kind = error instanceof InputError ? 'refused' : 'local';
  return new ClientError(kind, 'FILES_UNUSABLE', describe(error), { cause: error });
}
