/**
 * A CA that receives the device's CSR as signed (drivers est, acme, command). Implements what these drivers share: the
 * breaker, the call limit, the chain, and the comparison of the result with the request.
 */
import { measured } from '../../dependency-calls.ts';
import { badRequest, describe, EstuaryError, failed, unavailable } from '../../errors.ts';
import type { ProfileConfig } from '../../config/schema/profile.ts';
import { readableCertificates, type Certificate } from '../../pki/x509/certificate.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import {
  SubmissionUnanswered,
  type CaDependency,
  type CaDriver,
  type Found,
  type HealthReport,
  type IssuanceRequest,
  type IssuanceResult,
  type PollResult,
  type PreparedIssuance,
  type RemoteQueue,
  type RevocationRequest,
  type SoughtRequest,
} from '../driver.ts';
import { PersistentStart } from '../persistent-start.ts';
import { Breaker } from './breaker.ts';
import { ChainKeeping, isSameChain } from './chain-keeping.ts';
import { type IssuedProfile, issuedProblem, isKey, pathToAnchor, verifiedChain } from './issued.ts';
import { caUnavailable, checkSubject, Unanswered, upstreamFailed } from './upstream.ts';
import type { Upstream, UpstreamAnswer, UpstreamRequest } from './upstream.ts';

interface RemoteCaOptions {
  readonly label: string;
  readonly upstream: Upstream;
  readonly anchors: readonly Certificate[];
  /** `chain`: certificates known at start, issuing CA first. */
  readonly chain: readonly Certificate[];
  readonly maxCalls: number;
  /** Milliseconds per call. */
  readonly timeout: number;
  readonly retryAfter: number;
  readonly profile: IssuedProfile & Pick<ProfileConfig, 'validity_days'>;
  readonly log: IsolatedLog;
  /** Stores the intermediates between a certificate and an anchor. */
  readonly store: Pick<IntermediateStore, 'rememberIntermediates' | 'recallIntermediates'>;
  readonly now: () => number;
}

/** Milliseconds between reads of the upstream's chain. */
const CHAIN_INTERVAL = 3_600_000;
/** The same while the chain is unknown. */
const CHAIN_RETRY = 10_000;
/** Milliseconds that the server's start waits for the upstream, and between attempts to open it. */
const [PATIENCE, REOPEN] = [2000, 10_000];
/** Milliseconds for which an upstream may not know a pending request, before it counts as lost. */
const LOST_AFTER = 600_000;
/** Calls that may wait per concurrent call. */
const WAITING = 16;
const DAY = 86_400_000;

export class RemoteCa implements CaDriver {
  readonly takesCsr = true;
  readonly remoteQueue: RemoteQueue;
  readonly dependency: CaDependency;
  readonly #options: RemoteCaOptions;
  readonly #breaker: Breaker;
  readonly #calls: FairLimiter;
  /** As {@link chain} publishes it. */
  #chain: readonly Certificate[];
  #chainRead = 0;
  readonly #keeping: ChainKeeping;
  /** The upstream itself has reported {@link #chain}. */
  #isConfirmed = false;
  readonly #opening: PersistentStart;
  #chainTimer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Earliest next poll of each pending request. */
  readonly #due = new Map<string, number>();

