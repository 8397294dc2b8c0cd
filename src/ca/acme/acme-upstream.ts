/**
 * `driver = "acme"`: submits CSRs to an ACME server (RFC 8555, docs/guides/upstream.md). Stores the order's URL before it
 * sends the CSR, so any later poll can continue the order.
 */
import { isIP } from 'node:net';
import { badRequest, describe, EstuaryError, isRefusal, isUnavailable } from '../../errors.ts';
import { OID } from '../../pki/der/oids.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { CRL_REASONS, isCrlReason } from '../../pki/x509/crl.ts';
import { ipAddress } from '../../pki/x509/general-name.ts';
import { attributeValues } from '../../pki/x509/name.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { type CommandLine, runProgram } from '../../process/run-program.ts';
import {
  shortened,
  Unanswered,
  type Upstream,
  type UpstreamAnswer,
  upstreamFailed,
  type UpstreamRequest,
} from '../remote/upstream.ts';
import {
  AcmeClient,
  type AcmeClientOptions,
  AcmeProblem,
  isJson,
  type Json,
  listOf,
  objectOf,
  problemText,
  textOf,
  unreadable,
} from './acme-client.ts';
import { dnsRecord } from './jws.ts';

interface AcmeOptions extends AcmeClientOptions {
  /** `none`: the CA has already authorized our names. */
  readonly challenge: 'dns-01' | 'none';
  readonly dnsHook: CommandLine | undefined;
  readonly log: Pick<IsolatedLog, 'info' | 'warn'>;
}

/** Name and value of a TXT record. */
type TxtRecord = readonly [string, string];

/** What this process did for an order. */
interface OrderWork {
  /** The records in the DNS, by the URL of the challenge. */
  readonly records: Map<string, TxtRecord>;
  /** When the server was last told to validate a challenge, and those that are decided. */
  readonly answered: Map<string, number>;
  readonly decided: Set<string>;
  /** Begun by another process, which may have left records. */
  isInherited: boolean;
  expires: number;
  /** When this process was first refused the certificate. */
  refusedSince?: number;
  /** As in the log. */
  reason?: string;
}

interface Proof {
  readonly name: string;
  readonly isPending: boolean;
  readonly work: OrderWork;
}

/** What an order waits for. */
interface Waiting {
  readonly reason: string;
  /** Seconds that the server asks for. */
  readonly retryAfter: number | undefined;
}

/** Milliseconds between polls of an order if the server names none, doubled up to the maximum. */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [50, 500];
/** Milliseconds before a failed validation is requested again. */
const NEXT_TRY = 5000;
/** Milliseconds to wait for an order before the request is pending. */
const LONGEST_LOOK = 4000;
/** Milliseconds for which an issued certificate may be refused: replicas of the server lag. */
const LONGEST_REFUSAL = 60_000;

export class AcmeUpstream implements Upstream {
  readonly name = 'acme';
  readonly canRecover = false;
  readonly continuesAtOnce = true;
  readonly #options: AcmeOptions;
  readonly #acme: AcmeClient;
  readonly #orders = new Map<string, OrderWork>();

  constructor(options: AcmeOptions) {
    this.#options = options;
    this.#acme = new AcmeClient(options);
  }

  /** Identifiers are `dns` and `ip` (RFC 8555 §9.7.7, RFC 8738); the CN must be one of them. */
  check({ subject, subjectAltNames }: Pick<UpstreamRequest, 'subject' | 'subjectAltNames'>): void {
    const values = subjectAltNames.map((name) => (name.kind === 'dns' || name.kind === 'ip' ? name.value : undefined));
    if (values.length === 0 || values.includes(undefined))
      throw badRequest(
        'UPSTREAM_NAMES',
        'This CA issues certificates for DNS names and IP addresses in the subjectAltName only.',
      );
    const lower = new Set(values.map((value) => value?.toLowerCase()));
    const strange = attributeValues(subject, OID.commonName).find((value) => !lower.has(value.toLowerCase()));
    if (strange !== undefined)
      throw badRequest(
        'UPSTREAM_NAMES',
        `The common name "${shortened(strange)}" is not one of the names in the subjectAltName.`,
      );
  }

