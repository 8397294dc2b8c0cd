/** Replacement campaigns: which certificates are to be replaced by when, and how far that is (docs/guides/renewal.md). */
import { renewalEnded } from '../../audit/applied-events.ts';
import { randomUUID } from 'node:crypto';
import { type Static, Type } from '@fastify/type-provider-typebox';
import { NAMED, progressOf } from '../../administration/renewals.ts';
import type { FastifyRequest } from 'fastify';
import { badRequest, notFound } from '../../errors.ts';
import type { RenewalRow } from '../../store/renewal-store.ts';
import { accessEvent, actor, callerOf, checkLabel, labelsOf } from './access.ts';
import { CertificateFilter, CertificateRecord, certificateRecords, readCertificateFilter } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { listQuery, pageOf, route } from './route.ts';
import { readSelection } from './revocation.ts';
import { flag, Integer, listOf, nullable, requestBody, Timestamp, titled } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { parseTimestamp } from './values.ts';

const Renewal = titled('Renewal', 'A replacement campaign.', {
  id: Type.String(),
  filter: Type.Object({}, { additionalProperties: true, description: 'The filters of the campaign.' }),
  starts_at: Timestamp('The campaign ignores certificates issued later.'),
  by: Timestamp('The deadline.'),
  created_by: Type.String(),
  reason: nullable(Type.String()),
  explanation_url: nullable(Type.String()),
});

const Progress = titled('RenewalProgress', 'A replacement campaign and its progress.', {
  ...Renewal.properties,
  total: Integer('Matching certificates that are neither revoked nor expired without a replacement.'),
  replaced: Integer('Certificates with a later one of the same holder, or one that was issued in their renewal.'),
  waiting: Integer('Certificates that are not replaced and not due.'),
  failed: Integer('Certificates that are not replaced, and whose renewal was rejected since the start.'),
  overdue: Integer('Certificates that are not replaced after `by`.'),
  waiting_certificates: Type.Array(CertificateRecord, { description: `The first ${NAMED}.` }),
  failed_certificates: Type.Array(CertificateRecord, { description: `The first ${NAMED}.` }),
  overdue_certificates: Type.Array(CertificateRecord, { description: `The first ${NAMED}.` }),
});

const Start = requestBody('RenewalStart', 'The certificates to replace, and the deadline.', {
  filter: CertificateFilter,
  by: Timestamp('In the future.'),
  reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  explanation_url: Type.Optional(Type.String({ pattern: '^https?://', maxLength: 2000 })),
});

/** Turns that a progress waits for the derivation of the holders. */
const TURNS = 20;

