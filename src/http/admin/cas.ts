import { Type, type Static } from '@fastify/type-provider-typebox';
import { daysLeft } from '../../ca/expiry.ts';
import type { Ca } from '../../ca/router.ts';
import { formatName } from '../../pki/x509/name.ts';
import { encodePem } from '../../pki/der/pem.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health-monitor.ts';
import { listQuery } from './list.ts';
import { pageOf, pageRequest } from './paging.ts';
import { errorResponses, listOf, nullable, oneOf, strictObject, Timestamp } from './schemas.ts';
import { formatTimestamp } from './timestamps.ts';

const CaRecord = Type.Object(
  {
    label: Type.String(),
    ca: Type.Optional(Type.String({ description: 'Of a further label: the CA whose key signs.' })),
    default: Type.Boolean({ description: 'Serves requests without a label.' }),
    driver: Type.String({ description: '`file`, `pkcs11`, `dogtag`, `est`, `acme` or `command`.' }),
    subject: nullable(Type.String({ description: "The CA certificate's subject, RFC 4514." })),
    not_after: nullable(Timestamp()),
    days_left: nullable(Type.Integer({ description: 'Whole days until not_after; negative after it.' })),
    health: oneOf(['ok', 'degraded', 'down']),
    certificate: nullable(Type.String({ description: "PEM of the CA's own certificate; null while it is not known." })),
    chain: Type.Array(Type.String(), {
      description:
        'PEM certificates as cacerts answers them: the issuing CA first, up to the root, then those of rollovers.',
    }),
  },
  { title: 'Ca', description: 'A configured CA, or a further label of one.' },
);

/** `GET /admin/cas` and `GET /admin/cas/{label}`. */
export function registerCas(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  app.get(
    '/admin/cas',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'The configured CAs, with their further labels',
        tags: ['cas'],
        querystring: strictObject(listQuery),
        response: {
          200: listOf(
            CaRecord,
            'In the order of the configuration, further labels after their CA; `desc`: the other way round.',
          ),
          ...errorResponses(400),
        },
      },
    },
    async (request) => {
      const page = pageOf(deps.cas.all, pageRequest(request.query));
      const items = await Promise.all(page.items.map((ca) => caRecord(ca, deps, monitor)));
      return { items, next_cursor: page.next_cursor };
    },
  );

  app.get(
    '/admin/cas/:label',
    {
      config: { access: ['operator'] },
      schema: {
        summary: 'One CA',
        tags: ['cas'],
        params: Type.Object({ label: Type.String() }),
        querystring: strictObject({}),
        response: { 200: CaRecord, ...errorResponses(400, 404) },
      },
    },
    (request) => caRecord(deps.cas.find(request.params.label), deps, monitor),
  );
}

async function caRecord(ca: Ca, { now }: AdminDependencies, monitor: HealthMonitor): Promise<Static<typeof CaRecord>> {
  const { health } = await monitor.ca(ca.issuer);
  const chain = ca.driver.chain();
  // A remote CA may not have told its certificate yet.
  const own = chain[0] === undefined ? undefined : ca.certificate;
  const notAfter = own?.notAfter.getTime();
  return {
    label: ca.label,
    ...(ca.issuer === ca ? {} : { ca: ca.issuer.label }),
    default: ca.isDefault,
    driver: ca.config.driver,
    subject: own === undefined ? null : formatName(own.subject),
    not_after: notAfter === undefined ? null : formatTimestamp(notAfter),
    days_left: daysLeft(ca, now()) ?? null,
    health,
    certificate: own === undefined ? null : encodePem('CERTIFICATE', own.der),
    chain: chain.map((der) => encodePem('CERTIFICATE', der)),
  };
}
