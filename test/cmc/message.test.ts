import { describe, expect, test } from 'vitest';
import { readContent, readEnvelope } from '../../src/cmc/message.ts';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { buildPkiData } from '../../src/pki/cmc/pki-data.ts';
import { contentInfo } from '../../src/pki/cms/signed-data.ts';
import { DerError, integer, octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { CONTROL_VALUES } from '../pki/cmc/samples.ts';

describe("RFC 5272 §6.11: an unsigned revocation request in Dogtag's form, PKIData in id-data", () => {
  test('is read as unsigned', () => {
    const content = buildPkiData({ controlSequence: [buildControl(1, 'revokeRequest', CONTROL_VALUES.revokeRequest)] });
    const envelope = readEnvelope(contentInfo(OID.data, octetString(content)));
    expect(envelope.kind).toBe('unsigned');
    expect(readContent(envelope).controls).toMatchObject([{ name: 'revokeRequest', bodyPartID: 1 }]);
  });

  test('that holds no OCTET STRING is refused', () => {
    expect(() => readEnvelope(contentInfo(OID.data, integer(1)))).toThrow(DerError);
  });
});
