/** The CMC server of the CAs whose keys are here: from a received message to its answer (RFC 5272; docs/guides/cmc.md). */
import type { AuditEvent } from '../audit/event.ts';
import { auditedRequester } from '../auth/identity.ts';
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { CaRouter } from '../ca/router.ts';
import type { Config } from '../config/schema.ts';
import type { Enrollment } from '../enrollment/enrollment.ts';
import type { Logger } from '../log.ts';
import type { CmcStore } from '../store/cmc-store.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { Store } from '../store/store.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { controlsNamed, type CmcControl, type ControlName } from '../pki/cmc/controls.ts';
import { Authenticator, type Voucher } from './authenticate.ts';
import { checkMessage, MAX_REQUESTS, popWitness, processedControls, voucherFor } from './check-message.ts';
import { control, readContent, readEnvelope, type Message } from './message.ts';
import { OPERATION, PendingRequests } from './pending.ts';
import { asRefusal, badMessage, denials, done, outcomeOf, type PartOutcome } from './refusal.ts';
import {
  AnswerOnce,
  checkRecipientNonce,
  type CmcAnswerMessage,
  type NewAnswer,
  transactionOf,
} from './answer-once.ts';
import { requestIdOf, Requests, type MessageBase, type PopWitness } from './requests.ts';
import type { TaggedContentInfo } from '../pki/cmc/pki-data.ts';
import type { CmcParties, Origin, Responder, Sender } from './sender.ts';
import { buildResponse, type PkiResponseMessage } from './response.ts';
import { getCert, getCrl, type CrlSource } from './retrieval.ts';
import { CertificateActions } from './revocation.ts';
import { SharedSecrets } from './shared-secrets.ts';
import { signerSerial, Signers } from './signers.ts';
import { noteOnRequest } from '../request-context.ts';

interface CmcServerOptions {
  readonly store: AuditStore & CertificateStore & CmcStore;
  readonly log: Logger;
  readonly authenticator: Authenticator;
  readonly enrollment: Pick<Enrollment, 'recordDenial'>;
  readonly requests: Requests;
  readonly pending: PendingRequests;
  readonly actions: CertificateActions;
  readonly crls: CrlSource;
  /** This process, as the one that processes a message. */
  readonly instance: string;
  readonly retryAfter: number;
}

interface CmcContext extends Pick<CmcServerOptions, 'log' | 'crls' | 'instance'> {
  readonly store: Store;
  readonly cas: Pick<CaRouter, 'issuers'>;
  readonly enrollment: Enrollment;
  readonly otp: OtpService;
  /** The snapshot in force. */
  readonly trust: () => ClientTrust | undefined;
  readonly parties: () => CmcParties;
  readonly now: () => number;
}

export function createCmcServer(config: Pick<Config, 'otp' | 'est'>, context: CmcContext): CmcServer {
  const { store, enrollment, otp, parties } = context;
  const { token_length: tokenLength, bind_client_id: clientIdBinding } = config.otp;
  const retryAfter = config.est.retry_after;
  const secrets = new SharedSecrets({ parties, lockout: otp.lockout, tokenLength, retryAfter });
  const pending = new PendingRequests(store, enrollment);
  return new CmcServer({
    ...context,
    retryAfter,
    pending,
    authenticator: new Authenticator(new Signers(context), secrets, pending),
    requests: new Requests({ enrollment, store, clientIdBinding }),
    actions: new CertificateActions({ ...context, secrets }),
  });
}

interface Received extends Origin {
  readonly requestId: string;
  /** BER ContentInfo. */
  readonly body: Buffer;
  readonly responder: Responder;
}

/** A parsed message with an authenticated sender. */
interface Authenticated {
  readonly message: Message;
  readonly sender: Sender;
  readonly witness: PopWitness;
}

export class CmcServer {
  readonly #options: CmcServerOptions;
  readonly #once: AnswerOnce;

  constructor(options: CmcServerOptions) {
    this.#options = options;
    this.#once = new AnswerOnce(options);
  }

  /**
   * Answers any message, also an invalid one.
   * @throws EstuaryError 500 or 503 if the response cannot be signed or the audit log cannot be written
   */
  async answer(received: Received): Promise<CmcAnswerMessage> {
    let controls: readonly CmcControl[] = [];
    try {
      const message = readContent(readEnvelope(received.body));
      controls = message.controls;
      const sender = await this.#authenticate(message, received);
      const witness = popWitness(message, sender);
      return await this.#answerOnce({ message, sender, witness }, received);
    } catch (error) {
      return this.#respond(controls, [{ kind: 'refused', refusal: asRefusal(error, 0) }], received);
    }
  }

