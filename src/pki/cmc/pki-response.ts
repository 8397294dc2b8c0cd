/** PKIResponse (RFC 5272 §4.2.1): the content of a full PKI response. */
import { berToDer } from '../der/ber.ts';
import { DerReader, sequence } from '../der/der.ts';
import {
  checkBodyPartIDs,
  counter,
  encodeOtherMsg,
  encodeTaggedAttribute,
  encodeTaggedContentInfo,
  parts,
  readOtherMsg,
  readTaggedAttribute,
  readTaggedContentInfo,
  reading,
  type OtherMsg,
  type TaggedAttribute,
  type TaggedContentInfo,
} from './pki-data.ts';

interface PkiResponse {
  readonly controlSequence: readonly TaggedAttribute[];
  readonly cmsSequence: readonly TaggedContentInfo[];
  readonly otherMsgSequence: readonly OtherMsg[];
}

/**
 * @param content the encapsulated content of a full PKI response, as received (BER is accepted)
 * @throws CmcError as `parsePkiData`
 */
export function parsePkiResponse(content: Buffer): PkiResponse {
  return reading('PKIResponse', () => {
    const reader = DerReader.of(berToDer(content), 'PKIResponse');
    const count = counter();
    const controlSequence = parts(reader, 'controlSequence', count, readTaggedAttribute);
    const cmsSequence = parts(reader, 'cmsSequence', count, readTaggedContentInfo);
    const otherMsgSequence = parts(reader, 'otherMsgSequence', count, readOtherMsg);
    reader.end();
    checkBodyPartIDs([...controlSequence, ...cmsSequence, ...otherMsgSequence]);
    return { controlSequence, cmsSequence, otherMsgSequence };
  });
}

/** DER of PKIResponse. @throws RangeError for a bodyPartID out of range */
export function buildPkiResponse(response: Partial<PkiResponse>): Buffer {
  const { controlSequence = [], cmsSequence = [], otherMsgSequence = [] } = response;
  return sequence(
    sequence(...controlSequence.map(encodeTaggedAttribute)),
    sequence(...cmsSequence.map(encodeTaggedContentInfo)),
    sequence(...otherMsgSequence.map(encodeOtherMsg)),
  );
}
