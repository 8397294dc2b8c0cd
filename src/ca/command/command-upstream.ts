/** `driver = "command"`: the operator's programs submit, poll and revoke (docs/guides/upstream.md). */
import { access, constants } from 'node:fs/promises';
import { describe, failed, forbidden } from '../../errors.ts';
import { encodePem, parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { CRL_REASONS, isCrlReason } from '../../pki/x509/crl.ts';
import { type CommandLine, ProgramError, runProgram, type ProgramResult } from '../../process/run-program.ts';
import {
  caUnavailable,
  shortened,
  Unanswered,
  type Upstream,
  type UpstreamAnswer,
  upstreamFailed,
  type UpstreamRequest,
} from '../remote/upstream.ts';

interface CommandOptions {
  readonly label: string;
  readonly issue: CommandLine;
  readonly poll: CommandLine | undefined;
  readonly revoke: CommandLine | undefined;
  /** Milliseconds per run. */
  readonly timeout: number;
  readonly retryAfter: number;
}

/** Exit codes as in sysexits.h (EX_DATAERR, EX_TEMPFAIL). */
const EXIT = { issued: 0, pending: 10, rejected: 65, later: 75 } as const;
const MAX_OUTPUT = 256 << 10;

export class CommandUpstream implements Upstream {
  readonly name = 'command';
  readonly canRecover: boolean;
  readonly continuesAtOnce = false;
  readonly revoke?: (certificate: Buffer, reason: string) => Promise<void>;
  readonly #options: CommandOptions;

  constructor(options: CommandOptions) {
    this.#options = options;
    this.canRecover = options.poll !== undefined;
    const { revoke } = options;
    if (revoke !== undefined) this.revoke = (certificate, reason) => this.#revoke(revoke, certificate, reason);
  }

  async submit(request: UpstreamRequest): Promise<UpstreamAnswer> {
    const { issue } = this.#options;
    let problem: string;
    try {
      const result = await this.#run(issue, request, encodePem('CERTIFICATE REQUEST', request.csr));
      const answer = this.#answer(result);
      if (typeof answer !== 'string') return rejecting(answer);
      problem = answer;
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      if (!error.started) throw upstreamFailed(error.message);
      problem = error.message;
    }
    return this.#recover(request, problem);
  }

  /** Runs `poll` once for a submission with an unknown outcome. */
  async #recover(request: UpstreamRequest, problem: string): Promise<UpstreamAnswer> {
    if (this.#options.poll !== undefined) {
      const answer = await this.poll(request, undefined);
      if (answer.status !== 'unknown') return rejecting(answer);
    }
    const detail = `possibly issued: ${problem}`;
    throw upstreamFailed(detail);
  }

  async poll(
    request: UpstreamRequest,
    reference: string | undefined,
  ): Promise<UpstreamAnswer | { readonly status: 'unknown' }> {
    const { poll } = this.#options;
    if (poll === undefined) return { status: 'unknown' };
    try {
      const answer = this.#answer(await this.#run(poll, request, reference ?? ''), reference);
      return typeof answer === 'string' ? { status: 'unknown' } : answer;
    } catch (error) {
      if (error instanceof ProgramError) throw new Unanswered(error.message, error);
      throw error;
    }
  }

  /** Maps an exit code to an answer, or to the reason why the result is invalid. @throws EstuaryError 503 */
  #answer({ code, stdout, stderr }: ProgramResult, known = ''): UpstreamAnswer | string {
    const errors = shortened(stderr.toString('utf8').split('\n', 1)[0] ?? '');
    switch (code) {
      case EXIT.issued:
        return issuedIn(stdout);
      case EXIT.pending: {
        if (this.#options.poll === undefined) return 'exit code 10, and command.poll is not set';
        const printed = stdout.toString('utf8').trim();
        const reference = printed === '' ? known : printed;
        if (reference === '' || reference.length > 512 || /\p{Cc}/u.test(reference))
          return 'exit code 10 without an ID of one line on the standard output';
        return { status: 'pending', reference };
      }
      case EXIT.rejected:
        return { status: 'rejected', reason: errors === '' ? 'The upstream CA rejected the request.' : errors };
      case EXIT.later:
        throw caUnavailable(`exit code 75: ${errors}`, this.#options.retryAfter);
      default:
        return `exit code ${code}: ${errors}`;
    }
  }

  #run(command: CommandLine, request: UpstreamRequest, input: string): Promise<ProgramResult> {
    const { label, timeout } = this.#options;
    const env = {
      ESTUARY_LABEL: label,
      ESTUARY_REQUEST_ID: request.request_id,
      ESTUARY_REQUESTER: request.requester.replaceAll('\0', ''),
      ESTUARY_OPERATION: request.operation,
      ESTUARY_NOT_AFTER: request.notAfter.toISOString(),
    };
    return runProgram({ command, env, input, timeout, maxOutput: MAX_OUTPUT });
  }

  async #revoke(command: CommandLine, certificate: Buffer, reason: string): Promise<void> {
    const { label, timeout } = this.#options;
    const code = isCrlReason(reason) ? CRL_REASONS[reason] : 0;
    const env = { ESTUARY_LABEL: label, ESTUARY_REASON: reason, ESTUARY_REASON_CODE: String(code) };
    const input = encodePem('CERTIFICATE', certificate);
    const result = await runProgram({ command, env, input, timeout, maxOutput: MAX_OUTPUT });
    if (result.code !== 0)
      throw failed('CA_REVOCATION_FAILED', 'the CA did not revoke the certificate', {
        detail: `exit code ${result.code}: ${shortened(result.stderr.toString('utf8'))}`,
      });
  }

  probe(): Promise<void> {
    const [program] = this.#options.issue;
    return access(program, constants.X_OK).catch((error: unknown) => {
      throw new Error(`${program} cannot be run: ${describe(error)}`);
    });
  }

  close(): void {
    // Running programs end with their timeout.
  }
}

/** @throws EstuaryError 403 if the upstream rejected the request */
function rejecting(answer: UpstreamAnswer): UpstreamAnswer {
  if (answer.status === 'rejected') throw forbidden('UPSTREAM_FORBIDDEN', answer.reason);
  return answer;
}

function issuedIn(stdout: Buffer): UpstreamAnswer | string {
  try {
    const blocks = parsePem(stdout.toString('latin1')).filter(({ label }) =>
      /^(X509 |TRUSTED )?CERTIFICATE$/.test(label),
    );
    if (blocks.length === 0) return 'exit code 0 without a PEM certificate on the standard output';
    return { status: 'issued', certificates: blocks.map(({ der }) => der) };
  } catch (error) {
    if (error instanceof InputError) return `exit code 0 with a damaged certificate: ${error.message}`;
    throw error;
  }
}
