/** `POST /admin/certificates`: takes in a certificate that the store does not know, so that it can be revoked. */
import { Type } from '@fastify/type-provider-typebox';
import type { Ca } from '../../ca/router.ts';
import { auditedCertificate, certificateRow, issuedNames } from '../../enrollment/certificate-row.ts';
import { badRequest, conflict, type EstuaryError } from '../../errors.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { isIssuedBy, namesMatch } from '../../pki/x509/name-matching.ts';
import { isRecordOf } from '../../store/certificate-issuer.ts';
import { accessEvent, actor } from './access.ts';
import { CertificatePage, certificatePage } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { errorResponses, strictObject } from './schemas.ts';

const Import = strictObject(
  {
    pem: Type.String({ minLength: 1, description: 'One certificate.' }),
    ca: Type.String({
      minLength: 1,
      description: 'The label of the CA that signed it, or the further label that it is to be of.',
    }),
  },
  { title: 'CertificateImport', description: 'A certificate from a backup, or from before a migration.' },
);

/** `method` in the record of a certificate that was taken in; its `requester` is who did it. */
const METHOD = 'import';

export function registerCertificateImport(app: AdminApp, deps: AdminDependencies): void {
  app.post(
    '/admin/certificates',
    {
      config: { access: [] },
      schema: {
        summary: 'Take in a certificate that the store does not know, so that it can be revoked',
        description:
          'Only one that this CA signed. Its record names the administrator as `requester`, `import` as `method`, and this call as `request_id`.',
        tags: ['certificates'],
        querystring: strictObject({}),
        body: Import,
        response: { 201: CertificatePage, ...errorResponses(400, 409, 413, 415) },
      },
    },
    async (request, reply) => {
      const { pem, ca: label } = request.body;
      const ca = deps.cas.all.find((one) => one.label === label);
      if (ca === undefined) throw badRequest('FIELD_INVALID', 'ca must be the label of a configured CA');
      const certificate = readOne(pem);
      const issuer = await issuerOf(ca, certificate);
      if (issuer === undefined)
        throw badRequest('CERTIFICATE_FOREIGN', 'pem must be a certificate that this CA signed');
      for (const row of await deps.store.getCertificates(certificate.serialNumber))
        if (row.der.length > 0 && (await isRecordOf(row, { certificate, issuer }))) throw known();
      const { subject: requester, ...from } = actor(request);
      const row = certificateRow(certificate.der, {
        ...ca.issuedUnder,
        requester,
        method: METHOD,
        request_id: from.request_id,
      });
      const { serial } = row;
      const imported = await deps.store.importCertificate(row, [
        accessEvent(request, 'success', `certificate ${serial} of ${ca.label} taken in`),
        {
          type: 'certificate.imported',
          outcome: 'success',
          subject: requester,
          ...from,
          method: METHOD,
          ...auditedCertificate(row),
          ...issuedNames(row),
        },
      ]);
      if (imported === 'known') throw known();
      const [stored = row] = await deps.store.getCertificates(row.serial, row.ca);
      return reply.code(201).send(certificatePage(stored, deps.now()));
    },
  );
}

/** @throws EstuaryError 400 `FIELD_INVALID` */
function readOne(pem: string): Certificate {
  try {
    const [block, ...more] = parsePem(pem);
    if (block?.label === 'CERTIFICATE' && more.length === 0) return parseCertificate(block.der);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw badRequest('FIELD_INVALID', 'pem must be one certificate in PEM');
}

const known = (): EstuaryError =>
  conflict('CERTIFICATE_KNOWN', 'the store has a certificate of this CA with this serial number');

/** The CA, with its present key or one from before a rollover; not for the CA's own certificates. @throws EstuaryError 503 */
async function issuerOf(ca: Ca, certificate: Certificate): Promise<Certificate | undefined> {
  if (namesMatch(certificate.subject, ca.certificate.subject)) return undefined;
  const own = [...ca.certificates, ...ca.renewalIssuers].filter(({ subject }) =>
    namesMatch(subject, ca.certificate.subject),
  );
  for (const issuer of own) if (await isIssuedBy(certificate, issuer)) return issuer;
  return undefined;
}