  async submit(request: UpstreamRequest, waits: boolean): Promise<UpstreamAnswer> {
    const { newOrder } = await this.#acme.resources();
    // A CSR may repeat a name, also in another case. Some servers accept an identifier once, in lower case.
    const byName = new Map(
      request.subjectAltNames.map((name) => {
        const type = name.kind === 'ip' ? 'ip' : 'dns';
        const value = 'value' in name ? name.value.toLowerCase() : '';
        return [`${type} ${value}`, { type, value }];
      }),
    );
    const identifiers = [...byName.values()];
    // If the response is lost, the order issues nothing: it has no CSR yet.
    const { location: order } = await this.#acme.post(newOrder, { identifiers });
    if (order === undefined || !URL.canParse(order)) throw unreadable('the order has no URL');
    this.#workOn(order, false);
    if (waits) return { status: 'pending', reference: order };
    try {
      return await this.#continue(request, order, true);
    } finally {
      // No later poll continues it.
      await this.#endWork(order);
    }
  }

  async poll(request: UpstreamRequest, reference: string | undefined) {
    if (reference === undefined) return { status: 'unknown' } as const;
    for (const [order, { expires }] of this.#orders) if (expires < Date.now()) await this.#endWork(order);
    this.#workOn(reference, true);
    try {
      const answer = await this.#continue(request, reference, false);
      if (answer.status !== 'pending') await this.#endWork(reference);
      return answer;
    } catch (error) {
      if (isRefusal(error)) await this.#endWork(reference);
      // The server has forgotten the order.
      if (error instanceof AcmeProblem && error.answered === 404) return { status: 'unknown' } as const;
      throw error;
    }
  }

  #workOn(order: string, isInherited: boolean): void {
    if (this.#orders.has(order)) return;
    this.#orders.set(order, {
      records: new Map(),
      answered: new Map(),
      decided: new Set(),
      isInherited,
      expires: Infinity,
    });
  }

  /**
   * Advances an order as far as possible now.
   * @param isLast no later poll continues it, so a failure after the CSR was sent leaves its outcome open
   * @throws EstuaryError; {@link Unanswered}
   */
  async #continue(request: UpstreamRequest, url: string, isLast: boolean): Promise<UpstreamAnswer> {
    const { timeout, retryAfter: usual } = this.#options;
    const end = Date.now() + (isLast ? timeout : Math.min(timeout, LONGEST_LOOK));
    let isSent = false;
    for (let look = 0; ; look++) {
      try {
        let { json: order, retryAfter } = await this.#acme.post(url, undefined);
        const waiting = await this.#authorize(request, url, order);
        if (order['status'] === 'pending' && waiting === undefined)
          ({ json: order, retryAfter } = await this.#acme.post(url, undefined));
        if (order['status'] === 'ready') {
          isSent = true;
          const csr = request.csr.toString('base64url');
          ({ json: order, retryAfter } = await this.#acme.post(textOf(order, 'finalize'), { csr }));
        }
        if (order['status'] === 'valid') return await this.#issued(request, url, order);
        const ended = await this.#endOf(order, waiting?.reason);
        if (ended !== undefined) return this.#rejected(request, ended);
        const wait = waiting?.retryAfter ?? retryAfter;
        const pause = wait === undefined ? Math.min(LONGEST_PAUSE, SHORTEST_PAUSE << Math.min(look, 9)) : wait * 1000;
        if (Date.now() + pause >= end) {
          const reason = waiting?.reason ?? `the order is ${textOf(order, 'status')}`;
          this.#note(request, url, reason);
          return { status: 'pending', reference: url, retryAfter: wait ?? usual, reason };
        }
        await new Promise((resolve) => setTimeout(resolve, pause).unref());
      } catch (error) {
        if (!isSent || !isLast || isRefusal(error)) throw error;
        // Asks for the order, which may be finished.
        if (look > 0) throw new Unanswered(`order ${url}: ${describe(error)}`, error);
      }
    }
  }

  #workAt(order: string): OrderWork {
    const work = this.#orders.get(order);
    if (work === undefined) throw upstreamFailed(`nobody works on the order ${order}`);
    return work;
  }

  /** The certificate exists, so a rejection of its download is not final at once. */
  async #issued(request: UpstreamRequest, url: string, order: Json): Promise<UpstreamAnswer> {
    try {
      return { status: 'issued', certificates: await this.#download(textOf(order, 'certificate')) };
    } catch (error) {
      if (!(error instanceof EstuaryError) || isUnavailable(error)) throw error;
      const work = this.#workAt(url);
      work.refusedSince ??= Date.now();
      if (Date.now() >= Math.min(work.refusedSince + LONGEST_REFUSAL, work.expires))
        return this.#rejected(request, `The upstream CA does not hand out the certificate: ${error.message}`);
      const reason = `the certificate cannot be fetched yet: ${describe(error)}`;
      this.#note(request, url, reason);
      return { status: 'pending', reference: url, retryAfter: this.#options.retryAfter, reason };
    }
  }

  /** Why an order can no longer be fulfilled; undefined: it can. */
  async #endOf(order: Json, waiting: string | undefined): Promise<string | undefined> {
    if (order['status'] === 'invalid')
      return problemText(order) ?? (await this.#failedChallenge(order)) ?? 'The upstream CA rejected the request.';
    const expires = order['status'] === 'processing' ? Infinity : expiryOf(order);
    if (Date.now() < expires) return undefined;
    return `The order at the upstream CA expired${waiting === undefined ? '' : `: ${waiting}`}.`;
  }

  #rejected({ request_id }: UpstreamRequest, reason: string): UpstreamAnswer {
    this.#options.log.warn({ request_id, detail: reason }, 'the order at the upstream CA failed');
    return { status: 'rejected', reason };
  }

  async #failedChallenge(order: Json): Promise<string | undefined> {
    for (const url of listOf(order, 'authorizations')) {
      const { json } = await this.#acme.post(String(url), undefined);
      for (const challenge of listOf(json, 'challenges')) {
        const text = isJson(challenge) ? problemText(challenge) : undefined;
        if (text !== undefined) return text;
      }
    }
    return undefined;
  }

  /** Works on all authorizations. @returns what the order waits for; undefined: each authorization is decided */
  async #authorize(request: UpstreamRequest, url: string, order: Json): Promise<Waiting | undefined> {
    const work = this.#workAt(url);
    work.expires = expiryOf(order);
    const isOpen = order['status'] === 'pending';
    if (!isOpen && !work.isInherited) return undefined;
    const waiting: Waiting[] = [];
    for (const authorizationUrl of listOf(order, 'authorizations')) {
      if (typeof authorizationUrl !== 'string') throw unreadable('an authorization without a URL');
      const { json: authorization, retryAfter } = await this.#acme.post(authorizationUrl, undefined);
      const name = orderedName(authorization, request);
      const isPending = isOpen && authorization['status'] === 'pending';
      const proving = await this.#prove(authorization, { name, isPending, work });
      if (proving !== undefined) waiting.push({ ...proving, retryAfter: proving.retryAfter ?? retryAfter });
    }
    if (!isOpen) work.isInherited = false;
    const [first] = waiting;
    const times = waiting.flatMap(({ retryAfter = [] }) => retryAfter);
    return first && { ...first, retryAfter: times.length === 0 ? undefined : Math.max(...times) };
  }

  /** Answers the dns-01 challenge of an authorization. @returns what it waits for; undefined: it is decided */
  async #prove(authorization: Json, { name, isPending, work }: Proof): Promise<Waiting | undefined> {
    const { challenge: kind, dnsHook } = this.#options;
    if (kind === 'none' || dnsHook === undefined) {
      if (!isPending) return undefined;
      throw upstreamFailed(`the account has no authorization for "${name}", and [ca.acme] challenge is "none"`);
    }
    let challenge = listOf(authorization, 'challenges')
      .filter(isJson)
      .find((challenge) => challenge['type'] === kind);
    if (challenge === undefined) {
      if (!isPending) return undefined;
      throw upstreamFailed(`the upstream CA offers no ${kind} challenge for "${name}"`);
    }
    const url = textOf(challenge, 'url');
    let retryAfter: number | undefined;
    if (isPending) {
      // Some servers leave a challenge pending while they validate it.
      const answered = work.answered.get(url);
      const isNew = challenge['status'] === 'pending' && answered === undefined;
      // RFC 8555 §8.2: after a failed validation, another response requests the next one.
      const isFailed = challenge['status'] === 'pending' && problemText(challenge) !== undefined;
      const answers = isNew || (isFailed && Date.now() - (answered ?? 0) >= NEXT_TRY);
      if (isNew) {
        const record = this.#record(name, challenge);
        work.records.set(url, record);
        await this.#hook(dnsHook, 'present', record);
      }
      ({ json: challenge, retryAfter } = await this.#acme.post(url, answers ? {} : undefined));
      if (answers || answered === undefined) work.answered.set(url, Date.now());
    }
    if (isPending && challenge['status'] !== 'valid' && challenge['status'] !== 'invalid') {
      const text = problemText(challenge);
      return { reason: `${kind} for ${name} is being validated${text === undefined ? '' : `: ${text}`}`, retryAfter };
    }
    const isFinal = challenge['status'] === 'valid' || challenge['status'] === 'invalid';
    if (work.isInherited && isFinal && !work.decided.has(url)) work.records.set(url, this.#record(name, challenge));
    work.decided.add(url);
    await this.#removeRecord(work, url);
    return undefined;
  }

  #record(name: string, challenge: Json): TxtRecord {
    return [`_acme-challenge.${name}`, dnsRecord(textOf(challenge, 'token'), this.#acme.jwk)];
  }

  async #hook(hook: CommandLine, verb: string, record: TxtRecord): Promise<void> {
    const { timeout } = this.#options;
    const [program, ...args] = hook;
    const command = [program, ...args, verb, ...record] as const;
    const result = await runProgram({ command, env: {}, timeout, maxOutput: 64 << 10 }).catch((error: unknown) => {
      throw upstreamFailed(describe(error));
    });
    if (result.code !== 0)
      throw upstreamFailed(
        `${program} ${verb} ended with exit code ${result.code}: ${shortened(result.stderr.toString('utf8'))}`,
      );
  }

  /** The server read the record, or never will. A leftover record is useless to others. */
  async #removeRecord({ records }: OrderWork, challenge: string): Promise<void> {
    const { dnsHook, log } = this.#options;
    const record = records.get(challenge);
    if (record === undefined || dnsHook === undefined) return;
    records.delete(challenge);
    await this.#hook(dnsHook, 'cleanup', record).catch((error: unknown) =>
      log.warn({ detail: describe(error) }, 'cannot remove the record of an ACME challenge'),
    );
  }

  async #endWork(order: string): Promise<void> {
    const work = this.#orders.get(order);
    this.#orders.delete(order);
    for (const challenge of work?.records.keys() ?? [])
      if (work !== undefined) await this.#removeRecord(work, challenge);
  }

  /** Logs a reason once. */
  #note({ request_id }: UpstreamRequest, order: string, detail: string): void {
    const work = this.#orders.get(order);
    if (work === undefined || work.reason === detail) return;
    work.reason = detail;
    this.#options.log.info({ request_id, detail }, 'waiting for the upstream CA');
  }

  async #download(url: string): Promise<readonly Buffer[]> {
    const { body } = await this.#acme.post(url, undefined);
    try {
      const certificates = parsePem(body.toString('latin1')).map(({ der }) => der);
      if (certificates.length === 0) throw unreadable('the order has no certificate');
      return certificates;
    } catch (error) {
      if (error instanceof InputError) throw unreadable(error.message);
      throw error;
    }
  }

  async revoke(certificate: Buffer, reason: string): Promise<void> {
    const { revokeCert } = await this.#acme.resources();
    if (revokeCert === undefined) return;
    const code = isCrlReason(reason) ? CRL_REASONS[reason] : 0;
    try {
      await this.#acme.post(revokeCert, { certificate: certificate.toString('base64url'), reason: code });
    } catch (error) {
      // An earlier revocation whose response was lost.
      if (!(error instanceof AcmeProblem) || error.type !== 'alreadyRevoked') throw error;
    }
  }

  async probe(): Promise<void> {
    await this.#acme.readDirectory();
  }

  close(): void {
    this.#acme.close();
  }
}

/** Milliseconds since the epoch; never, if the server gives no time. */
function expiryOf(order: Json): number {
  const time = Date.parse(String(order['expires']));
  return Number.isNaN(time) ? Infinity : time;
}

/**
 * The name of an authorization, as this server ordered it. The hook of the operator gets no other names.
 * @throws EstuaryError 500
 */
function orderedName(authorization: Json, { subjectAltNames }: UpstreamRequest): string {
  const { type, value } = objectOf(authorization, 'identifier');
  const plain = (text: string): string =>
    type === 'ip' ? plainAddress(text) : text.replace(/^\*\./, '').toLowerCase();
  const wanted = plain(String(value));
  const ordered = subjectAltNames.flatMap((name) =>
    (name.kind === 'dns' || name.kind === 'ip') && name.kind === type ? plain(name.value) : [],
  );
  const name = ordered.find((name) => name === wanted);
  if (name === undefined) throw unreadable(`an authorization is for "${wanted}", which is not in the order`);
  return name;
}

const plainAddress = (text: string): string => (isIP(text) === 0 ? text : ipAddress(text).value);
