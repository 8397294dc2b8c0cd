import { notFound } from '../../errors.ts';
import { renewalWindow } from '../../ca/renewal-window.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import type { RenewalStore } from '../../store/renewal-store.ts';
import { type EstOperation, PUBLIC } from './operation.ts';

export interface RenewalInfoDependencies {
  readonly store: Pick<RenewalStore, 'findIssued' | 'listRenewals'>;
  readonly now: () => number;
  /** Receives the certificates whose renewal information was requested. */
  readonly sawRenewalInfo: (ca: string, serial: string) => void;
}

/** `GET renewal-info/{id}` (draft-ietf-lamps-est-renewal-info). Needs no authentication. */
export function renewalInfo({ store, now, sawRenewalInfo }: RenewalInfoDependencies): EstOperation {
  return {
    ...PUBLIC,
    name: 'renewal-info',
    handle: async ({ ca, id = '' }) => {
      const wanted = parseId(id);
      const row = wanted && (await store.findIssued(ca.issuer.label, wanted.serial));
      if (row === undefined || !ca.hasIssued(row) || row.revoked_at !== null || row.not_after <= now()) throw unknown();
      // A restored store may not have the certificate itself.
      const keyIdentifier =
        row.der.length === 0 ? ca.certificate.subjectKeyIdentifier : parseCertificate(row.der).authorityKeyIdentifier;
      if (keyIdentifier?.equals(wanted?.keyIdentifier ?? Buffer.alloc(0)) !== true) throw unknown();
      sawRenewalInfo(row.ca, row.serial);
      const { start, end } = renewalWindow(row, ca.config.renewal, await store.listRenewals());
      const time = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');
      return {
        status: 200,
        headers: { 'Content-Type': 'application/json', 'Retry-After': String(ca.config.renewal.retry_after) },
        body: JSON.stringify({ suggestedWindow: { start: time(start), end: time(end) } }),
      };
    },
  };
}

const unknown = () =>
  notFound(
    'RENEWAL_UNKNOWN',
    'There is no renewal information for this certificate: it is unknown here, expired or revoked.',
  );

/** RFC 9773 §4.1: base64url of the key identifier, a period, base64url of the serial number's DER content, both without padding. */
function parseId(id: string): { readonly keyIdentifier: Buffer; readonly serial: string } | undefined {
  const [, key, number] = /^([A-Za-z0-9_-]{1,128})\.([A-Za-z0-9_-]{1,28})$/.exec(id) ?? [];
  if (key === undefined || number === undefined) return undefined;
  const bytes = Buffer.from(number, 'base64url');
  const [first = 0, second = 0] = bytes;
  const isPadded = bytes.length > 1 && first === 0;
  // DER: positive, and a zero byte only where the next byte has its highest bit set.
  if (first > 127 || (isPadded && second < 128) || bytes.toString('base64url') !== number) return undefined;
  return { keyIdentifier: Buffer.from(key, 'base64url'), serial: bytes.subarray(isPadded ? 1 : 0).toString('hex') };
}
