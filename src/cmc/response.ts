/** Builds PKIResponse in SignedData (RFC 5272 §4.2): the status of each part, certificates and CRLs. */
import { randomBytes } from 'node:crypto';
import type { Ca } from '../ca/router.ts';
import { buildSignedData } from '../pki/cms/cms.ts';
import { OID } from '../pki/der/oids.ts';
import type { BodyPartReference } from '../pki/cmc/body-part.ts';
import {
  buildControl,
  controlsNamed,
  type CmcControl,
  type ControlName,
  type ControlValue,
} from '../pki/cmc/controls.ts';
import { type TaggedAttribute, buildPkiResponse } from '../pki/cmc/pki-data.ts';
import type { CmcStatusInfo } from '../pki/cmc/status-info.ts';
import { pendToken } from './pending.ts';
import type { PartOutcome, RefusalStatus } from './refusal.ts';
import type { Responder } from './sender.ts';

interface ResponseInput {
  readonly ca: Ca;
  readonly responder: Responder;
  /** The parsed controls of the request. */
  readonly controls: readonly CmcControl[];
  readonly outcomes: readonly PartOutcome[];
  readonly now: number;
  /** Seconds until a pending request may be queried. */
  readonly retryAfter: number;
}

export interface PkiResponseMessage {
  readonly httpStatus: 200 | RefusalStatus;
  /** Seconds, if the client may retry. */
  readonly retryAfter: number | undefined;
  /** DER ContentInfo. */
  readonly der: Buffer;
  /** The senderNonce; null if the request had none. */
  readonly nonce: Buffer | null;
}

const NONCE_LENGTH = 16;

/** @throws EstuaryError from the responder's signer */
export async function buildResponse(input: ResponseInput): Promise<PkiResponseMessage> {
  const { ca, responder, controls, outcomes, now } = input;
  const sent = controlsNamed(controls, 'senderNonce')[0]?.value;
  const nonce = sent === undefined ? null : randomBytes(NONCE_LENGTH);
  const list = new ControlList();
  for (const status of statuses(input)) list.add('statusInfoV2', status);
  for (const { value } of controlsNamed(controls, 'transactionId')) list.add('transactionId', value);
  if (nonce !== null) list.add('senderNonce', nonce);
  if (sent !== undefined) list.add('recipientNonce', sent);
  for (const { value } of controlsNamed(controls, 'dataReturn')) list.add('dataReturn', value);
  const finished = outcomes.flatMap((outcome) => (outcome.kind === 'done' ? [outcome] : []));
  const responses = finished.flatMap((outcome) => outcome.responses ?? []);
  // Their identifiers must differ from the controls', so they follow them.
  const cmsSequence = responses.map(({ contentInfo }, i) => ({
    bodyPartID: list.controls.length + 2 + i,
    contentInfo,
  }));
  if (cmsSequence.length > 0)
    list.add(
      'batchResponses',
      cmsSequence.map(({ bodyPartID }) => bodyPartID),
    );
  const issued = finished.flatMap(({ certificates = [] }) => certificates);
  const der = await buildSignedData({
    contentType: OID.pkiResponse,
    content: buildPkiResponse({ controlSequence: list.controls, cmsSequence }),
    certificates: unique([...issued, ...responder.certificates, ...ca.driver.chain()]),
    crls: unique(finished.flatMap(({ crls = [] }) => crls)),
    signers: [responder.signer],
    signingTime: new Date(now),
  });
  return { ...httpStatus(outcomes), der, nonce };
}

class ControlList {
  readonly controls: TaggedAttribute[] = [];

  add<N extends ControlName>(name: N, value: ControlValue<N>): void {
    this.controls.push(buildControl(this.controls.length + 1, name, value));
  }
}

/** Successes share a status; a message without work succeeds as a whole. */
function statuses({ outcomes, now, retryAfter }: ResponseInput): CmcStatusInfo[] {
  const successes = outcomes.flatMap((outcome) => (outcome.kind === 'done' ? [outcome.bodyPart] : []));
  const pending = outcomes.flatMap((outcome) => (outcome.kind === 'pending' ? [outcome] : []));
  // Whole seconds, as in DER's GeneralizedTime.
  const pendTime = new Date(Math.floor(now / 1000 + retryAfter) * 1000);
  const pendingStatus = (
    status: 'pending' | 'partial',
    bodyPart: BodyPartReference,
    requestId: string,
  ): CmcStatusInfo => ({
    status,
    bodyList: [bodyPart],
    otherInfo: { pendInfo: { pendToken: pendToken(requestId), pendTime } },
  });
  const [firstPending] = pending;
  return [
    ...(successes.length > 0 || outcomes.length === 0
      ? [{ status: 'success' as const, bodyList: successes.length > 0 ? successes : [0] }]
      : []),
    ...pending.map(({ bodyPart, requestId }) => pendingStatus('pending', bodyPart, requestId)),
    ...(firstPending !== undefined && successes.length > 0
      ? [pendingStatus('partial', 0, firstPending.requestId)]
      : []),
    ...outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.refusal.statusInfo] : [])),
  ];
}

/** 200 if any part succeeded or is pending; otherwise the first rejection, internal errors first. */
function httpStatus(outcomes: readonly PartOutcome[]): Pick<PkiResponseMessage, 'httpStatus' | 'retryAfter'> {
  const refusals = outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.refusal] : []));
  if (refusals.length < outcomes.length || outcomes.length === 0) return { httpStatus: 200, retryAfter: undefined };
  const chosen = refusals.find(({ isOurs }) => isOurs) ?? refusals[0];
  return { httpStatus: chosen?.httpStatus ?? 400, retryAfter: chosen?.retryAfter };
}

function unique(ders: readonly Buffer[]): Buffer[] {
  return [...new Map(ders.map((der) => [der.toString('base64'), der])).values()];
}
