/** A correct EST server with its CA, for tests that change one of its responses. */
import { createHash } from 'node:crypto';
import type { Csr } from '../../src/pki/pkcs10/csr.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { dns, extKeyUsage, keyUsage, makeCa, makeCertificate, subjectAltName, type Issuer } from './certificates.ts';
import {
  csrOf,
  sendCertificates,
  sendStatus,
  startStandIn,
  type StandIn,
  type StandInRequest,
} from './est-stand-in.ts';

export type Answers = Readonly<Record<string, (request: StandInRequest) => unknown>>;

/** What an issued certificate has in place of what was requested. */
type Changes = Partial<Omit<Parameters<typeof makeCertificate>[0], 'issuer' | 'keys'>>;

export interface EstCa {
  readonly ca: Issuer;
  /** SHA-256, hex. */
  readonly fingerprint: string;
  /** DER. */
  issue(csr: Csr, changes?: Changes): Promise<Buffer>;
  /** @param answers by operation, in place of those of a server that behaves */
  start(answers?: Answers, options?: Parameters<typeof startStandIn>[2]): Promise<StandIn>;
}

export async function makeEstCa(name = 'CN=EST CA'): Promise<EstCa> {
  const ca = await makeCa(name);
  const server = await makeCertificate({
    subject: 'CN=server',
    issuer: ca,
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
  });
  const issue: EstCa['issue'] = async (csr, changes) => {
    const { der } = await makeCertificate({
      subject: formatName(csr.subject),
      issuer: ca,
      keys: { publicKey: csr.publicKey.keyObject, privateKey: ca.keys.privateKey },
      notBefore: Date.now() - 60_000,
      notAfter: Date.now() + 10 * 86_400_000,
      extensions: [
        keyUsage('digitalSignature'),
        extKeyUsage(OID.clientAuth),
        ...csr.extensions.filter(({ oid }) => oid === OID.subjectAltName),
      ],
      ...changes,
    });
    return der;
  };
  return {
    ca,
    fingerprint: createHash('sha256').update(ca.der).digest('hex'),
    issue,
    start: (answers = {}, options = {}) =>
      startStandIn(
        server,
        async (request) => {
          const own = answers[request.operation];
          if (own !== undefined) return own(request);
          if (request.operation === 'cacerts') return sendCertificates(request, [ca.der]);
          if (request.operation === 'csrattrs') return sendStatus(request, 204);
          return mayEnroll(request) && sendCertificates(request, [await issue(csrOf(request))]);
        },
        options,
      ),
  };
}

/** Whether a request has credentials; one without gets its challenge. */
export function mayEnroll(request: StandInRequest): boolean {
  if (request.headers.authorization !== undefined || request.clientCertificate !== undefined) return true;
  sendStatus(request, 401, { 'WWW-Authenticate': 'Basic realm="est"' });
  return false;
}
