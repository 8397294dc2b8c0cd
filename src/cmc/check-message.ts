/** What keeps a message as a whole from being processed, whatever else is in it. */
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import type { ControlName } from '../pki/cmc/controls.ts';
import type { Message } from './message.ts';
import { checkRaControls } from './ra.ts';
import { badMessage, CmcRefusal } from './refusal.ts';
import type { Sender } from './sender.ts';

/** Certification requests in one message, those of a batch included. */
export const MAX_REQUESTS = 100;

/** Controls that are acted on, or that say something about the message. */
const PROCESSED: readonly ControlName[] = [
  'transactionId',
  'senderNonce',
  'recipientNonce',
  'dataReturn',
  'regInfo',
  'identification',
  'identityProof',
  'identityProofV2',
  'popLinkRandom',
  'statusInfo',
  'statusInfoV2',
  'queryPending',
  'revokeRequest',
  'confirmCertAcceptance',
  'getCert',
  'getCRL',
  'batchRequests',
  'lraPOPWitness',
  'raIdentityWitness',
  'controlProcessed',
];

/**
 * RFC 5272 §3.2.1: unknown controls and unknown kinds of requests, and with them nothing of the message is processed.
 *
 * @param processed controls that an RA has processed already
 * @throws CmcRefusal 400 badRequest or noSupport; 403 badIdentity for an RA's controls from somebody else
 */
export function checkMessage(message: Message, sender: Sender, processed: ReadonlySet<BodyPartID>): void {
  const { controls, data, requests } = message;
  checkRaControls(message, sender);
  const unknown = controls.filter(
    ({ name, bodyPartID }) => !PROCESSED.some((one) => one === name) && !processed.has(bodyPartID),
  );
  if (unknown.length > 0)
    throw new CmcRefusal(
      'bad-request',
      'badRequest',
      unknown.map(({ bodyPartID }) => bodyPartID),
      'The message has controls that are not supported.',
    );
  const others = data.reqSequence.filter(({ kind }) => kind === 'orm');
  if (others.length > 0)
    throw new CmcRefusal(
      'bad-request',
      undefined,
      others.map(({ bodyPartID }) => bodyPartID),
      'The message has certification requests of a kind that is not supported.',
    );
  if (requests.length > MAX_REQUESTS)
    throw badMessage(0, `The message has more than ${MAX_REQUESTS} certification requests.`);
}
