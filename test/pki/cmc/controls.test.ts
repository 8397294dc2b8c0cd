import { describe, expect, test } from 'vitest';
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import {
  buildControl,
  controlsNamed,
  isControlName,
  parseControl,
  type ControlName,
} from '../../../src/pki/cmc/controls.ts';
import { integer, octetString, printableString, sequence, tlv, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { CONTROL_VALUES } from './samples.ts';

const names = Object.keys(CONTROL_VALUES).filter(isControlName);

const build = (name: ControlName): ReturnType<typeof buildControl> => buildControl(1, name, CONTROL_VALUES[name]);

describe('RFC 5272 §6, RFC 6402 §2.2: controls', () => {
  test.each(names)('%s is read as it was built', (name) => {
    expect(parseControl(build(name))).toEqual({ name, bodyPartID: 1, value: CONTROL_VALUES[name] });
  });

  test.each(names)('%s of another type is refused, naming its body part', (name) => {
    const error = catchError(() => parseControl({ bodyPartID: 9, type: OID[name], values: [printableString('no')] }));
    expect(error).toMatchObject({ rule: 'control-malformed', bodyPartIDs: [9], failInfo: 'badRequest' });
    expect(error.message).toContain(name);
  });

  test.each(names)('%s without a value or with two is refused', (name) => {
    const { values } = build(name);
    for (const wrong of [[], [...values, ...values]])
      expect(catchError(() => parseControl({ bodyPartID: 3, type: OID[name], values: wrong }))).toMatchObject({
        rule: 'control-malformed',
        bodyPartIDs: [3],
      });
  });

  test('a control that is not supported is handed on as unknown, whatever its values', () => {
    const attribute = { bodyPartID: 4, type: '1.2.3.4', values: [integer(1), integer(2)] };
    expect(parseControl(attribute)).toEqual({ name: 'unknown', ...attribute });
  });

  test("Dogtag's confirmCertAcceptance, with the issuer in one more SEQUENCE, is read", () => {
    const { issuer, serialNumber } = CONTROL_VALUES.confirmCertAcceptance;
    const values = [sequence(sequence(issuer.der), integer(10))];
    const control = parseControl({ bodyPartID: 1, type: OID.confirmCertAcceptance, values });
    expect(control).toMatchObject({
      name: 'confirmCertAcceptance',
      value: { issuer: { der: issuer.der }, serialNumber },
    });
  });

  test('controls are found by name, in order', () => {
    const controls = [
      buildControl(1, 'regInfo', Buffer.from('a')),
      buildControl(2, 'senderNonce', Buffer.from('b')),
      buildControl(3, 'regInfo', Buffer.from('c')),
    ].map(parseControl);
    expect(controlsNamed(controls, 'regInfo').map(({ bodyPartID }) => bodyPartID)).toEqual([1, 3]);
  });

  test.each<[ControlName, string, Buffer]>([
    ['transactionId', 'an empty INTEGER', Buffer.of(2, 0)],
    ['transactionId', 'an INTEGER that is not minimal', Buffer.of(2, 2, 0, 1)],
    ['identification', 'octets that are not UTF-8', tlv(0x0c, Buffer.of(0xff))],
    ['statusInfoV2', 'a status that is reserved', sequence(integer(1), sequence(integer(1)))],
    ['statusInfoV2', 'no body part', sequence(integer(0), sequence())],
    ['statusInfoV2', 'an empty path', sequence(integer(0), sequence(sequence()))],
    [
      'statusInfoV2',
      'two pieces of other information',
      sequence(integer(2), sequence(integer(1)), integer(2), integer(2)),
    ],
    [
      'statusInfoV2',
      'pendInfo without a time',
      sequence(integer(3), sequence(integer(1)), sequence(octetString(Buffer.of(1)))),
    ],
    ['raIdentityWitness', 'an identifier out of range', sequence(integer(4_294_967_296n))],
    ['batchRequests', 'an empty list', sequence()],
    ['revokeRequest', 'no reason', sequence(sequence(), integer(1))],
    ['revokeRequest', 'a reason that does not exist', sequence(sequence(), integer(1), tlv(0x0a, Buffer.of(7)))],
    [
      'revokeRequest',
      'fields out of order',
      sequence(sequence(), integer(1), tlv(0x0a, Buffer.of(1)), utf8String('x'), octetString(Buffer.of(1))),
    ],
    ['identityProofV2', 'no MAC algorithm', sequence(sequence(), octetString(Buffer.of(1)))],
    ['confirmCertAcceptance', 'a key identifier', tlv(0x80, Buffer.of(1))],
  ])('%s with %s is refused', (name, _, value) => {
    expect(catchError(() => parseControl({ bodyPartID: 2, type: OID[name], values: [value] }))).toMatchObject({
      rule: 'control-malformed',
      bodyPartIDs: [2],
    });
  });
});

function catchError(run: () => unknown): CmcError {
  try {
    run();
  } catch (error) {
    if (error instanceof CmcError) return error;
    throw error;
  }
  throw new Error('was read');
}
