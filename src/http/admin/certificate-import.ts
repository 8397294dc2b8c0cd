/** `POST /admin/certificates`: imports a certificate that the store does not know, so that it can be revoked. */
import { Type } from '@fastify/type-provider-typebox';
import { importCertificate } from '../../administration/import-certificate.ts';
import { callOf } from './access.ts';
import { CertificatePage, certificatePage } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { route } from './route.ts';
import { strictObject } from './schemas.ts';

const Import = strictObject(
  {
    pem: Type.String({ minLength: 1, description: 'One certificate.' }),
    ca: Type.String({
      minLength: 1,
      description: 'The label of the CA that signed it, or the further label that it will belong to.',
    }),
  },
  { title: 'CertificateImport', description: 'A certificate from a backup, or from before a migration.' },
);

export function registerCertificateImport(app: AdminApp, deps: AdminDependencies): void {
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