  async #authenticate(message: Message, received: Received, voucher?: Voucher): Promise<Sender> {
    const { store, authenticator } = this.#options;
    const event: AuditEvent = {
      type: 'auth.cmc',
      outcome: 'success',
      address: received.address,
      ca: received.ca.label,
      request_id: received.requestId,
    };
    try {
      const sender = await authenticator.authenticate(message, received, voucher);
      noteOnRequest({ requester: sender.identity.display, method: sender.identity.method });
      const serial = sender.certificate?.serialNumber;
      const success = {
        ...event,
        ...auditedRequester(sender.identity),
        ...(serial && { serial }),
        detail: sender.role,
      };
      await store.audit([success]);
      return sender;
    } catch (error) {
      const refusal = asRefusal(error, 0);
      const serial = signerSerial(message.envelope);
      const detail = [refusal.message, refusal.detail].filter(Boolean).join(' ');
      if (!refusal.isOurs && !refusal.audited)
        await store.audit([{ ...event, outcome: 'failure', ...(serial && { serial }), detail }]);
      throw error;
    }
  }

  async #answerOnce(authenticated: Authenticated, received: Received): Promise<CmcAnswerMessage> {
    const { message, sender } = authenticated;
    const transaction = transactionOf(message, sender, received.ca.label);
    try {
      checkMessage(message, sender, processedControls(message));
      await checkRecipientNonce(message, transaction, this.#options.store);
    } catch (error) {
      await this.#auditRefusals(refusedWhole(error), authenticated, received);
      throw error;
    }
    return this.#once.answer(transaction, received, (messageId, retaken) =>
      this.#process(authenticated, received, messageId, retaken),
    );
  }

  async #process(
    authenticated: Authenticated,
    received: Received,
    messageId: string,
    retaken: boolean,
  ): Promise<NewAnswer> {
    const outcomes = await this.#outcomes(authenticated, received, {
      requestId: messageId,
      operation: OPERATION,
      ca: received.ca,
      identity: authenticated.sender.identity,
      address: received.address,
      events: [],
      channelBinding: received.channelBinding,
      retaken,
    });
    await this.#auditRefusals(outcomes, authenticated, received);
    const response = await this.#respond(authenticated.message.controls, outcomes, received);
    return { ...response, final: isFinal(authenticated.message, outcomes) };
  }

  /** Requests first, so that a key update gets its new certificate before the old one is revoked. */
  async #outcomes(authenticated: Authenticated, received: Received, base: MessageBase): Promise<PartOutcome[]> {
    const { message, sender, witness } = authenticated;
    const { requests, pending, actions, store, crls } = this.#options;
    const { controls } = message;
    const { ca } = received;
    const outcomes = await requests.process(message, sender, witness, base);
    const each = async <N extends ControlName>(
      name: N,
      work: (control: ReturnType<typeof controlsNamed<N>>[number]) => Promise<PartOutcome>,
    ): Promise<void> => {
      for (const named of controlsNamed(controls, name))
        outcomes.push(await outcomeOf(named.bodyPartID, () => work(named)));
    };
    const identification = control(message, 'identification')?.value;
    await each('queryPending', ({ bodyPartID, value }) => pending.query(bodyPartID, value, sender, base));
    await each('revokeRequest', ({ bodyPartID, value }) =>
      actions.revoke(bodyPartID, value, identification, sender, base),
    );
    await each('confirmCertAcceptance', ({ bodyPartID, value }) => actions.confirm(bodyPartID, value, sender, base));
    await each('getCert', ({ bodyPartID, value }) => getCert(bodyPartID, value, ca, store));
    await each('getCRL', ({ bodyPartID, value }) => getCrl(bodyPartID, value, ca, crls));
    await each('batchRequests', ({ bodyPartID, value }) =>
      this.#batch(bodyPartID, value, authenticated, received, base),
    );
    return outcomes;
  }

  /** RFC 5272 §6.17: each message gets its own response, which contains its errors. */
  async #batch(
    bodyPartID: BodyPartID,
    ids: readonly BodyPartID[],
    authenticated: Authenticated,
    received: Received,
    base: MessageBase,
  ): Promise<PartOutcome> {
    const { cmsSequence } = authenticated.message.data;
    const parts = [...new Set(ids)].map((id) => cmsSequence.find((part) => part.bodyPartID === id));
    const budget = { left: MAX_REQUESTS - authenticated.message.requests.length };
    const responses = [];
    if (parts.includes(undefined))
      throw badMessage(bodyPartID, 'The batch refers to messages that it does not contain.');
    for (const part of parts) {
      if (part === undefined) continue;
      responses.push(await this.#inner(part, authenticated, received, base, budget));
    }
    return done(bodyPartID, { responses, unsettled: responses.some(({ unsettled }) => unsettled) });
  }

  /** The response to a message inside an RA's. */
  async #inner(
    { contentInfo, bodyPartID: id }: TaggedContentInfo,
    outer: Authenticated,
    received: Received,
    base: MessageBase,
    budget: { left: number },
  ): Promise<TaggedContentInfo & { readonly unsettled: boolean }> {
    const within: Received = { ...received, tls: undefined, presented: [], channelBinding: undefined };
    let controls: readonly CmcControl[] = [];
    const work = async (): Promise<PartOutcome[]> => {
      const message = readContent(readEnvelope(contentInfo));
      controls = message.controls;
      const sender = await this.#authenticate(message, within, voucherFor(outer.message, outer.sender, id));
      const inner = { message, sender, witness: popWitness(outer.message, outer.sender, id) };
      const outcomes = await this.#innerOutcomes(inner, within, outer, { ...base, id }, budget).catch(refusedWhole);
      await this.#auditRefusals(outcomes, inner, within);
      return outcomes;
    };
    const outcomes = await work().catch(refusedWhole);
    const { der } = await this.#respond(controls, outcomes, received);
    return { bodyPartID: id, contentInfo: der, unsettled: !isSettled(controls, outcomes) };
  }

  async #innerOutcomes(
    inner: Authenticated,
    within: Received,
    outer: Authenticated,
    { id, ...base }: MessageBase & { readonly id: BodyPartID },
    budget: { left: number },
  ): Promise<PartOutcome[]> {
    const { message, sender } = inner;
    const batch = control(message, 'batchRequests');
    if (batch !== undefined) throw badMessage(batch.bodyPartID, 'A batch must not contain a batch.');
    checkMessage(message, sender, processedControls(outer.message, id));
    budget.left -= message.requests.length;
    if (budget.left < 0) throw badMessage(0, `The batch has more than ${MAX_REQUESTS} certification requests.`);
    return this.#outcomes(inner, within, {
      ...base,
      requestId: requestIdOf(base.requestId, id),
      identity: sender.identity,
      channelBinding: undefined,
    });
  }

  /** Audits rejections of an authenticated sender before the response. */
  async #auditRefusals(
    outcomes: readonly PartOutcome[],
    { message, sender }: Authenticated,
    received: Received,
  ): Promise<void> {
    const events = denials(outcomes, message.requests, sender, received);
    if (events.length === 0) return;
    const requester = { ca: received.ca, identity: sender.identity, secret: sender.secret?.identification };
    await this.#options.enrollment.recordDenial(requester, events);
  }

  #respond(
    controls: readonly CmcControl[],
    outcomes: readonly PartOutcome[],
    { ca, responder, now, requestId }: Received,
  ): Promise<PkiResponseMessage> {
    for (const outcome of outcomes) {
      if (outcome.kind !== 'refused') continue;
      const { httpStatus, isOurs, failInfo, message, detail } = outcome.refusal;
      const level = isOurs ? 'error' : 'info';
      noteOnRequest({ code: failInfo ?? 'noSupport' });
      this.#options.log[level](
        { request_id: requestId, status: httpStatus, code: failInfo ?? 'noSupport', detail: detail ?? message },
        'CMC request rejected',
      );
    }
    return buildResponse({ ca, responder, controls, outcomes, now, retryAfter: this.#options.retryAfter });
  }
}

/** Rejects a message as a whole. */
const refusedWhole = (error: unknown): PartOutcome[] => [{ kind: 'refused', refusal: asRefusal(error, 0) }];

/** Whether the response is definitive: something was done, and the rest is settled. */
function isFinal({ controls }: Message, outcomes: readonly PartOutcome[]): boolean {
  return outcomes.some(({ kind }) => kind !== 'refused') && isSettled(controls, outcomes);
}

/** No temporary failure, and no open query. */
function isSettled(controls: readonly CmcControl[], outcomes: readonly PartOutcome[]): boolean {
  const queries = new Set(controlsNamed(controls, 'queryPending').map(({ bodyPartID }) => bodyPartID));
  return outcomes.every((outcome) => {
    if (outcome.kind === 'refused') return !outcome.refusal.isOurs;
    if (outcome.kind === 'done') return outcome.unsettled !== true;
    return typeof outcome.bodyPart !== 'number' || !queries.has(outcome.bodyPart);
  });
}