/** `/admin/renewals…` */
export function registerRenewals(app: AdminApp, deps: AdminDependencies): void {
  const { store } = deps;
  const visible = async (request: FastifyRequest): Promise<readonly RenewalRow[]> => {
    const permitted = labelsOf(request);
    const all = await store.listRenewals();
    return permitted === undefined ? all : all.filter(({ selection }) => isWithin(selection, permitted));
  };
  // A campaign for a CA is also one for its further labels.
  const isWithin = ({ ca, label, labels }: RenewalRow['selection'], permitted: readonly string[]): boolean => {
    const ofCa = deps.cas.all.filter(({ issuer }) => issuer.label === ca).map(({ label }) => label);
    const meant = labels ?? (label === undefined ? ofCa : [label]);
    return meant.length > 0 && meant.every((label) => permitted.includes(label));
  };
  const find = async (request: FastifyRequest, id: string): Promise<RenewalRow> => {
    const row = (await visible(request)).find((campaign) => campaign.id === id);
    if (row === undefined) throw renewalNotFound();
    return row;
  };

  const progressRecord = async (row: RenewalRow): Promise<Static<typeof Progress>> => {
    const now = deps.now();
    await deps.fleet.refresh(TURNS);
    const { rows, ...counts } = await progressOf(store, row, now);
    return {
      ...renewalRecord(row),
      ...counts,
      waiting_certificates: await certificateRecords(store, rows.waiting, now),
      failed_certificates: await certificateRecords(store, rows.failed, now),
      overdue_certificates: await certificateRecords(store, rows.overdue, now),
    };
  };

  route(app, {
    call: 'POST /admin/renewals',
    access: ['ra'],
    labels: 'records',
    summary: 'Start a replacement campaign',
    description:
      '`filter` has the filters of `GET /admin/certificates`, at least one in addition to `status`. The suggested windows of the matching certificates move to the time between now and `by`, evenly spread.',
    query: {
      dry_run: flag('Counts the matching certificates. Nothing changes.'),
    },
    body: Start,
    response: { 200: Progress, 201: Renewal },
    handler: async (request, reply) => {
      const { filter, by, reason = null, explanation_url = null } = request.body;
      const begins = deps.now();
      const due = parseTimestamp('by', by);
      if (due <= begins) throw badRequest('FIELD_INVALID', 'by must be in the future');
      // Also those that are revoked or have expired since, if they are replaced.
      const labels = labelsOf(request);
      const selection = { ...readSelection(readCertificateFilter(filter)), status: undefined, labels };
      checkLabel(request, labelOf({ selection }));
      checkKnown(
        'ca',
        filter.ca,
        deps.cas.all.map(({ issuer }) => issuer.label),
      );
      checkKnown(
        'label',
        filter.label,
        deps.cas.all.map(({ label }) => label),
      );
      const created_by = callerOf(request).display;
      const row = { id: randomUUID(), selection, begins, due, created_by, reason, explanation_url, overdue_at: null };
      if (request.query.dry_run === 'true') return reply.code(200).send(await progressRecord(row));
      await store.startRenewal(row, [
        accessEvent(request, 'success', `renewal ${row.id}`),
        {
          ...actor(request),
          ...aboutCa(row),
          type: 'renewal.started',
          outcome: 'success',
          detail: `${row.id} by ${by}`,
        },
      ]);
      return reply.code(201).send(renewalRecord(row));
    },
  });

  route(app, {
    call: 'GET /admin/renewals',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'List the replacement campaigns',
    query: listQuery,
    response: { 200: listOf(Renewal, 'In the order of their start.') },
    handler: async (request) => {
      const { items, ...rest } = pageOf(await visible(request), request.query);
      return { items: items.map(renewalRecord), ...rest };
    },
  });

  route(app, {
    call: 'GET /admin/renewals/:id',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get a campaign and its progress',
    response: { 200: Progress },
    handler: async (request) => {
      return progressRecord(await find(request, request.params.id));
    },
  });

  route(app, {
    call: 'DELETE /admin/renewals/:id',
    access: ['ra'],
    labels: 'records',
    summary: 'End a campaign',
    description: 'Certificates that are not replaced have their own window again.',
    response: { 204: Type.Null({ description: 'Ended.' }) },
    handler: async (request, reply) => {
      const row = await find(request, request.params.id);
      const ended = await store.endRenewal(row.id, [
        accessEvent(request, 'success', `renewal ${row.id} ended`),
        renewalEnded({ ...actor(request), ...aboutCa(row) }, row.id),
      ]);
      if (!ended) throw renewalNotFound();
      return reply.code(204).send(null);
    },
  });
}

/** @throws EstuaryError 400 `FIELD_INVALID`: a campaign for it would match nothing */
function checkKnown(field: string, label: string | undefined, known: readonly string[]): void {
  if (label === undefined || known.includes(label)) return;
  throw badRequest('FIELD_INVALID', `filter.${field} must be the label of a configured CA, not ${label}`);
}

const labelOf = ({ selection: { ca, label } }: Pick<RenewalRow, 'selection'>): string | undefined => label ?? ca;

function aboutCa({ selection: { ca } }: RenewalRow): { readonly ca?: string } {
  return ca === undefined ? {} : { ca };
}

/** The response has no other field of the row, because the schema names none. */
function renewalRecord(row: RenewalRow): Static<typeof Renewal> {
  const { issued_after, expires_before, ...others } = row.selection;
  const filter = {
    ...{ ...others, labels: undefined },
    ...(issued_after === undefined ? {} : { issued_after: formatTimestamp(issued_after) }),
    ...(expires_before === undefined ? {} : { expires_before: formatTimestamp(expires_before) }),
  };
  return { ...row, filter, starts_at: formatTimestamp(row.begins), by: formatTimestamp(row.due) };
}

const renewalNotFound = () => notFound('RENEWAL_NOT_FOUND', 'there is no campaign with this id');
