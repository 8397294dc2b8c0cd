import { type Static, Type } from '@fastify/type-provider-typebox';
import { badRequest, type EstuaryError, notFound } from '../../errors.ts';
import { encodePem } from '../../pki/der/pem.ts';
import { pathOf } from '../../pki/x509/ca-chain.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import type {
  CertificateRow,
  CertificateSelection,
  CertificateStore,
  ListedCertificate,
} from '../../store/certificate-store.ts';
import type { RescueStore } from '../../store/rescue-store.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { callOf, limited } from './access.ts';
import { CertificateContent, certificateContents } from './certificate-content.ts';
import { listRoute, route } from './route.ts';
import { nullable, oneOf, part, requestBody, strictObject, Text, Texts, Timestamp, titled, whole } from './schemas.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../../timestamp.ts';
import { parseOptionalTimestamp, readHash } from './values.ts';
import { importCertificate } from '../../administration/import-certificate.ts';

const CertificateStatus = oneOf(['valid', 'revoked', 'expired']);

export const caQuery = whole("A CA's label.");

const certificateFilter = {
  ca: caQuery,
  label: whole('A further label of a CA: certificates requested there.'),
  subject: part('the subject'),
  san: part('one of the subjectAltNames, as in records (`DNS:a`)'),
  serial: Type.Optional(Text('The complete serial number, hex.')),
  fingerprint_sha256: Type.Optional(Text('SHA-256 of the certificate, 64 hex digits, with or without colons.')),
  requester: whole('The requester, as in records.'),
  device: whole('The ID of a device.'),
  device_key: whole("The key of a device's entry, which distinguishes devices with one ID."),
  status: Type.Optional(CertificateStatus),
  issued_after: Type.Optional(Timestamp('Certificates issued after this time.')),
  expires_before: Type.Optional(Timestamp('Certificates that expire before this time.')),
};

/** The filters as a body. */
export const CertificateFilter = strictObject(certificateFilter);

export const CertificateRecord = titled('Certificate', 'An issued certificate.', {
  serial: Text('Lower-case hex.'),
  ca: Text("The CA's label."),
  subject: Text('RFC 4514.'),
  sans: Texts('`DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md)'),
  not_before: Timestamp(),
  not_after: Timestamp(),
  status: CertificateStatus,
  revoked_at: nullable(Timestamp()),
  reason: nullable(Text('An RFC 5280 CRLReason name.')),
  requester: Text('The requester.'),
  method: Text('How the requester authenticated.'),
  request_id: Type.String(),
  fingerprint_sha256: Text('Lower-case hex.'),
  device: nullable(Text('The ID of the registered device that it was issued to.')),
  rescue_until: nullable(Timestamp('The end of its pass for one more renewal, until that is used.')),
  label: Type.Optional(Text('The label of the request, if it is not the label of the CA.')),
});

const CertificatePage = titled('CertificateDetails', 'An issued certificate, with its PEM.', {
  ...CertificateRecord.properties,
  archived_key_id: nullable(Text('The identifier of the private key in the key archive, if it was archived.')),
  pem: Text('Empty if a restored store knows the certificate only from the audit log.'),
  content: nullable(CertificateContent),
});

const Import = requestBody('CertificateImport', 'A certificate from a backup, or from before a migration.', {
  pem: Type.String({ minLength: 1, description: 'One certificate.' }),
  ca: Type.String({
    minLength: 1,
    description: 'The label of the CA that signed it, or the further label that it will belong to.',
  }),
});

/** `/admin/certificates…`, except for revocation. */
export function registerCertificates(app: AdminApp, deps: AdminDependencies): void {
  listRoute(app, deps, {
    call: 'GET /admin/certificates',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'List the issued certificates',
    description:
      'A label that is no longer configured still finds the certificates of its CA. With `Accept: text/csv`, the whole selection as a table.',
    filters: certificateFilter,
    item: CertificateRecord,
    sorted: 'The order of issuance.',
    page: (request, now) => {
      const selection = readCertificateFilter(request.query);
      const { store } = limited(deps, request);
      return async (page) => {
        const { items, ...rest } = await store.listCertificates({ ...selection, ...page }, now);
        return { items: await withRescues(store, items, now), ...rest };
      };
    },
    record: (row, now) => certificateRecord(row, now),
  });

  route(app, {
    call: 'GET /admin/certificates/:serial',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get one certificate with its PEM',
    query: { ca: caQuery },
    response: { 200: CertificatePage },
    handler: async (request) => {
      const { store } = limited(deps, request);
      const now = deps.now();
      const row = await findCertificate(store, request.params.serial, request.query.ca);
      const [found = row] = await withRescues(store, [row], now);
      return certificatePage(found, now);
    },
  });

  route(app, {
    call: 'GET /admin/certificates/:serial/chain',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get the chain of a certificate',
    query: { ca: caQuery },
    response: {
      200: titled('CertificateChain', 'The chain of a certificate.', {
        chain: Texts(
          'PEM certificates from its issuer to the root, if this server has them. Empty if its CA is no longer configured.',
        ),
        contents: Type.Array(CertificateContent),
      }),
    },
    handler: async (request) => {
      const row = await findCertificate(limited(deps, request).store, request.params.serial, request.query.ca);
      const ca = deps.cas.issuers.find(({ label }) => label === row.ca);
      // A restored store may know it only from the audit log.
      if (ca === undefined || row.der.length === 0) return { chain: [], contents: [] };
      const [, ...path] = await pathOf(parseCertificate(row.der), [...ca.certificates, ...ca.renewalIssuers]);
      const ders = path.map(({ der }) => der);
      return { chain: ders.map((der) => encodePem('CERTIFICATE', der)), contents: certificateContents(ders) };
    },
  });

  route(app, {
    call: 'POST /admin/certificates',
    access: [],
    summary: 'Import a certificate that is missing from the store, so that it can be revoked',
    description:
      'This CA must have signed it. The record has the administrator as `requester`, `import` as `method`, and the ID of this call as `request_id`.',
    body: Import,
    response: { 201: CertificatePage },
    errors: [409],
    handler: async (request, reply) => {
      const { pem, ca: label } = request.body;
      const row = await importCertificate(deps, callOf(request), { pem, label });
      return reply.code(201).send(certificatePage(row, deps.now()));
    },
  });
}

