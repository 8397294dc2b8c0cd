/** What keeps a message as a whole from being processed, whatever else is in it. */
import { type BodyPartID, type BodyPartReference, CURRENT_MESSAGE } from '../pki/cmc/body-part.ts';
import { type ControlName, controlsNamed } from '../pki/cmc/controls.ts';
import type { Voucher } from './authenticate.ts';
import type { Message } from './message.ts';
import { badMessage, CmcRefusal, notAllowed } from './refusal.ts';
import type { PopWitness } from './requests.ts';
import { isRa, type Sender } from './sender.ts';

/** What an RA says of its message and of those inside of it (RFC 5272 §6.8, §6.19; RFC 6402 §2.5). */

/** Controls that only a registration authority may send. */
const RA_ONLY: readonly ControlName[] = ['lraPOPWitness', 'raIdentityWitness', 'controlProcessed', 'batchRequests'];

/** RFC 6402 §2.12: whoever is not authorized as an RA makes none of its statements. @throws CmcRefusal 403 badIdentity */
function checkRaControls({ controls }: Message, sender: Sender): void {
  if (isRa(sender)) return;
  const found = controls.find(({ name }) => RA_ONLY.some((one) => one === name));
  if (found !== undefined)
    throw notAllowed(found.bodyPartID, `Only a registration authority may send the control ${found.name}.`);
}

/** The controls of a message (or of one inside, `within`) that the RA has processed already. */
export function processedControls(ra: Message, within?: BodyPartID): ReadonlySet<BodyPartID> {
  return referenced(
    controlsNamed(ra.controls, 'controlProcessed').flatMap(({ value }) => value),
    within,
  );
}

/** @param within the message inside that contains the requests; undefined: the RA's own */
export function popWitness(ra: Message, { role }: Sender, within?: BodyPartID): PopWitness {
  const witnesses = controlsNamed(ra.controls, 'lraPOPWitness').filter(
    ({ value }) => value.pkiDataBodyid === (within ?? CURRENT_MESSAGE),
  );
  return { bodyIds: new Set(witnesses.flatMap(({ value }) => value.bodyIds)), trusted: role === 'configured-ra' };
}

/** The RA's word on the identity of the sender of a message inside of its own. */
export function voucherFor(ra: Message, sender: Sender, within: BodyPartID): Voucher {
  const witnesses = controlsNamed(ra.controls, 'raIdentityWitness').map(({ value }) => value);
  const whole = witnesses.some((path) => path.length === 1 && path[0] === within);
  const parts = referenced(witnesses, within);
  return {
    ra: sender,
    // Where the RA checked an identity proof, it vouches for who sent it.
    covers: (control) => whole || (control === undefined ? parts.size > 0 : parts.has(control)),
  };
}

/** The parts that the references name: of the current message, or of the one that `within` names. */
function referenced(references: readonly BodyPartReference[], within: BodyPartID | undefined): Set<BodyPartID> {
  const paths = references.map((reference) => (typeof reference === 'number' ? [reference] : reference));
  return new Set(
    paths.flatMap(([first, second, ...more]) => {
      if (more.length > 0 || first === undefined) return [];
      if (within === undefined) return second === undefined ? [first] : [];
      return first === within && second !== undefined ? [second] : [];
    }),
  );
}

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
