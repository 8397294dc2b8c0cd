/** Single CRMF certificate requests (RFC 4211). */
import { CmcError } from '../../../src/pki/cmc/cmc-error.ts';
import { parseCertificateRequest, requestKey, verifyProofOfPossession } from '../../../src/pki/cmc/tagged-request.ts';
import { explicit, integer, oid, sequence, tlv, utf8String } from '../../../src/pki/der/der.ts';
import { encodeExtKeyUsage, encodeSubjectKeyIdentifier } from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { buildCrmf, REG_INFO } from '../../pki/cmc/samples.ts';
import { p256, testKey } from '../fixed-keys.ts';
import { isDerError, unlessRefused, type Target } from '../target.ts';
import { altNames } from './certificates.ts';

const isRefusal = (error: unknown): boolean => error instanceof CmcError || isDerError(error);

async function read(input: Buffer): Promise<void> {
  const request = parseCertificateRequest({ kind: 'crm', bodyPartID: 1, der: input });
  await unlessRefused(() => requestKey(request), isRefusal);
  await verifyProofOfPossession(request);
}

function seeds(): Buffer[] {
  const key = testKey(p256('crmf'));
  const keyIdentifier = {
    oid: OID.subjectKeyIdentifier,
    critical: false,
    value: encodeSubjectKeyIdentifier(Buffer.alloc(20)),
  };
  const purposes = { oid: OID.extKeyUsage, critical: false, value: encodeExtKeyUsage([OID.clientAuth]) };
  const validity = tlv(0xa4, explicit(0, tlv(0x17, Buffer.from('261121000000Z'))));
  const regToken = sequence(oid('1.3.6.1.5.5.7.5.1.1'), utf8String('token'));
  return [
    buildCrmf(key),
    buildCrmf(key, { certReqId: 7, extensions: [keyIdentifier, altNames, purposes], before: [validity] }),
    buildCrmf(key, { before: [tlv(0x80, Buffer.of(2)), tlv(0x81, Buffer.of(1))], controls: [regToken] }),
    buildCrmf(key, { popo: Buffer.of(0x80, 0), regInfo: REG_INFO }),
    buildCrmf(key, { popo: null }),
    buildCrmf(key, { popo: tlv(0xa2, tlv(0x81, Buffer.of(0))), fields: [integer(1)] }),
  ];
}

export const target: Target = { grammar: 'der', seeds, read, isRefusal };
