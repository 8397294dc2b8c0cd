/** `GET /admin/certificates/{serial}/chain`: what a certificate stands under. */
import { Type } from '@fastify/type-provider-typebox';
import type { Ca } from '../../ca/router.ts';
import { encodePem } from '../../pki/der/pem.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { isIssuedBy } from '../../pki/x509/name-matching.ts';
import { caQuery } from './certificate-filter.ts';
import { findCertificate } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, strictObject } from './schemas.ts';

export function registerCertificateChain(app: AdminApp, deps: AdminDependencies): void {
  app.get(
    '/admin/certificates/:serial/chain',
    {
      config: { access: ['ra', 'auditor'] },
      schema: {
        summary: 'The certificates above a certificate',
        tags: ['certificates'],
        params: Type.Object({ serial: Type.String({ description: 'Hex.' }) }),
        querystring: strictObject({ ca: caQuery }),
        response: {
          200: Type.Object(
            {
              chain: Type.Array(Type.String(), {
                description:
                  'PEM: whose key signed it first, up to the root, as far as this server has them; empty where its CA is no longer configured.',
              }),
            },
            { title: 'CertificateChain', description: 'What a certificate stands under.' },
          ),
          ...errorResponses(400, 404),
        },
      },
    },
    async (request) => {
      const row = await findCertificate(deps.store, request.params.serial, request.query.ca);
      const ca = deps.cas.issuers.find(({ label }) => label === row.ca);
      // A restored store may know it from the audit log alone.
      if (ca === undefined || row.der.length === 0) return { chain: [] };
      const path = await pathFrom(parseCertificate(row.der), ca);
      return { chain: path.map(({ der }) => encodePem('CERTIFICATE', der)) };
    },
  );
}

/** By names and signatures: after a rollover a certificate may stand under the CA's former key. */
async function pathFrom(certificate: Certificate, ca: Ca): Promise<readonly Certificate[]> {
  const known = [...ca.certificates, ...ca.renewalIssuers];
  const path: Certificate[] = [];
  for (let below = certificate; ;) {
    const above = await issuerOf(
      below,
      known.filter((one) => one !== below && !path.includes(one)),
    );
    if (above === undefined) return path;
    path.push(above);
    if (await isIssuedBy(above, above)) return path;
    below = above;
  }
}

async function issuerOf(certificate: Certificate, among: readonly Certificate[]): Promise<Certificate | undefined> {
  for (const one of among) if (await isIssuedBy(certificate, one)) return one;
  return undefined;
}
