/** `GET /admin/cas/{label}/rollover`: whether a key of a CA can be retired. */
import { type Static, Type } from '@fastify/type-provider-typebox';
import { type IssuingKey, type ListedHolderRow, rolloverOf } from '../../administration/rollover.ts';
import { notFound } from '../../errors.ts';
import { labelsOf } from './access.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { shownHolder } from '../../fleet/events.ts';
import { HolderRecord } from './fleet.ts';
import { route } from './route.ts';
import { Bool, Integer, nullable, Text, Timestamp, titled } from './schemas.ts';
import { formatOptionalTimestamp } from '../../timestamp.ts';

const Rollover = titled('Rollover', 'Which keys issued the certificates of a label, and who still needs each.', {
  label: Type.String(),
  issuers: Type.Array(
    Type.Object({
      subject: Text('RFC 4514.'),
      key_sha256: nullable(
        Text('SHA-256 of the SubjectPublicKeyInfo, hex. null: unknown, because the CA is elsewhere.'),
      ),
      not_after: nullable(Timestamp('The expiry of the CA certificate.')),
      current: Bool('Whether it issues now.'),
      holders: Integer('Holders with a valid certificate of this key that have used no newer certificate.'),
      informed: Integer('Of these, how many cacerts gave the current CA certificate (at least).'),
      latest_expiry: nullable(Timestamp('When the last of their certificates expires.')),
      can_be_retired: Bool('Whether nobody needs it, and it does not issue now.'),
      in_the_way: Type.Array(HolderRecord, { description: 'The first hundred holders.' }),
    }),
  ),
});

export function registerRollover(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'GET /admin/cas/:label/rollover',
    access: ['ra', 'auditor', 'operator'],
    labels: 'records',
    summary: 'Find out whether a former key of a CA can be retired',
    description: 'One entry for the key of the CA and for each in `renewal_issuers`.',
    response: { 200: Rollover },
    handler: async (request): Promise<Static<typeof Rollover>> => {
      const { label } = request.params;
      if (labelsOf(request)?.includes(label) === false)
        throw notFound('UNKNOWN_LABEL', 'There is no CA with this label.');
      const ca = deps.cas.find(label);
      await deps.fleet.refresh();
      const keys = await rolloverOf(deps.store, ca, deps.now());
      return { label: ca.label, issuers: keys.map(issuerRecord) };
    },
  });
}

const issuerRecord = ({ not_after, latest_expiry, in_the_way, ...key }: IssuingKey) => ({
  ...key,
  not_after: formatOptionalTimestamp(not_after),
  latest_expiry: formatOptionalTimestamp(latest_expiry),
  can_be_retired: key.holders === 0 && !key.current,
  in_the_way: in_the_way.map(listed),
});

const listed = ({ label, certificates: [newest], ...holder }: ListedHolderRow): Static<typeof HolderRecord> =>
  shownHolder({ ...newest, ...holder, ca: label });
