/** Checks that reject a message as a whole. */
import { type BodyPartID, type BodyPartReference, CURRENT_MESSAGE } from '../pki/cmc/body-part.ts';
import { type ControlName, controlsNamed } from '../pki/cmc/controls.ts';
import type { Voucher } from './authenticate.ts';
import type { Message } from './message.ts';
import { badMessage, CmcRefusal, notAllowed } from './refusal.ts';
import type { PopWitness } from './requests.ts';
import { isRa, type Sender } from './sender.ts';

/** Controls that only a registration authority may send. */
const RA_ONLY: readonly ControlName[] = ['lraPOPWitness', 'raIdentityWitness', 'controlProcessed', 'batchRequests'];

/** RFC 6402 §2.12: only an authorized RA may make these statements. @throws CmcRefusal 403 badIdentity */
function checkRaControls({ controls }: Message, sender: Sender): void {
  if (isRa(sender)) return;
  const found = controls.find(({ name }) => RA_ONLY.some((control) => control === name));
  if (found !== undefined)
    throw notAllowed(found.bodyPartID, `Only a registration authority may send the control ${found.name}.`);
}

/** The controls of a message (or of one inside it, `within`) that the RA has already processed. */
export function processedControls(ra: Message, within?: BodyPartID): ReadonlySet<BodyPartID> {
  return referenced(
    controlsNamed(ra.controls, 'controlProcessed').flatMap(({ value }) => value),
    within,
  );
}

/** @param within the inner message with the requests; undefined: the RA's own */
export function popWitness(ra: Message, { role }: Sender, within?: BodyPartID): PopWitness {
  const witnesses = controlsNamed(ra.controls, 'lraPOPWitness').filter(
    ({ value }) => value.pkiDataBodyid === (within ?? CURRENT_MESSAGE),
  );
  return { bodyIds: new Set(witnesses.flatMap(({ value }) => value.bodyIds)), trusted: role === 'configured-ra' };
}

/** The RA's statement about the identity of an inner message's sender. */
export function voucherFor(ra: Message, sender: Sender, within: BodyPartID): Voucher {
  const witnesses = controlsNamed(ra.controls, 'raIdentityWitness').map(({ value }) => value);
  const whole = witnesses.some((path) => path.length === 1 && path[0] === within);
  const parts = referenced(witnesses, within);
  return {
    ra: sender,
    // By checking an identity proof, the RA vouches for the sender.
    covers: (control) => whole || (control === undefined ? parts.size > 0 : parts.has(control)),
  };
}

/** The parts that the references name: of the current message, or of the inner one named by `within`. */
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

/** Certification requests in one message, including those of a batch. */
export const MAX_REQUESTS = 100;

/**
 * RFC 5272 §3.2.1: an unknown control or kind of request rejects the whole message.
 * @param processed controls that an RA has already processed
 * @throws CmcRefusal 400 badRequest or noSupport; 403 badIdentity for an RA's controls from another sender
 */
export function checkMessage(message: Message, sender: Sender, processed: ReadonlySet<BodyPartID>): void {
  const { controls, data, requests } = message;
  checkRaControls(message, sender);
  const unknown = controls.filter(
    ({ name, bodyPartID }) => (name === 'unknown' || name === 'batchResponses') && !processed.has(bodyPartID),
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
