/** OCSP requests, up to the response that would be signed. */
import { createHash } from 'node:crypto';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { explicit, integer, NULL, octetString, oid, parseDer, sequence, tlv } from '../../../src/pki/der/der.ts';
import { encodeExtensions } from '../../../src/pki/x509/extensions.ts';
import {
  buildResponseData,
  failureResponse,
  isOfIssuer,
  parseOcspRequest,
  successfulResponse,
} from '../../../src/pki/ocsp/ocsp.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { isDerError, type Target } from '../target.ts';
import { hierarchy } from './certificates.ts';

const ca = parseCertificate((await hierarchy()).issuing.der);

function read(input: Buffer): void {
  const { certIds, nonce } = parseOcspRequest(input);
  const at = new Date(0);
  const statuses = certIds.map((certId) => ({
    certId,
    thisUpdate: at,
    status: isOfIssuer(certId, { name: ca.subject.der, spki: ca.spki })
      ? ({ status: 'revoked', revocationTime: at, reason: 'keyCompromise' } as const)
      : ({ status: 'unknown' } as const),
  }));
  const data = buildResponseData({ responder: ca.subject.der, producedAt: at, nextUpdate: at, statuses, nonce });
  parseDer(successfulResponse(data));
  parseDer(failureResponse('malformedRequest'));
}

function certId(hash: string, dotted: string): Buffer {
  const digest = (bytes: Buffer): Buffer => createHash(hash).update(bytes).digest();
  return sequence(
    sequence(oid(dotted), NULL),
    octetString(digest(ca.subject.der)),
    octetString(digest(ca.spki.subarray(-32))),
    integer(Buffer.from('7fab', 'hex')),
  );
}

function seeds(): Buffer[] {
  const one = sequence(certId('sha1', OID.sha1));
  const other = sequence(certId('sha256', OID.sha256), explicit(0, encodeExtensions([nonce(4)])));
  const tbs = (...fields: readonly Buffer[]): Buffer => sequence(sequence(...fields));
  return [
    tbs(sequence(one)),
    tbs(explicit(0, integer(0)), sequence(one, other), explicit(2, encodeExtensions([nonce(16)]))),
    tbs(explicit(1, tlv(0xa4, ca.subject.der)), sequence(other)),
    sequence(sequence(sequence(one)), explicit(0, sequence(NULL))),
  ];
}

const nonce = (length: number) => ({
  oid: OID.ocspNonce,
  critical: false,
  value: octetString(Buffer.alloc(length, 9)),
});

export const target: Target = { grammar: 'der', seeds, read, isRefusal: isDerError };
