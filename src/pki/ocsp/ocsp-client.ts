/** Asks for the status of a certificate, as a relying party (RFC 6960 §2.1, RFC 5019 §2). */
import { createHash } from 'node:crypto';
import {
  children,
  contextConstructed,
  contextPrimitive,
  type DerElement,
  DerError,
  DerReader,
  NULL,
  octetString,
  oid,
  parseDer,
  readBitStringOctets,
  readFields,
  readTime,
  sequence,
  Tag,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { type Certificate, parseCertificate, serialInteger } from '../x509/certificate.ts';
import { keyOctets } from '../x509/public-key.ts';
import { parseSignatureAlgorithm, verifySignature } from '../x509/signature-algorithms.ts';
import { ocspDelegateProblems, type OcspStatus } from './ocsp.ts';

const sha1 = (bytes: Buffer): Buffer => octetString(createHash('sha1').update(bytes).digest());

/** With SHA-1, which every responder knows (RFC 5019 §2.1.1). */
const certIdOf = ({ serialNumber }: Certificate, issuer: Certificate): Buffer =>
  sequence(
    sequence(oid(OID.sha1), NULL),
    sha1(issuer.subject.der),
    sha1(keyOctets(issuer.spki)),
    serialInteger(serialNumber),
  );

/** DER OCSPRequest. */
export const ocspRequestFor = (certificate: Certificate, issuer: Certificate): Buffer =>
  sequence(sequence(sequence(sequence(certIdOf(certificate, issuer)))));

/** Tolerated difference of the clocks, ms. */
const TOLERATED = 300_000;

/**
 * The status of a certificate; undefined: the response is not about it, is not current, or is not signed by the issuer or its responder.
 * @throws DerError
 */
export async function readOcspStatus(
  der: Buffer,
  certificate: Certificate,
  issuer: Certificate,
  now: number,
): Promise<OcspStatus['status'] | undefined> {
  const basic = basicResponse(der);
  if (basic === undefined) return undefined;
  const [data, algorithm, signature, certificates] = children(basic);
  if (data === undefined || algorithm === undefined || signature === undefined)
    throw new DerError('BasicOCSPResponse: incomplete');
  const added = certificates === undefined ? [] : children(parseDer(certificates.value, Tag.SEQUENCE, 'certs').value);
  const isBySigner = ({ publicKey }: Certificate): Promise<boolean> =>
    verifySignature(parseSignatureAlgorithm(algorithm.raw), publicKey, data.raw, readBitStringOctets(signature));
  if (!(await isBySigner(issuer)) && !(await isDelegated(added, issuer, now, isBySigner))) return undefined;
  const fields = children(data.value).filter(({ tag }) => tag === Tag.SEQUENCE);
  const wanted = certIdOf(certificate, issuer);
  const single = children(fields[0]?.value ?? Buffer.alloc(0)).find(
    ({ value }) => children(value)[0]?.raw.equals(wanted) === true,
  );
  return single && readFields(single, 'SingleResponse', (fields) => readSingle(fields, now));
}

/** The content of a BasicOCSPResponse; undefined: the responder failed. */
function basicResponse(der: Buffer): Buffer | undefined {
  const outer = DerReader.of(der, 'OCSPResponse');
  outer.next(Tag.ENUMERATED, 'responseStatus');
  const bytes = outer.optional(contextConstructed(0), 'responseBytes');
  if (bytes === undefined) return undefined;
  return readFields(parseDer(bytes.value, Tag.SEQUENCE, 'ResponseBytes'), 'ResponseBytes', (fields) => {
    if (fields.oid('responseType') !== OID.ocspBasic) throw new DerError('ResponseBytes.responseType: unknown');
    return parseDer(fields.octets('response'), Tag.SEQUENCE, 'BasicOCSPResponse').value;
  });
}

async function isDelegated(
  added: readonly DerElement[],
  issuer: Certificate,
  now: number,
  isBySigner: (certificate: Certificate) => Promise<boolean>,
): Promise<boolean> {
  for (const { raw } of added) {
    const delegate = parseCertificate(raw);
    const isCurrent = delegate.notBefore.getTime() <= now && now <= delegate.notAfter.getTime();
    if (isCurrent && (await isBySigner(delegate))) return (await ocspDelegateProblems(delegate, issuer)).length === 0;
  }
  return false;
}

function readSingle(single: DerReader, now: number): OcspStatus['status'] | undefined {
  single.next(Tag.SEQUENCE, 'certID');
  const { tag } = single.next(undefined, 'certStatus');
  const thisUpdate = readTime(single.next(Tag.GENERALIZED_TIME, 'thisUpdate')).getTime();
  const next = single.optional(contextConstructed(0), 'nextUpdate');
  single.optional(contextConstructed(1), 'singleExtensions');
  const until = next === undefined ? Infinity : readTime(parseDer(next.value)).getTime();
  if (thisUpdate > now + TOLERATED || until < now - TOLERATED) return undefined;
  if (tag === contextPrimitive(0)) return 'good';
  return tag === contextConstructed(1) ? 'revoked' : 'unknown';
}
