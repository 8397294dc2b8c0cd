/** Messages signed with the key for which they request a certificate (RFC 5272 §3.2). */
import type { SignedData } from '../cms/cms.ts';
import { unlessMalformed } from '../der/der.ts';
import { findExtension, parseSubjectKeyIdentifier } from '../x509/extensions.ts';
import { OID } from '../der/oids.ts';
import { CURRENT_MESSAGE } from './body-part.ts';
import { CmcError } from './cmc-error.ts';
import type { CmcCertificateRequest } from './tagged-request.ts';

/**
 * The request whose key signed the message, or undefined if the signer has a certificate. The signer's
 * subjectKeyIdentifier equals the request's Subject Key Identifier extension. The caller verifies the signature.
 * @throws CmcError `malformed` (badMessageCheck) if there are further signers or two requests claim the identifier
 */
export function requestOfSigner(
  { signerInfos }: Pick<SignedData, 'signerInfos'>,
  requests: readonly CmcCertificateRequest[],
): CmcCertificateRequest | undefined {
  const named = signerInfos.flatMap(({ sid }) => (sid.kind === 'subjectKeyIdentifier' ? [sid.keyIdentifier] : []));
  const [request, ...more] = requests.filter((one) => {
    const identifier = requestedKeyIdentifier(one);
    return identifier !== undefined && named.some((sid) => sid.equals(identifier));
  });
  if (request === undefined) return undefined;
  if (more.length > 0) throw wrong('Two requests have the key identifier of the signer.');
  if (signerInfos.length > 1)
    throw wrong('A message that is signed with a requested key must have no other signature.');
  return request;
}

const wrong = (message: string): CmcError => new CmcError('malformed', [CURRENT_MESSAGE], message, 'badMessageCheck');

function requestedKeyIdentifier({ extensions }: CmcCertificateRequest): Buffer | undefined {
  const extension = findExtension(extensions, OID.subjectKeyIdentifier);
  return extension && unlessMalformed(() => parseSubjectKeyIdentifier(extension.value), undefined);
}