/** @throws EstuaryError 400 `FIELD_INVALID` that names the filter */
export function readCertificateFilter(query: Static<typeof CertificateFilter>): CertificateSelection {
  const { serial, fingerprint_sha256, issued_after, expires_before, ...others } = query;
  return {
    ...others,
    serial: serial === undefined ? undefined : readSerial(serial),
    fingerprint_sha256:
      fingerprint_sha256 === undefined ? undefined : readHash('fingerprint_sha256', fingerprint_sha256),
    issued_after: parseOptionalTimestamp('issued_after', issued_after),
    expires_before: parseOptionalTimestamp('expires_before', expires_before),
  };
}

/**
 * Converts a serial number to lowercase hex. Accepts the forms of tools: upper case, colons, without a leading zero, and
 * with the zero octet of the INTEGER.
 */
function normalizeSerial(text: string): string | undefined {
  if (!/^(?:00:?(?=[89a-f]))?(?:[1-9a-f]|[0-9a-f]{2})(?::?[0-9a-f]{2}){0,19}$/i.test(text)) return undefined;
  const hex = text
    .replaceAll(':', '')
    .toLowerCase()
    .replace(/^00(?=[89a-f])/, '');
  return hex.padStart(hex.length + (hex.length % 2), '0');
}

/** @throws EstuaryError 400 `FIELD_INVALID` */
export function readSerial(text: string): string {
  const serial = normalizeSerial(text);
  if (serial === undefined)
    throw badRequest('FIELD_INVALID', 'serial must be a serial number in hex, two digits a byte, at most 20 bytes');
  return serial;
}

/**
 * The certificate with this serial number.
 * @throws {EstuaryError} 404 `CERTIFICATE_NOT_FOUND`; 400 `SERIAL_AMBIGUOUS` if several CAs used the number and `ca` is
 * absent
 */
export async function findCertificate(
  store: Pick<CertificateStore, 'getCertificates'>,
  serial: string,
  ca: string | undefined,
): Promise<CertificateRow> {
  const hex = normalizeSerial(serial);
  const found = hex === undefined ? [] : await store.getCertificates(hex);
  const rows = found.filter((row) => ca === undefined || row.ca === ca || row.label === ca);
  const [row] = rows;
  if (row === undefined) throw certificateNotFound();
  if (rows.length > 1)
    throw badRequest(
      'SERIAL_AMBIGUOUS',
      `several CAs issued a certificate with this serial number: specify one with ca (${rows.map((each) => each.ca).join(', ')})`,
    );
  return row;
}

export function certificateNotFound(): EstuaryError {
  return notFound('CERTIFICATE_NOT_FOUND', 'no certificate has this serial number');
}

function certificatePage(row: CertificateRow & Rescued, now: number): Static<typeof CertificatePage> {
  return {
    ...certificateRecord(row, now),
    archived_key_id: row.archived_key_id,
    pem: row.der.length === 0 ? '' : encodePem('CERTIFICATE', row.der),
    content: certificateContents([row.der])[0] ?? null,
  };
}

/** The end of an open pass. */
interface Rescued {
  readonly rescue_until?: number | null;
}

/** The certificates with the passes that they have. */
async function withRescues<Row extends ListedCertificate>(
  store: Pick<RescueStore, 'listRescues'>,
  rows: readonly Row[],
  now: number,
): Promise<readonly (Row & Rescued)[]> {
  const serials = rows.map(({ serial }) => serial);
  const passes = new Map(
    (await store.listRescues(serials, now)).map((rescue) => [`${rescue.serial} ${rescue.ca}`, rescue.until]),
  );
  return rows.map((row) => ({ ...row, rescue_until: passes.get(`${row.serial} ${row.ca}`) ?? null }));
}

export async function certificateRecords(
  store: Pick<RescueStore, 'listRescues'>,
  rows: readonly ListedCertificate[],
  now: number,
): Promise<Static<typeof CertificateRecord>[]> {
  return (await withRescues(store, rows, now)).map((row) => certificateRecord(row, now));
}

/** The response has no other field of the row, because the schema names none. */
export function certificateRecord(row: ListedCertificate & Rescued, now: number): Static<typeof CertificateRecord> {
  const { label, ...fields } = row;
  return {
    ...fields,
    not_before: formatTimestamp(row.not_before),
    not_after: formatTimestamp(row.not_after),
    status: certificateStatus(row, now),
    revoked_at: formatOptionalTimestamp(row.revoked_at),
    rescue_until: formatOptionalTimestamp(row.rescue_until ?? null),
    ...(label === null ? {} : { label }),
  };
}

function certificateStatus(row: ListedCertificate, now: number): Static<typeof CertificateStatus> {
  if (row.revoked_at !== null) return 'revoked';
  return row.not_after < now ? 'expired' : 'valid';
}
