import { type Static, Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { alreadyRevoked, checkOrder, release, type RevocationOrder, revoke } from '../../administration/revoke.ts';
import { everyCertificate } from '../../administration/renewals.ts';
import { badRequest, conflict } from '../../errors.ts';
import { REVOCATION_REASONS } from '../../pki/x509/crl.ts';
import type { CertificateSelection, ListedCertificate, RevokeResult } from '../../store/certificate-store.ts';
import { accessEvent, actor, limited } from './access.ts';
import {
  caQuery,
  CertificateFilter,
  certificateNotFound,
  CertificateRecord,
  certificateRecord,
  certificateRecords,
  findCertificate,
  readCertificateFilter,
} from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { Bool, Integer, oneOf, requestBody, strictObject, Timestamp, titled } from './schemas.ts';
import { parseTimestamp } from './values.ts';

/** Reason and date. */
const revocationOrder = {
  reason: Type.Optional(
    oneOf(REVOCATION_REASONS, { description: 'An RFC 5280 CRLReason name; default `unspecified`.' }),
  ),
  invalidity_date: Type.Optional(
    Timestamp('The time since which the key may be compromised or the certificate is invalid; not in the future.'),
  ),
};
const Order = strictObject(revocationOrder, { title: 'Revocation' });

/**
 * `POST /admin/certificates/revoke`: revokes every valid certificate that matches the filters. Requires a confirmed
 * count, so that nobody revokes more than intended.
 */

/** Maximum per call, so that a call ends in reasonable time; the next one continues. */
const MAX_REVOKED = 10_000;
/** Concurrent revocations: they share commits and do not overload a remote CA. */
const AT_ONCE = 20;

const BulkOrder = requestBody('BulkRevocation', 'The filters, the reason and the expected number.', {
  filter: CertificateFilter,
  ...revocationOrder,
  dry_run: Type.Optional(Bool('true: count, and revoke nothing.')),
  count: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'The number of certificates from a dry run. Required unless `dry_run` is true.',
    }),
  ),
});

const Result = titled('BulkRevocationResult', 'The result.', {
  count: Integer('The number of certificates that match the filters.'),
  revoked: Integer(`The number of revoked certificates; at most ${MAX_REVOKED} per call.`),
  remaining: Integer('The number of certificates left: the `count` of the next call.'),
});

export function registerRevocation(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'POST /admin/certificates/:serial/revoke',
    access: ['ra'],
    labels: 'records',
    summary: 'Revoke a certificate; it no longer authenticates',
    description:
      'Only `certificateHold` can be reversed, and another call can give a held certificate a final reason. The body is optional.',
    query: { ca: caQuery },
    body: Order,
    response: { 200: CertificateRecord },
    errors: [409],
    optionalBody: true,
    handler: async (request) => {
      const now = deps.now();
      const order = readRevocationOrder(request.body, now);
      const row = await findCertificate(limited(deps, request).store, request.params.serial, request.query.ca);
      switch (await revokeByCall(deps, request, row, order)) {
        case 'revoked':
          return certificateRecord({ ...row, ...order, revoked_at: row.revoked_at ?? order.revoked_at }, now);
        case 'already-revoked':
          throw alreadyRevoked();
        case 'unknown':
          throw certificateNotFound();
      }
    },
  });

  route(app, {
    call: 'POST /admin/certificates/:serial/release',
    access: ['ra'],
    labels: 'records',
    summary: 'End the hold of a certificate: it is valid again',
    description: 'Only for a certificate that was revoked with the reason `certificateHold`.',
    query: { ca: caQuery },
    response: { 200: CertificateRecord },
    errors: [409],
    handler: async (request) => {
      const now = deps.now();
      const { store } = limited(deps, request);
      const row = await findCertificate(store, request.params.serial, request.query.ca);
      const access = accessEvent(request, 'success', `certificate ${row.serial} of ${row.ca} released`);
      switch (await release(deps, row, now, actor(request), [access])) {
        case 'released':
          return (await certificateRecords(store, [{ ...row, revoked_at: null, reason: null }], now))[0];
        case 'not-held':
          throw conflict('NOT_HELD', 'the certificate is not held: only the reason certificateHold can be reversed');
        case 'unknown':
          throw certificateNotFound();
      }
    },
  });

  route(app, {
    call: 'POST /admin/certificates/revoke',
    access: ['ra'],
    labels: 'records',
    summary: 'Revoke the valid certificates that match filters',
    description: `\`filter\` has the filters of \`GET /admin/certificates\`, at least one in addition to \`status\`; without \`status\`, valid certificates match. Call it first with \`dry_run\`, then with the \`count\` that it returned. If another number matches by then, the response is 409 and nothing is revoked. The oldest are revoked first, at most ${MAX_REVOKED} per call.`,
    body: BulkOrder,
    response: { 200: Result },
    errors: [409],
    handler: async (request) => {
      const { dry_run: isDry = false, count: meant } = request.body;
      const now = deps.now();
      const order = readRevocationOrder(request.body, now);
      const selection = readSelection(readCertificateFilter(request.body.filter));
      if (!isDry && meant === undefined)
        throw badRequest('FIELD_INVALID', 'count is required; a call with dry_run returns it');
      const count = await countAll(limited(deps, request).store, selection, now);
      if (isDry) return { count, revoked: 0, remaining: count };
      if (count !== meant)
        throw conflict('COUNT_MISMATCH', `the filters match ${count} certificates, but count is ${meant ?? 'missing'}`);
      const revoked = await revokeFirst(deps, request, selection, { order, most: Math.min(count, MAX_REVOKED) });
      return { count, revoked, remaining: count - revoked };
    },
  });
}

