import { describe, expect, test } from 'vitest';
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import { buildControl } from '../../../src/pki/cmc/controls.ts';
import { buildPkiData, encodeReqSequence, MAX_BODY_PARTS, parsePkiData } from '../../../src/pki/cmc/pki-data.ts';
import { explicit, integer, octetString, oid, parseDer, sequence, setOf, tlv } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { sampleRequests } from './samples.ts';

const EMPTY = sequence();
const contentInfo = sequence(oid(OID.data), explicit(0, octetString(Buffer.from('data'))));
const nonce = (id: number | bigint): Buffer =>
  sequence(integer(id), oid(OID.senderNonce), setOf(octetString(Buffer.from('nonce'))));

/** The error of reading this. */
function refusal(content: Buffer): CmcError {
  try {
    parsePkiData(content);
  } catch (error) {
    if (error instanceof CmcError) return error;
    throw error;
  }
  throw new Error('was read');
}

/** A header with a long-form length of four octets, which is BER only. */
function longForm(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const header = Buffer.alloc(6);
  header.writeUInt8(tag, 0);
  header.writeUInt8(0x84, 1);
  header.writeUInt32BE(value.length, 2);
  return Buffer.concat([header, value]);
}

describe('RFC 5272 §3.2.1: PKIData', () => {
  const reqSequence = sampleRequests();
  const content = {
    controlSequence: [buildControl(10, 'senderNonce', Buffer.from('nonce'))],
    reqSequence,
    cmsSequence: [{ bodyPartID: 11, contentInfo }],
    otherMsgSequence: [{ bodyPartID: 12, type: '1.2.3', value: integer(5) }],
  };

  test('what is built is read again', () => {
    const { reqSequenceBytes, ...read } = parsePkiData(buildPkiData(content));
    expect(read).toEqual(content);
    expect(reqSequenceBytes).toEqual(encodeReqSequence(reqSequence));
  });

  test('is read in BER with indefinite lengths, and the reqSequence is kept as it was received', () => {
    const list = longForm(0x30, parseDer(encodeReqSequence(reqSequence)).value);
    const indefinite = Buffer.concat([Buffer.from([0x30, 0x80]), EMPTY, list, EMPTY, EMPTY, Buffer.alloc(2)]);
    const read = parsePkiData(indefinite);
    expect(read.reqSequence).toEqual(reqSequence);
    expect(read.reqSequenceBytes).toEqual(list);
  });

  test('§3.2.2: the identifiers 1 and 4294967295 are accepted', () => {
    const read = parsePkiData(sequence(sequence(nonce(1), nonce(4_294_967_295)), EMPTY, EMPTY, EMPTY));
    expect(read.controlSequence.map(({ bodyPartID }) => bodyPartID)).toEqual([1, 4_294_967_295]);
  });

  test(`${MAX_BODY_PARTS} parts are read, one more is refused`, () => {
    const controls = Array.from({ length: MAX_BODY_PARTS }, (_, i) => nonce(i + 1));
    expect(parsePkiData(sequence(sequence(...controls), EMPTY, EMPTY, EMPTY)).controlSequence).toHaveLength(
      MAX_BODY_PARTS,
    );
    const other = sequence(integer(1000), oid('1.2.3'), integer(0));
    expect(refusal(sequence(sequence(...controls), EMPTY, EMPTY, sequence(other))).rule).toBe('too-many-parts');
  });

  test.each([
    ['0, which stands for the message', sequence(nonce(0)), 'body-part-id-zero', [0]],
    ['-1', sequence(nonce(-1)), 'body-part-id-range', [0]],
    ['4294967296', sequence(nonce(4_294_967_296n)), 'body-part-id-range', [0]],
    ['2 to the power of 64', sequence(nonce(2n ** 64n)), 'body-part-id-range', [0]],
    ['7 twice', sequence(nonce(7), nonce(8), nonce(7)), 'body-part-id-duplicate', [7]],
  ])('§3.2.2: the identifier %s is refused', (_, controls, rule, bodyPartIDs) => {
    expect(refusal(sequence(controls, EMPTY, EMPTY, EMPTY))).toMatchObject({
      rule,
      bodyPartIDs,
      failInfo: 'badRequest',
    });
  });

  test("§3.2.2: a request's identifier must differ from a control's, a CRMF request's certReqId too", () => {
    const [tcr, crm] = reqSequence;
    for (const request of [tcr, crm]) {
      const controlSequence = [buildControl(request.bodyPartID, 'senderNonce', Buffer.from('nonce'))];
      const error = refusal(buildPkiData({ controlSequence, reqSequence: [request] }));
      expect(error).toMatchObject({ rule: 'body-part-id-duplicate', bodyPartIDs: [request.bodyPartID] });
    }
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a SET', tlv(0x31, EMPTY, EMPTY, EMPTY, EMPTY)],
    ['three sequences', sequence(EMPTY, EMPTY, EMPTY)],
    ['five sequences', sequence(EMPTY, EMPTY, EMPTY, EMPTY, EMPTY)],
    ['octets after it', Buffer.concat([sequence(EMPTY, EMPTY, EMPTY, EMPTY), Buffer.of(0)])],
    ['a control that is no SEQUENCE', sequence(sequence(integer(1)), EMPTY, EMPTY, EMPTY)],
    ['a control without values', sequence(sequence(sequence(integer(1), oid('1.2.3'))), EMPTY, EMPTY, EMPTY)],
    [
      'a control with a fourth field',
      sequence(sequence(sequence(integer(1), oid('1.2.3'), setOf(), integer(1))), EMPTY, EMPTY, EMPTY),
    ],
    ['a bodyPartID of another type', sequence(sequence(sequence(octetString(Buffer.of(1)))), EMPTY, EMPTY, EMPTY)],
    ['a request with the tag [3]', sequence(EMPTY, sequence(tlv(0xa3, integer(1))), EMPTY, EMPTY)],
    ['a tcr without a request', sequence(EMPTY, sequence(tlv(0xa0, integer(1))), EMPTY, EMPTY)],
    ['a crm without a certReqId', sequence(EMPTY, sequence(tlv(0xa1, sequence())), EMPTY, EMPTY)],
    ['an orm without a type', sequence(EMPTY, sequence(tlv(0xa2, integer(1))), EMPTY, EMPTY)],
    ['a malformed content info', sequence(EMPTY, EMPTY, sequence(sequence(integer(1), integer(2))), EMPTY)],
    ['another message without a value', sequence(EMPTY, EMPTY, EMPTY, sequence(sequence(integer(1), oid('1.2.3'))))],
    ['60 levels of nesting', Array.from({ length: 60 }).reduce<Buffer>((inner) => sequence(inner), EMPTY)],
  ])('%s is refused as malformed', (_, bytes) => {
    expect(refusal(bytes)).toMatchObject({ rule: 'malformed', bodyPartIDs: [0], failInfo: 'badRequest' });
  });
});
