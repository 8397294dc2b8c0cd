/** The filters of `GET /admin/certificates`, also for other calls that select certificates. */
import { Type, type Static } from '@fastify/type-provider-typebox';
import { badRequest } from '../../errors.ts';
import type { CertificateSelection } from '../../store/certificate-store.ts';
import { oneOf, part, strictObject, Text, Timestamp, whole } from './schemas.ts';
import { parseOptionalTimestamp } from './values.ts';

export const CertificateStatus = oneOf(['valid', 'revoked', 'expired']);

export const caQuery = whole("A CA's label.");

export const certificateFilter = {
  ca: caQuery,
  label: whole('A further label of a CA: certificates requested there.'),
  subject: part('the subject'),
  san: part('one of the subjectAltNames, as in records (`DNS:a`)'),
  serial: Type.Optional(Text('The complete serial number, hex.')),
  requester: whole('The requester, as in records.'),
  device: whole('The ID of a device.'),
  status: Type.Optional(CertificateStatus),
  issued_after: Type.Optional(Timestamp('Certificates issued after this time.')),
  expires_before: Type.Optional(Timestamp('Certificates that expire before this time.')),
};

/** The filters as a body. */
export const CertificateFilter = strictObject(certificateFilter);

/** @throws EstuaryError 400 `FIELD_INVALID` that names the filter */
export function readCertificateFilter(query: Static<typeof CertificateFilter>): CertificateSelection {
  const { serial, issued_after, expires_before, ...others } = query;
  return {
    ...others,
    serial: serial === undefined ? undefined : readSerial(serial),
    issued_after: parseOptionalTimestamp('issued_after', issued_after),
    expires_before: parseOptionalTimestamp('expires_before', expires_before),
  };
}

/** Converts a serial number to lowercase hex; accepts the form of openssl (upper case, colons). */
export function normalizeSerial(text: string): string | undefined {
  return /^[0-9a-f]{2}(?::?[0-9a-f]{2}){0,19}$/i.test(text) ? text.replaceAll(':', '').toLowerCase() : undefined;
}

/** @throws EstuaryError 400 `FIELD_INVALID` */
export function readSerial(text: string): string {
  const serial = normalizeSerial(text);
  if (serial === undefined)
    throw badRequest('FIELD_INVALID', 'serial must be a serial number in hex, two digits a byte, at most 20 bytes');
  return serial;
}
