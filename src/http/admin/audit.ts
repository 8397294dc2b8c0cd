import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { AUDIT_TYPES, type AuditEvent, type AuditRecord, REQUESTER_AUTHENTICATION } from '../../audit/event.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import { callerOf, limited, rolesFor } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { readSerial } from './certificates.ts';
import { listRoute } from './route.ts';
import { Bool, described, Integer, oneOf, part, Text, Texts, Timestamp, titled, whole } from './schemas.ts';
import { parseOptionalTimestamp } from './values.ts';

const type = oneOf(AUDIT_TYPES);

const text = (description?: string) => Type.Optional(Type.String(description === undefined ? {} : { description }));
const names = (description: string) => Type.Optional(Texts(description));

const AuditItem = titled('AuditRecord', 'A record as in the audit file. Fields that do not apply are absent.', {
  seq: Type.Integer(),
  time: Timestamp(),
  node: text('The node that wrote the record.'),
  type,
  outcome: oneOf(['success', 'failure']),
  subject: text('Who.'),
  method: text(
    'How the requester authenticated (`mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`), or the administrator (`mtls`, `bearer`, `oidc`).',
  ),
  requester_issuer: text("The issuer of the requester's or administrator's certificate."),
  requester_sans: names("The subjectAltNames of the requester's certificate."),
  address: text("The client's network address."),
  ca: text('A label.'),
  label: text('Of a certificate: the label of the request, if it is not the label of the CA.'),
  serial: text('The serial number of the issued or revoked certificate, or of the one that the client presented.'),
  certificate_subject: text('Of the issued or revoked certificate.'),
  certificate_sans: names('Of the issued or revoked certificate.'),
  certificate_not_after: text('Of the issued or revoked certificate.'),
  authorized_names: text(
    'Of an issued certificate whose CA certified other names: those that were authorized, in DER.',
  ),
  revocation_reason: text('Of the revoked certificate: an RFC 5280 CRLReason name.'),
  invalidity_date: text('Of the revoked certificate, if it was given.'),
  rescue_until: text('The end of a pass for one more renewal.'),
  request_id: text('The same in all records of a request.'),
  operation: text('Of an issued certificate or a rejected request: the operation. Of `admin.access`: the call.'),
  renewal: Type.Optional(Bool("Of a rejected request: whether it is for the names of the requester's certificate.")),
  requester: text('Of an issued certificate: its owner, if that is not `subject`.'),
  device: text('The ID of the registered device.'),
  device_key: text("The key of the device's entry. A later device with the same ID has another key."),
  device_required: Type.Optional(
    Bool('Of an issued certificate: whether the label issues to registered devices only.'),
  ),
  device_enabled: Type.Optional(Bool('The new value, if the device was enabled or disabled.')),
  token: text('The ID of the token.'),
  token_expires_at: text('The new expiry date of the token.'),
  reason: text('Why a request or a credential was rejected, or a request expired.'),
  crl_number: Type.Optional(Integer('Of an issued CRL.')),
  days: Type.Optional(Integer('Of a certificate or CA that expires: the reached number of days before its expiry.')),
  holder: Type.Optional(
    Type.Unsafe<NonNullable<AuditEvent['holder']>>(
      Type.Object(
        {},
        { additionalProperties: true, description: 'Of `holder.*`: the holder, as in `GET /admin/fleet`.' },
      ),
    ),
  ),
  count: Type.Optional(Integer('Of `holder.*`: how many holders entered the state, instead of single records.')),
  detail: text('Text for people. Programs use the other fields.'),
  archived: Type.Optional(
    described('Records that were moved from the store to an archive.', {
      first: Integer('The `seq` of the first.'),
      last: Integer('The `seq` of the last.'),
      hash: Text('The hash of the last.'),
    }),
  ),
  checkpoint: Type.Optional(
    described('A signed checkpoint: the end of the chain.', {
      seq: Integer('The `seq` of the last record.'),
      hash: Text('Its hash.'),
      signature: Text('The signature in base64, made with `audit.checkpoint_key`.'),
    }),
  ),
  anchors: Type.Optional(
    Type.Array(
      Type.Object({
        node: Text('The node that the chain belongs to.'),
        seq: Integer('The `seq` of the last record of that chain.'),
        hash: Text('Its hash.'),
      }),
      { description: 'The ends of the chains of other nodes.' },
    ),
  ),
  stored: Type.Optional(
    Integer('The last record in the store when this transaction began. Absent in later records of the transaction.'),
  ),
  prev_hash: Text('The hash of the previous record.'),
  hash: Text('SHA-256, hex.'),
});

