import { type Static, Type } from '@fastify/type-provider-typebox';
import { daysLeft } from '../../ca/expiry.ts';
import { publicationUrls } from '../../ca/local/tbs.ts';
import type { Ca } from '../../ca/router.ts';
import { conflict } from '../../errors.ts';
import { encodePem } from '../../pki/der/pem.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { crlAge } from '../../publication/crl-publisher.ts';
import { accessEvent } from './access.ts';
import { CertificateContent, certificateContents } from './certificate-content.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import type { HealthMonitor } from './health.ts';
import { listQuery, pageOf, route } from './route.ts';
import { Bool, described, Integer, listOf, nullable, oneOf, Text, Texts, Timestamp, titled } from './schemas.ts';
import { formatTimestamp } from '../../timestamp.ts';

const CaRecord = titled('Ca', 'A configured CA, or a further label of one.', {
  label: Type.String(),
  ca: Type.Optional(Text('For a further label: the CA whose key signs.')),
  default: Bool('Serves requests without a label.'),
  driver: Text('`file`, `pkcs11`, `dogtag`, `est`, `acme` or `command`.'),
  subject: nullable(Text("The CA certificate's subject, RFC 4514.")),
  not_after: nullable(Timestamp()),
  days_left: nullable(Integer('Whole days until not_after; negative after expiry.')),
  health: oneOf(['ok', 'degraded', 'down']),
  certificate: nullable(Text('PEM of the CA certificate; null while it is unknown.')),
  chain: Texts(
    'PEM certificates as in the cacerts response: from the issuing CA to the root, then rollover certificates.',
  ),
});

const CaPage = titled('CaDetails', 'A CA, with what the certificates of its chain contain.', {
  ...CaRecord.properties,
  contents: Type.Array(CertificateContent),
});

const Responder = Type.Object({
  subject: Text('RFC 4514.'),
  serial: Type.String(),
  not_after: Timestamp(),
  days_left: Integer('Whole days until not_after; negative after expiry.'),
});

const Revocation = titled('CaRevocation', 'CRL and OCSP of a CA.', {
  ca: Text('The label of the CA whose key signs.'),
  published_by: nullable(
    oneOf(['estuary', 'ca'], {
      description:
        '`estuary`: the publication listener. `ca`: the remote CA publishes. null: nobody publishes, because `[publication]` is disabled.',
    }),
  ),
  urls: described('The address of the publication listener, as in certificates.', {
    crl: Type.Array(Type.String()),
    ocsp: Type.Array(Type.String()),
  }),
  crl: nullable(
    described('The latest CRL; null: this key has not signed a CRL yet.', {
      number: Type.Integer(),
      this_update: Timestamp(),
      next_update: Timestamp(),
      bytes: Type.Integer(),
      entries: Integer('The number of certificates in the CRL.'),
      state: oneOf(['current', 'overdue', 'expired'], {
        description:
          '`overdue`: a newer CRL is due. `expired`: its nextUpdate has passed, so relying parties reject it.',
      }),
    }),
  ),
  ocsp: nullable(
    described(
      'null: this server does not serve OCSP for this CA. `responder`: the certificate of the delegated responder; null if the CA key signs. After its expiry, the CA key signs.',
      {
        signed_by: oneOf(['ca', 'responder'], { description: 'The key that signs the responses now.' }),
        responder: nullable(Responder),
      },
    ),
  ),
});

/** `/admin/cas…` */
export function registerCas(app: AdminApp, deps: AdminDependencies, monitor: HealthMonitor): void {
  route(app, {
    call: 'GET /admin/cas',
    access: ['operator'],
    summary: 'List the configured CAs and their further labels',
    query: listQuery,
    response: {
      200: listOf(CaRecord, 'The order of the configuration, with further labels after their CA; `desc` reverses it.'),
    },
    handler: async (request) => {
      const { items, ...rest } = pageOf(deps.cas.all, request.query);
      return { items: await Promise.all(items.map((ca) => caRecord(ca, deps, monitor))), ...rest };
    },
  });

  route(app, {
    call: 'GET /admin/cas/:label',
    access: ['operator'],
    summary: 'Get one CA',
    response: { 200: CaPage },
    handler: async (request) => {
      const ca = deps.cas.find(request.params.label);
      return { ...(await caRecord(ca, deps, monitor)), contents: certificateContents(ca.driver.chain()) };
    },
  });

  route(app, {
    call: 'GET /admin/cas/:label/revocation',
    access: ['operator'],
    summary: 'Get the CRL and the OCSP responder of a CA',
    description: 'For a further label: those of its CA.',
    response: { 200: Revocation },
    handler: (request) => revocationOf(deps.cas.find(request.params.label).issuer, deps),
  });

  route(app, {
    call: 'POST /admin/cas/:label/crl',
    access: ['operator'],
    summary: 'Sign a CRL now',
    description: 'The new CRL has all revocations until now. Of a further label, the CA signs its CRL.',
    response: { 200: Revocation },
    errors: [409],
    handler: async (request) => {
      const { issuer: ca } = deps.cas.find(request.params.label);
      const signer = ca.driver.statusSigner;
      if (signer === undefined)
        throw conflict('CRL_SIGNED_ELSEWHERE', `CA ${ca.label} is elsewhere and signs its CRLs there`);
      await deps.store.audit([accessEvent(request, 'success', `CRL of ${ca.label}`)]);
      await deps.crls.signNow(ca, signer);
      return revocationOf(ca, deps);
    },
  });
}

async function caRecord(ca: Ca, { now }: AdminDependencies, monitor: HealthMonitor): Promise<Static<typeof CaRecord>> {
  const { health } = await monitor.ca(ca.issuer);
  const chain = ca.driver.chain();
  // The certificate of a remote CA may still be unknown.
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

const DAY = 86_400_000;

async function revocationOf(
  ca: Ca,
  { settings: { publication }, now, crls }: AdminDependencies,
): Promise<Static<typeof Revocation>> {
  const { label, driver } = ca;
  const signer = driver.statusSigner;
  if (signer === undefined)
    return { ca: label, published_by: 'ca', urls: { crl: [], ocsp: [] }, crl: null, ocsp: null };
  const { crl, ocsp } = publicationUrls(publication, label) ?? { crl: [], ocsp: [] };
  const list = await crls.latest(ca);
  const at = now();
  return {
    ca: label,
    published_by: publication.enabled ? 'estuary' : null,
    urls: { crl: [...crl], ocsp: [...ocsp] },
    crl:
      list === undefined
        ? null
        : {
            number: list.number,
            this_update: formatTimestamp(list.thisUpdate),
            next_update: formatTimestamp(list.next_update),
            bytes: list.der.length,
            entries: list.entries,
            state: crlAge(list, at, publication.enabled),
          },
    ocsp: publication.enabled ? ocspOf(signer.delegate?.certificate, at) : null,
  };
}

function ocspOf(responder: Certificate | undefined, now: number): Static<typeof Revocation>['ocsp'] {
  if (responder === undefined) return { signed_by: 'ca', responder: null };
  const [from, until] = [responder.notBefore.getTime(), responder.notAfter.getTime()];
  return {
    signed_by: from <= now && now < until ? 'responder' : 'ca',
    responder: {
      subject: formatName(responder.subject),
      serial: responder.serialNumber,
      not_after: formatTimestamp(until),
      days_left: Math.floor((until - now) / DAY),
    },
  };
}
