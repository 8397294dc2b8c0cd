/** `POST /admin/check`: a dry run of a request. */
import { type Static, Type } from '@fastify/type-provider-typebox';
import { approvalsNeeded, findRequest } from '../../administration/decide.ts';
import { parsePrincipal } from '../../auth/gssapi/principal.ts';
import type { AssumedSender, DryRunRequest, Verdict } from '../../enrollment/dry-run.ts';
import { badRequest, conflict, EstuaryError } from '../../errors.ts';
import { parsePem } from '../../pki/der/pem.ts';
import type { CsrContent } from '../../pki/pkcs10/csr-content.ts';
import { parseCsrWithoutProof } from '../../pki/pkcs10/csr.ts';
import { parsePemCertificates } from '../../pki/x509/certificate.ts';
import { stateOf } from '../../store/request-state.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { findLabel, limited, type LimitedStore } from './access.ts';
import { route } from './route.ts';
import { Integer, nullable, oneOf, requestBody, strictObject, Text, Texts, Timestamp, titled } from './schemas.ts';
import { formatOptionalTimestamp } from '../../timestamp.ts';
import { readable } from './values.ts';

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 65_536, description }));

const As = strictObject(
  {
    client_id: text('The client_id of a one-time password.'),
    principal: text('A Kerberos principal with its realm.'),
    certificate: text('PEM: the client certificate, then its intermediate certificates.'),
    device: text('The ID of a registered device, with any method of authentication.'),
  },
  { description: 'The assumed requester: exactly one of these.' },
);

const Question = requestBody('CheckQuestion', 'A request to simpleenroll.', {
  ca: Type.String({ minLength: 1, maxLength: 255, description: "A CA's label." }),
  csr: Type.String({ minLength: 1, description: 'A PKCS #10, PEM.' }),
  as: As,
});

const Answer = titled('CheckAnswer', 'What would happen.', {
  verdict: oneOf(['issue', 'queue', 'refuse'], {
    description: '`queue`: the request would wait for an administrator, or for an agent of the remote CA.',
  }),
  code: Type.Optional(Text('For `refuse`: the code of the error.')),
  message: Type.Optional(Text('For `refuse`: the text that the client would get.')),
  subject: Text('RFC 4514: the subject of the certificate; for `refuse`, the subject of the request.'),
  sans: Texts('The subjectAltNames, likewise.'),
  not_after: nullable(
    Timestamp('The expiry date that the certificate would have; null if none would be issued or a remote CA decides.'),
  ),
});

const RequestCheck = titled('RequestCheck', 'What would happen.', {
  ...Answer.properties,
  approvals: Type.Object({
    given: Integer('Administrators who have approved the request.'),
    needed: Integer('Administrators who must approve the request.'),
  }),
});

export function registerCheck(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'POST /admin/check',
    access: ['ra'],
    labels: 'records',
    changes: false,
    summary: 'Check what would happen to a request, without effect',
    description:
      'Runs the checks of simpleenroll up to the reservation. Nothing is stored or signed, no password is used or looked up, and an external service is called with `dry_run`. The channel binding of the CSR is not checked.',
    tag: 'requests',
    body: Question,
    response: { 200: Answer },
    handler: async (request) => {
      const { ca: label, csr: pem, as } = request.body;
      const ca = findLabel(request, deps.cas, label);
      const { der, csr } = readCsr(pem);
      const { id: requestId, clientAddress: address } = request;
      const sender = await readSender(as, limited(deps, request).store);
      return checkAnswer(await deps.dryRun.run({ requestId, address, ca, der, csr, as: sender }));
    },
  });

  route(app, {
    call: 'GET /admin/requests/:id/check',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Check what an approval of a request would lead to, without effect',
    description:
      'Runs the checks that follow an approval, up to the reservation. 409 `VERDICT_UNKNOWN`: they depend on what the requester presents at its next poll. ' +
      '409 `REQUEST_DECIDED` or `DECIDED_AT_CA`: the request cannot be decided here.',
    response: { 200: RequestCheck },
    errors: [409],
    handler: async (request) => {
      const { params, id: requestId, clientAddress: address } = request;
      const row = await findRequest(limited(deps, request), params.id);
      const state = stateOf(row);
      if (state === 'pending at the CA')
        throw conflict('DECIDED_AT_CA', 'this request is pending at the CA; its agents decide it');
      if (state !== 'pending' && state !== 'approved')
        throw conflict('REQUEST_DECIDED', 'this request is no longer pending');
      const ca = deps.cas.all.find(({ label }) => label === row.ca);
      if (ca === undefined) throw conflict('VERDICT_UNKNOWN', 'the CA of the request is no longer configured');
      const verdict = await deps.dryRun.queued({ requestId, address, ca, row });
      return {
        ...checkAnswer(verdict),
        approvals: { given: row.decided_by.length, needed: approvalsNeeded(deps, row) },
      };
    },
  });
}

function readCsr(pem: string): Pick<DryRunRequest, 'der' | 'csr'> {
  const [block, ...more] = blocksOf('csr', pem).filter(({ label }) => /^(NEW )?CERTIFICATE REQUEST$/.test(label));
  if (block === undefined || more.length > 0)
    throw badRequest('FIELD_INVALID', 'csr must be one PKCS #10 request in PEM');
  return { der: block.der, csr: namesOf(block.der) };
}

/** The readable names; the verdict covers other problems. @throws EstuaryError 400 if it is not a request */
function namesOf(der: Buffer): CsrContent | undefined {
  try {
    return parseCsrWithoutProof(der);
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    if (error.code === 'CSR_MALFORMED') throw badRequest('FIELD_INVALID', `csr: ${error.message}`);
    return undefined;
  }
}

async function readSender(as: Static<typeof As>, store: Pick<LimitedStore, 'getDevices'>): Promise<AssumedSender> {
  const { client_id, principal, certificate, device } = as;
  if (Object.keys(as).length !== 1)
    throw badRequest('FIELD_INVALID', 'as must have one of client_id, principal, certificate and device');
  if (principal !== undefined) {
    const read = () => parsePrincipal(principal);
    return { kind: 'principal', principal: readable('as.principal', 'a Kerberos principal with its realm', read) };
  }
  if (certificate !== undefined) return readCertificates(certificate);
  if (device !== undefined) {
    const id = readName('as.device', device);
    return { kind: 'device', id, known: (await store.getDevices(id)).length > 0 };
  }
  return { kind: 'client_id', clientId: readName('as.client_id', client_id ?? '') };
}

function readName(field: string, name: string): string {
  if (name.length > 255 || name.trim() === '' || /\p{Cc}/u.test(name))
    throw badRequest('FIELD_INVALID', `${field} must be 1 to 255 characters, not blank and without control characters`);
  return name;
}

function readCertificates(pem: string): AssumedSender {
  const [first, ...further] = readable('as.certificate', 'PEM', () => parsePemCertificates(pem));
  if (first === undefined) throw badRequest('FIELD_INVALID', 'as.certificate must be a certificate in PEM');
  return { kind: 'certificate', der: first.der, further: further.map(({ der }) => der) };
}

const blocksOf = (field: string, pem: string) => readable(field, 'PEM', () => parsePem(pem));

const checkAnswer = ({ notAfter, ...verdict }: Verdict): Static<typeof Answer> => ({
  ...verdict,
  not_after: formatOptionalTimestamp(notAfter ?? null),
});