/** A record as the caller's roles may see it: completely, or without `detail`, addresses and hashes. */
export const ShownAuditItem = titled(
  'ShownAuditRecord',
  'An audit record, with the fields that the roles of the caller may see.',
  {
    ...AuditItem.properties,
    prev_hash: Type.Optional(AuditItem.properties.prev_hash),
    hash: Type.Optional(AuditItem.properties.hash),
  },
);

/** Record types that a role sees, by their first part. `admin` and `auditor` see all records completely. */
const SEEN_BY: Readonly<Record<'ra' | 'operator', readonly string[]>> = {
  ra: ['certificate.', 'request.', 'otp.', 'device.', 'key.', ...REQUESTER_AUTHENTICATION],
  operator: ['service.', 'config.', 'lockout.', 'crl.', 'audit.', 'store.'],
};

/** The facts of a record for `ra` and `operator`. */
const FACTS = [
  ...(['seq', 'time', 'type', 'outcome'] as const),
  ...(['subject', 'method', 'ca', 'label', 'serial', 'request_id', 'operation', 'requester', 'reason'] as const),
  ...(['certificate_subject', 'certificate_not_after', 'revocation_reason', 'invalidity_date'] as const),
  'rescue_until',
  ...(['device', 'device_enabled', 'token', 'token_expires_at', 'crl_number', 'certificate_sans'] as const),
] as const satisfies readonly (keyof AuditRecord)[];

/** What the roles of an administrator at the label of a record show of it; undefined: nothing. */
export function shownAuditItem(record: AuditRecord, admin: AdminIdentity): Partial<AuditRecord> | undefined {
  const roles = rolesFor(admin, record);
  if (roles.includes('admin') || roles.includes('auditor')) return record;
  const seen = roles.flatMap((role) => (role === 'ra' || role === 'operator' ? SEEN_BY[role] : []));
  if (!seen.some((first) => record.type.startsWith(first))) return undefined;
  return Object.fromEntries(FACTS.flatMap((name) => (record[name] === undefined ? [] : [[name, record[name]]])));
}

export const shownAuditItems = (records: readonly AuditRecord[], request: FastifyRequest) =>
  records.flatMap((record) => shownAuditItem(record, callerOf(request)) ?? []);

/** The fields of a record in order, as columns of a table. */
export const auditColumns: readonly string[] = Object.keys(AuditItem.properties);

export function registerAudit(app: AdminApp, deps: AdminDependencies): void {
  listRoute(app, deps, {
    call: 'GET /admin/audit',
    access: ['auditor'],
    labels: 'records',
    summary: 'List the audit records',
    filters: {
      since: Type.Optional(Timestamp('Records from this time on.')),
      until: Type.Optional(Timestamp('Records up to this time.')),
      type: Type.Optional(type),
      subject: part('the subject'),
      ca: whole('A label.'),
      serial: Type.Optional(Text('The complete serial number, hex.')),
      request_id: whole('The ID of a request.'),
    },
    item: AuditItem,
    sorted: 'The order of the chain.',
    page: (request) => {
      const { since, until, serial, ...filters } = request.query;
      const selection = {
        ...filters,
        since: parseOptionalTimestamp('since', since),
        until: parseOptionalTimestamp('until', until),
        serial: serial === undefined ? undefined : readSerial(serial),
      };
      return (page) => limited(deps, request).store.listAudit({ ...selection, ...page });
    },
    record: (record) => record,
  });
}