  constructor(options: RemoteCaOptions) {
    const { upstream, maxCalls, timeout, retryAfter, log } = options;
    this.#options = options;
    this.#chain = options.chain;
    this.#keeping = new ChainKeeping(options);
    this.#calls = new FairLimiter({
      concurrency: maxCalls,
      queue: maxCalls * WAITING,
      busy: (detail) => caUnavailable(`too many calls to the upstream CA: ${detail}`, retryAfter),
    });
    this.#breaker = new Breaker({ probe: () => upstream.probe(), log });
    this.#opening = new PersistentStart(() => this.#open(), {
      what: 'the upstream CA',
      log,
      patience: PATIENCE,
      interval: REOPEN,
    });
    this.dependency = { name: upstream.name, health: () => this.health() };
    this.remoteQueue = {
      settled: 2 * timeout,
      lostAfter: LOST_AFTER,
      continuesAtOnce: upstream.continuesAtOnce,
      showsFailures: true,
      canFind: upstream.canRecover,
      // Only the response shows whether the upstream queues.
      issuesAtOnce: () => Promise.resolve(true),
      poll: (reference, request) => this.#poll(reference, request),
      find: (sought) => this.#find(sought),
      verify: (certificate, request) => this.#verify([certificate], request).then(() => undefined),
    };
  }

  /** A reload has to create another one, even if nothing changed. */
  get hasGivenUp(): boolean {
    return this.#options.upstream.hasGivenUp ?? false;
  }

  /** Does not wait for the upstream: until it answers, the kept chain counts. */
  async start(): Promise<void> {
    if (this.#chain.length === 0) this.#chain = (await this.#keeping.recall()) ?? [];
    await this.#opening.start();
  }

  /** @throws Error why no call can be made */
  async #open(): Promise<void> {
    const { upstream } = this.#options;
    try {
      await upstream.start?.();
    } catch (error) {
      this.#breaker.open(describe(error));
      throw error;
    }
    if (upstream.chain !== undefined) await this.#refreshChain();
    else await upstream.probe().catch((error: unknown) => this.#breaker.open(describe(error)));
  }

  chain(): readonly Buffer[] {
    const { upstream, anchors } = this.#options;
    const known = this.#chain.length === 0 && upstream.chain === undefined ? anchors : this.#chain;
    return known.map(({ der }) => der);
  }

  unconfirmed(): readonly Certificate[] {
    const { upstream, anchors } = this.#options;
    return this.#isConfirmed || upstream.chain === undefined ? [] : anchors;
  }

  csrAttributes(): Promise<Buffer | undefined> {
    const { upstream } = this.#options;
    return upstream.csrAttributes === undefined
      ? Promise.resolve(undefined)
      : this.#call(() => upstream.csrAttributes?.() ?? Promise.resolve(undefined));
  }

  async issue(request: IssuanceRequest, waits?: boolean): Promise<IssuanceResult> {
    return (await this.prepare(request)).issue(waits);
  }

  prepare(request: IssuanceRequest): Promise<PreparedIssuance> {
    return Promise.resolve().then(() => {
      const { csr, subject } = request;
      if (csr === undefined)
        throw badRequest(
          'UPSTREAM_PKCS10_ONLY',
          'This CA takes only a PKCS #10 request, exactly as the device signed it.',
        );
      checkSubject(csr, subject);
      this.#options.upstream.check?.(request);
      this.#refuseIfDown();
      const submission = this.#upstreamRequest(request, csr.der);
      return { serial: null, issue: (waits = false) => this.#issue(request, submission, waits) };
    });
  }

  #upstreamRequest(request: IssuanceRequest, csr: Buffer): UpstreamRequest {
    const { request_id, subject, subjectAltNames, validityDays, requester = '', operation = '' } = request;
    const notAfter = new Date(this.#options.now() + (validityDays ?? this.#options.profile.validity_days) * DAY);
    return { request_id, csr, subject, subjectAltNames, requester, operation, notAfter };
  }

  async #issue(request: IssuanceRequest, submission: UpstreamRequest, waits: boolean): Promise<IssuanceResult> {
    const { upstream } = this.#options;
    return this.#resultOf(request, await this.#call(() => upstream.submit(submission, waits)));
  }

  async #poll(reference: string, request: IssuanceRequest): Promise<PollResult> {
    const { upstream, now } = this.#options;
    const { request_id, pkcs10 } = request;
    if (pkcs10 === undefined) return { status: 'pending', reference };
    const wait = (this.#due.get(request_id) ?? 0) - now();
    if (wait > 0) return { status: 'pending', reference, retryAfter: Math.ceil(wait / 1000) };
    const answer = await this.#call(() => upstream.poll(this.#upstreamRequest(request, pkcs10), reference));
    if (answer.status === 'unknown') return answer;
    return this.#resultOf(request, answer);
  }

  /** Looks up an unanswered submission. */
  async #find(sought: SoughtRequest): Promise<readonly Found[]> {
    const { upstream } = this.#options;
    const { pkcs10, subjectAltNames = [] } = sought;
    if (!upstream.canRecover || pkcs10 === undefined) return [];
    const request = { ...sought, subjectAltNames, csr: undefined };
    const answer = await this.#call(() => upstream.poll(this.#upstreamRequest(request, pkcs10), undefined));
    if (answer.status === 'pending') return [{ reference: answer.reference }];
    if (answer.status === 'issued') return [{ certificate: await this.#verify(answer.certificates, request) }];
    return [];
  }

  async #resultOf(request: IssuanceRequest, answer: UpstreamAnswer): Promise<IssuanceResult> {
    if (answer.status === 'issued') {
      this.#due.delete(request.request_id);
      return { status: 'issued', certificate: await this.#verify(answer.certificates, request) };
    }
    if (answer.status === 'pending' && answer.retryAfter !== undefined) {
      const { now } = this.#options;
      for (const [id, due] of this.#due) if (due <= now()) this.#due.delete(id);
      this.#due.set(request.request_id, now() + answer.retryAfter * 1000);
    }
    return answer;
  }

  /**
   * @throws EstuaryError 500 `CA_ISSUED_OTHER`: the certificate is not delivered, and is revoked upstream if possible
   */
  async #verify(ders: readonly Buffer[], request: IssuanceRequest): Promise<Buffer> {
    const { anchors, now, profile } = this.#options;
    const certificates = readableCertificates(ders);
    const leaf = this.#leafAmong(certificates, request.spki);
    if (leaf === undefined) {
      const unreadable = ders.find((der) => !certificates.some((certificate) => certificate.der === der));
      if (unreadable === undefined) throw issuedOther('it issued no certificate');
      throw issuedOther(`it issued a certificate that cannot be read; ${await this.#withdraw(unreadable)}`);
    }
    const time = now();
    const problem = issuedProblem(leaf, request, profile, time);
    const findPath = () => pathToAnchor(leaf, [...certificates, ...this.#chain], anchors, time);
    let path = problem === undefined ? await findPath() : undefined;
    if (problem === undefined && path === undefined && (await this.#hasOtherChain())) path = await findPath();
    if (problem === undefined && path !== undefined) {
      // An upstream that publishes no chain has the chain of its last certificate. Devices present only their own
      // certificate.
      if (this.#options.upstream.chain === undefined) {
        this.#chain = path;
        await this.#keeping.keep(this.#chain);
        const intermediates = path.filter((certificate) => !anchors.includes(certificate));
        if (intermediates.length > 0)
          await this.#options.store.rememberIntermediates({ leaf: leaf.fingerprint, intermediates }, time);
      }
      return leaf.der;
    }
    const why = problem ?? 'it does not chain to a certificate in upstream_trust_anchors';
    throw issuedOther(`certificate ${leaf.serialNumber}: ${why}; ${await this.#withdraw(leaf.der)}`);
  }

  /** The certificate to judge; a CA certificate for another key belongs to the chain, unless it comes alone. */
  #leafAmong(certificates: readonly Certificate[], spki: Buffer): Certificate | undefined {
    const [first, ...more] = certificates;
    const known = [...this.#options.anchors, ...this.#chain];
    const isAlone = more.length === 0 && !known.some(({ fingerprint }) => fingerprint === first?.fingerprint);
    return (
      certificates.find((certificate) => isKey(certificate, spki)) ??
      certificates.find(({ isCa }) => !isCa) ??
      (isAlone ? first : undefined)
    );
  }

  /** Revokes an undeliverable certificate and describes the outcome. */
  async #withdraw(certificate: Buffer): Promise<string> {
    const { upstream } = this.#options;
    if (upstream.revoke === undefined) return 'it stays valid at the upstream CA';
    try {
      await upstream.revoke(certificate, 'cessationOfOperation');
      return 'revoked at the upstream CA';
    } catch (error) {
      return `revoking it at the upstream CA failed: ${describe(error)}`;
    }
  }

  /** Every call: limited, measured, and counted by the breaker. */
  async #call<T>(work: () => Promise<T>): Promise<T> {
    const { upstream, timeout, retryAfter } = this.#options;
    this.#refuseIfDown();
    const release = await this.#calls.acquire({ waitMs: timeout });
    try {
      const result = await measured({ dependency: upstream.name }, work, isAnswer);
      this.#breaker.succeeded();
      return result;
    } catch (error) {
      if (isAnswer(error)) this.#breaker.succeeded();
      else this.#breaker.failed(error);
      if (!(error instanceof Unanswered)) throw error;
      if (upstream.canRecover) throw new SubmissionUnanswered(error);
      throw unavailable('SUBMISSION_LOST', 'The CA did not answer. It may have issued a certificate.', {
        retryAfter,
        detail: `possibly issued: ${error.message}`,
      });
    } finally {
      release();
    }
  }

  #refuseIfDown(): void {
    const { problem } = this.#breaker;
    if (problem === undefined) return;
    const { retryAfter } = this.#options;
    throw caUnavailable(problem, retryAfter);
  }

  /** The upstream may have a new CA certificate since the last look. */
  async #hasOtherChain(): Promise<boolean> {
    const before = this.#chain;
    if (this.#options.upstream.chain === undefined || Date.now() < this.#chainRead + CHAIN_RETRY) return false;
    await this.#refreshChain();
    return this.#chain !== before;
  }

  async #refreshChain(): Promise<void> {
    const { upstream, anchors, log, now } = this.#options;
    this.#chainRead = Date.now();
    try {
      const chain = await verifiedChain((await upstream.chain?.()) ?? [], anchors, now());
      if (chain === undefined)
        throw upstreamFailed('its chain does not end at a certificate in upstream_trust_anchors');
      if (!isSameChain(this.#chain, chain)) this.#chain = chain;
      this.#isConfirmed = true;
      this.#breaker.succeeded();
    } catch (error) {
      log.warn({ detail: describe(error) }, 'cannot refresh the chain of the upstream CA');
      if (!this.#isConfirmed) this.#breaker.open(describe(error));
    }
    await this.#keeping.keep(this.#chain);
    clearTimeout(this.#chainTimer);
    const wait = this.#isConfirmed ? CHAIN_INTERVAL : CHAIN_RETRY;
    if (!this.#closed) this.#chainTimer = setTimeout(() => void this.#refreshChain(), wait).unref();
  }

  get cannotHold(): true | undefined {
    return this.#options.upstream.revoke === undefined ? undefined : true;
  }

  async revoke({ certificate, reason }: RevocationRequest): Promise<void> {
    const { upstream } = this.#options;
    if (upstream.revoke === undefined || certificate === undefined || certificate.length === 0) return;
    await this.#call(() => upstream.revoke?.(certificate, reason) ?? Promise.resolve());
  }

  health(): Promise<HealthReport> {
    const detail = this.#opening.problem;
    const report = this.#breaker.health();
    return Promise.resolve(report.health === 'ok' && detail !== undefined ? { health: 'down', detail } : report);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#opening.stop();
    clearTimeout(this.#chainTimer);
    this.#breaker.close();
    this.#options.upstream.close();
    return Promise.resolve();
  }
}

/** Whether the upstream works: a rejection also counts as an answer. */
const isAnswer = (error: unknown): boolean =>
  error instanceof EstuaryError && error.kind !== 'unavailable' && error.code !== 'UPSTREAM_FAILED';

const issuedOther = (detail: string): EstuaryError =>
  failed('CA_ISSUED_OTHER', 'The CA issued a certificate that differs from the request.', { detail });
