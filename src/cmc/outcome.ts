/** The outcomes of a message's parts. */
import type { AuditEvent } from '../audit/event.ts';
import { deniedEvent } from '../enrollment/request.ts';
import type { BodyPartID, BodyPartReference } from '../pki/cmc/body-part.ts';
import type { TaggedContentInfo } from '../pki/cmc/pki-data.ts';
import { asRefusal, type CmcRefusal } from './refusal.ts';
import type { Origin, Sender } from './sender.ts';

export type PartOutcome =
  | {
      readonly kind: 'done';
      readonly bodyPart: BodyPartReference;
      /** DER of certificates for the response's SignedData. */
      readonly certificates?: readonly Buffer[];
      readonly crls?: readonly Buffer[];
      /** Responses to the messages of a batch, in order. */
      readonly responses?: readonly TaggedContentInfo[];
      /** A repeated message may have another outcome. */
      readonly unsettled?: boolean;
    }
  | { readonly kind: 'pending'; readonly bodyPart: BodyPartReference; readonly requestId: string }
  | { readonly kind: 'refused'; readonly refusal: CmcRefusal };

export const done = (
  bodyPart: BodyPartReference,
  more: Omit<Extract<PartOutcome, { kind: 'done' }>, 'kind' | 'bodyPart'> = {},
): PartOutcome => ({ kind: 'done', bodyPart, ...more });

/** Runs the work on one part; an error becomes that part's rejection. */
export async function outcomeOf(bodyPart: BodyPartID, work: () => Promise<PartOutcome>): Promise<PartOutcome> {
  try {
    return await work();
  } catch (error) {
    return { kind: 'refused', refusal: asRefusal(error, bodyPart) };
  }
}

/** Audit events of rejections to a known sender; internal failures are audited where they occur. */
export function denials(
  outcomes: readonly PartOutcome[],
  { identity }: Pick<Sender, 'identity'>,
  { address, ca, requestId }: Pick<Origin, 'address' | 'ca'> & { readonly requestId: string },
): AuditEvent[] {
  const origin = { identity, address, ca, requestId };
  return outcomes.flatMap((outcome) => {
    if (outcome.kind !== 'refused' || outcome.refusal.isOurs) return [];
    const { bodyList, failInfo = 'noSupport', message } = outcome.refusal;
    return [deniedEvent(origin, 'fullcmc', `body part ${bodyList.join(', ')}: ${failInfo}`, message)];
  });
}
