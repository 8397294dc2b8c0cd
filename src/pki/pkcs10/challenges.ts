/** Secrets in a request (RFC 7894): a one-time password, and a challenge that later authorizes revocation. */
import { badRequest, type EstuaryError } from '../../errors.ts';
import {
  bitString,
  children,
  contextConstructed,
  DerReader,
  oid,
  printableString,
  sequence,
  setOf,
  Tag,
  tlv,
  utf8String,
  type DerElement,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import type { Csr } from './csr.ts';
import type { CsrContent } from './csr-content.ts';

export const hasSecrets = ({ otpChallenge, revocationChallenge }: CsrContent): boolean =>
  otpChallenge !== undefined || revocationChallenge !== undefined;

/**
 * A PKCS #10 that is safe to store: otpChallenge is emptied and revocationChallenge replaced by its hash. The signature
 * no longer matches, so it is removed; its absence marks the stored form. Requests without secrets are
 * unchanged, as are those in CRMF, which have none.
 * @param hash of the revocationChallenge, if present
 */
export function withoutSecrets(csr: CsrContent, hash: string | undefined): Buffer {
  if (!hasSecrets(csr)) return csr.der;
  const request = DerReader.of(csr.der, 'CertificationRequest');
  const info = new DerReader(request.next(Tag.SEQUENCE, 'certificationRequestInfo').value, 'CertificationRequestInfo');
  const algorithm = request.sequence('signatureAlgorithm');
  const kept = [info.next(Tag.INTEGER, 'version').raw, info.sequence('subject'), info.sequence('subjectPKInfo')];
  const attributes = info.optional(contextConstructed(0), 'attributes');
  const changed =
    attributes === undefined ? [] : children(attributes.value).map((attribute) => emptied(attribute, hash));
  const changedInfo = sequence(...kept, tlv(contextConstructed(0), ...changed));
  return sequence(changedInfo, algorithm, bitString(Buffer.alloc(0)));
}

function emptied(attribute: DerElement, hash = ''): Buffer {
  const type = new DerReader(attribute.value, 'Attribute').oid('type');
  if (type === OID.otpChallenge) return sequence(oid(type), setOf(printableString('')));
  if (type === OID.revocationChallenge) return sequence(oid(type), setOf(utf8String(hash)));
  return attribute.raw;
}

/** Whether {@link withoutSecrets} produced it: its revocationChallenge is a hash. */
export const isWithoutSecrets = ({ signature }: Csr): boolean => signature.length === 0;

/** 400: the CA receives the request as signed, so secrets cannot be removed from it. */
export function secretsCannotGoOn(): EstuaryError {
  return badRequest(
    'CSR_SECRET_NOT_FORWARDED',
    'The server forwards the CSR unchanged to this CA, so it must not contain an otpChallenge or revocationChallenge. Send a one-time password by HTTP Basic.',
  );
}
