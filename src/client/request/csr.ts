/** The requests that a client sends: made once, kept, and bound to the connection that each copy goes over. */
import { DerReader, children, contextConstructed, Tag, utf8String, printableString } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { attribute, extensionRequest, signCsr } from '../../pki/pkcs10/csr-builder.ts';
import { parseName } from '../../pki/x509/name.ts';
import { defaultSignatureAlgorithm, parseSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';
import type { RequestPlan } from './demands.ts';
import type { PrivateKey } from './private-key.ts';

/** @param attributes DER, more of them. @returns DER, without a channel binding. @throws ClientError `KEY_UNUSABLE` */
export async function makeCsr(plan: RequestPlan, key: PrivateKey, attributes: readonly Buffer[] = []): Promise<Buffer> {
  const { spki, keyType } = key.publicKey;
  const algorithm = plan.signatureAlgorithm ?? defaultSignatureAlgorithm(keyType);
  if (algorithm === undefined)
    throw new ClientError('local', 'KEY_UNUSABLE', `a key of the type ${keyType} cannot sign a request`);
  return signCsr({
    subject: plan.subject,
    spki,
    attributes: [...extensionRequest(plan.extensions), ...attributes],
    algorithm,
    sign: (info) => key.sign(algorithm, info),
  });
}

/** The same request with the channel binding of a connection in it (RFC 7030 §3.5, RFC 7894 §3.3). */
export async function bindCsr(
  csr: Buffer,
  key: PrivateKey,
  binding: 'challengePassword' | 'estIdentityLinking',
  value: Buffer,
): Promise<Buffer> {
  const request = DerReader.of(csr, 'CertificationRequest');
  const info = request.enter(Tag.SEQUENCE, 'certificationRequestInfo');
  const algorithm = parseSignatureAlgorithm(request.next(Tag.SEQUENCE, 'signatureAlgorithm').raw);
  info.next(Tag.INTEGER, 'version');
  const subject = parseName(info.next(Tag.SEQUENCE, 'subject').raw);
  const spki = info.next(Tag.SEQUENCE, 'subjectPKInfo').raw;
  const attributes = children(info.next(contextConstructed(0), 'attributes').value).map(({ raw }) => raw);
  const text = value.toString('base64');
  // RFC 2985 §5.4.1 prefers PrintableString, which holds all of base64; RFC 7894 has UTF8String.
  const linked =
    binding === 'challengePassword'
      ? attribute(OID.challengePassword, printableString(text))
      : attribute(OID.estIdentityLinking, utf8String(text));
  return signCsr({
    subject,
    spki,
    attributes: [...attributes, linked],
    algorithm,
    sign: (data) => key.sign(algorithm, data),
  });
}
