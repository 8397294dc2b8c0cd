import { Type, type Static } from '@fastify/type-provider-typebox';
import { approve, findRequest, reject } from '../../administration/decide.ts';
import { badRequest } from '../../errors.ts';
import { encodePem } from '../../pki/der/pem.ts';
import { REQUEST_STATUSES } from '../../store/request-state.ts';
import type { RequestRow } from '../../store/request-store.ts';
import { callOf, limited } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { listRoute, route } from './route.ts';
import { nullable, oneOf, part, requestBody, strictObject, Text, Texts, Timestamp, titled, whole } from './schemas.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../../timestamp.ts';

const Status = oneOf(REQUEST_STATUSES);

export const RequestRecord = titled('Request', 'A queued request.', {
  id: Text('Also the request_id of its certificate and audit records.'),
  ca: Text("The CA's label."),
  operation: Text('`simpleenroll`, `simplereenroll`, …'),
  subject: Text('RFC 4514.'),
  sans: Texts('`DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md)'),
  key_type: Text('The type of the key to certify: `ec:P-256`, `rsa:2048`, `ed25519`, …'),
  requester: Text('The requester.'),
  method: Text('How the requester authenticated.'),
  status: Status,
  created_at: Timestamp(),
  decided_at: nullable(Timestamp()),
  decided_by: Texts('The administrators who have approved it so far, then the one who rejected it, if any.'),
  reason: nullable(Text('Why it was rejected or failed.')),
  serial: nullable(Text('The serial number of its certificate, once issued.')),
  device: nullable(Text('The ID of the registered device.')),
  requester_issuer: nullable(
    Text('RFC 4514: the CA that issued the certificate with which the requester authenticated, if any.'),
  ),
  requester_sans: Texts('The subjectAltNames of that certificate.'),
});

const RequestPage = titled('RequestDetails', 'A queued request, with its CSR.', {
  ...RequestRecord.properties,
  spki_sha256: nullable(
    Text('SHA-256 of the SubjectPublicKeyInfo, hex, to compare with the device. null if the server generates the key.'),
  ),
  ca_reference: nullable(Text('The identifier of the request at the remote CA whose agents decide it.')),
  csr: Text(
    'The queued request, PEM: a PKCS#10 (`CERTIFICATE REQUEST`), or a CRMF CertReqMsg of a CMC message (`CRMF REQUEST`).',
  ),
});

const Rejection = requestBody('Rejection', 'Why.', {
  reason: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'The client gets this text. No control characters.',
  }),
});

/** `/admin/requests`: queued requests and decisions about them. */
export function registerRequests(app: AdminApp, deps: AdminDependencies): void {
  listRoute(app, deps, {
    call: 'GET /admin/requests',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'List the queued requests',
    filters: {
      status: Type.Optional(Status),
      ca: whole("A CA's label."),
      requester: whole('The requester, as in records.'),
      device: whole('The ID of a device.'),
      search: part('the subject, a subjectAltName, the requester or the device, or the ID'),
    },
    item: RequestRecord,
    sorted: 'The oldest first.',
    page: (request) => (page) => limited(deps, request).store.listRequests({ ...request.query, ...page }),
    record: requestRecord,
  });

  route(app, {
    call: 'GET /admin/requests/:id',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get one request with its CSR',
    response: { 200: RequestPage },
    handler: async (request) => requestPage(await findRequest(limited(deps, request), request.params.id)),
  });

  route(app, {
    call: 'POST /admin/requests/:id/approve',
    access: ['ra'],
    labels: 'records',
    summary: 'Approve a request; the next poll gets the certificate',
    description:
      'Where `[ca] approvals` requires several administrators, it stays pending until that many different administrators have approved it. A second approval by the same one: 409. A certificate without an entry in `admin.clients`: 403.',
    body: strictObject({}, { description: 'Optional.' }),
    response: { 200: RequestPage },
    errors: [409],
    optionalBody: true,
    handler: async (request) => requestPage(await approve(limited(deps, request), callOf(request), request.params.id)),
  });

  route(app, {
    call: 'POST /admin/requests/:id/reject',
    access: ['ra'],
    labels: 'records',
    summary: 'Reject a request; polls get 403 with the reason',
    body: Rejection,
    response: { 200: RequestPage },
    errors: [409],
    handler: async (request) => {
      const { reason } = request.body;
      if (/\p{Cc}/u.test(reason) || reason.trim() === '')
        throw badRequest('FIELD_INVALID', 'reason must not be blank or contain control characters');
      return requestPage(await reject(limited(deps, request), callOf(request), request.params.id, reason));
    },
  });
}

/** The response has no other field of the row, because the schema names none. */
export function requestRecord(row: RequestRow): Static<typeof RequestRecord> {
  return {
    ...row,
    created_at: formatTimestamp(row.created_at),
    decided_at: formatOptionalTimestamp(row.decided_at),
    decided_by: row.decided_by.map(({ name }) => name),
  };
}

const PEM_LABELS = { pkcs10: 'CERTIFICATE REQUEST', crmf: 'CRMF REQUEST' } as const;

function requestPage(row: RequestRow): Static<typeof RequestPage> {
  return {
    ...requestRecord(row),
    spki_sha256: row.spki_sha256,
    ca_reference: row.reference,
    csr: encodePem(PEM_LABELS[row.format], row.csr),
  };
}
