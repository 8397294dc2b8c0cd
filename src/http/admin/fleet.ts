/** Who holds certificates, and in which state (docs/guides/fleet.md). */
import { type Static, Type } from '@fastify/type-provider-typebox';
import { shownHolder } from '../../fleet/events.ts';
import { HOLDER_STATES } from '../../store/holder-state.ts';
import { labelsOf } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { listRoute, route } from './route.ts';
import { Integer, nullable, oneOf, part, Text, Texts, Timestamp, titled, whole } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { parseOptionalTimestamp } from './values.ts';

const State = oneOf(HOLDER_STATES);

export const HolderRecord = titled(
  'Holder',
  'A set of names at a label, with its device, if it has one. Absent facts are null.',
  {
    state: State,
    since: Timestamp('Since when it is in this state.'),
    ca: nullable(Text('The label.')),
    subject: nullable(Text('RFC 4514.')),
    sans: nullable(Texts('As in certificates.')),
    device: nullable(Text('The ID of the registered device.')),
    serial: nullable(Text('Of the newest certificate that is not revoked, as are the times of its use.')),
    not_after: nullable(Timestamp()),
    window_end: nullable(Timestamp('When its renewal window ends.')),
    last_used_at: nullable(Timestamp('When it last authenticated on the EST listener.')),
    first_used_at: nullable(Timestamp()),
    renewal_info_at: nullable(Timestamp('When anybody last requested its renewal information.')),
    tls_version: nullable(oneOf(['TLSv1.2', 'TLSv1.3'], { description: 'null: unknown, or behind a proxy.' })),
    last_code: nullable(Text('Why a renewal was last rejected (docs/reference/errors.md).')),
    last_message: nullable(Type.String()),
    last_failed_at: nullable(Timestamp()),
  },
);

const Counts = Type.Object(Object.fromEntries(HOLDER_STATES.map((state) => [state, Type.Integer()])));

const Summary = titled('FleetSummary', 'How many holders are in which state.', {
  as_of: Timestamp(),
  labels: Type.Record(Type.String(), Counts, { description: 'Counts by label.' }),
  expiring: Type.Object(
    { '1': Type.Integer(), '7': Type.Integer(), '30': Integer('Includes those of fewer days.') },
    { description: 'Valid holders whose newest certificate expires within that many days.' },
  ),
});

/** `GET /admin/fleet` and `GET /admin/fleet/summary`. */
export function registerFleet(app: AdminApp, deps: AdminDependencies): void {
  listRoute(app, deps, {
    call: 'GET /admin/fleet',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'List the holders of certificates',
    description: 'A page may have fewer items than its limit. With `Accept: text/csv`, the whole selection as a table.',
    filters: {
      state: Type.Optional(State),
      ca: whole('A label.'),
      device: whole('The ID of a device.'),
      subject: part('the subject'),
      expires_before: Type.Optional(Timestamp('Holders whose newest certificate expires before this time.')),
      seen_before: Type.Optional(
        Timestamp('Holders whose newest certificate last authenticated before this time, or never.'),
      ),
    },
    item: HolderRecord,
    sorted: 'By the expiry of the newest certificate. Devices without a certificate come last.',
    page: (request) => {
      const { expires_before, seen_before, ...others } = request.query;
      const times = {
        expires_before: parseOptionalTimestamp('expires_before', expires_before),
        seen_before: parseOptionalTimestamp('seen_before', seen_before),
      };
      const labels = labelsOf(request);
      return (page) => deps.fleet.list({ ...others, ...times, ...page, labels });
    },
    record: shownHolder,
  });

  route(app, {
    call: 'GET /admin/fleet/summary',
    access: ['ra', 'auditor', 'operator'],
    labels: 'records',
    summary: 'Count the holders by state',
    description: 'The counts are at most a minute old.',
    response: { 200: Summary },
    handler: async (request): Promise<Static<typeof Summary>> => {
      const { as_of, ...counts } = await deps.fleet.summary(labelsOf(request));
      return { as_of: formatTimestamp(as_of), ...counts };
    },
  });
}