/** @throws EstuaryError 400 if `invalidity_date` is in the future */
function readRevocationOrder(
  { reason = 'unspecified', invalidity_date: since }: Static<typeof Order>,
  now: number,
): RevocationOrder {
  const invalidity_date = since === undefined ? null : parseTimestamp('invalidity_date', since);
  const order = { reason, invalidity_date, revoked_at: now };
  checkOrder(order);
  return order;
}

/** Revokes for an administrator. @throws EstuaryError 500, 503 */
export function revokeByCall(
  deps: AdminDependencies,
  request: FastifyRequest,
  row: ListedCertificate,
  order: RevocationOrder,
): Promise<RevokeResult> {
  const access = accessEvent(request, 'success', `certificate ${row.serial} of ${row.ca} revoked`);
  return revoke(deps, row, order, actor(request), [access]);
}

/** @throws EstuaryError 400 if it selects every certificate, or revoked ones */
export function readSelection(filter: CertificateSelection): CertificateSelection {
  const { status = 'valid', ...others } = filter;
  if (status === 'revoked') throw badRequest('FIELD_INVALID', 'filter.status must be valid or expired');
  // An empty substring matches every name.
  if (Object.values(others).some((value) => value === ''))
    throw badRequest('FIELD_INVALID', 'filter must not have an empty value');
  if (Object.values(others).every((value) => value === undefined))
    throw badRequest(
      'FIELD_INVALID',
      'filter must have a criterion in addition to status: status alone matches every certificate',
    );
  return { ...others, status };
}

/** An expired certificate may be revoked, so that it does not count again. */
const isOpen = ({ revoked_at }: ListedCertificate): boolean => revoked_at === null;

async function countAll(...search: Parameters<typeof everyCertificate>): Promise<number> {
  let count = 0;
  for await (const row of everyCertificate(...search)) if (isOpen(row)) count++;
  return count;
}

interface BulkOrder {
  readonly order: RevocationOrder;
  /** Certificates issued after the count come last. */
  readonly most: number;
}

/**
 * @throws EstuaryError 500, 503 if a CA is unreachable or the store is not writable; earlier ones are revoked and
 * audited
 */
async function revokeFirst(
  deps: AdminDependencies,
  request: FastifyRequest,
  selection: CertificateSelection,
  { order, most }: BulkOrder,
): Promise<number> {
  const wanted: ListedCertificate[] = [];
  for await (const row of everyCertificate(limited(deps, request).store, selection, order.revoked_at)) {
    if (wanted.length === most) break;
    if (isOpen(row)) wanted.push(row);
  }
  let revoked = 0;
  for (let start = 0; start < wanted.length; start += AT_ONCE) {
    const some = wanted.slice(start, start + AT_ONCE);
    const results = await Promise.all(some.map((row) => revokeByCall(deps, request, row, order)));
    revoked += results.filter((result) => result === 'revoked').length;
  }
  return revoked;
}
