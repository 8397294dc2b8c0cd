/** By what a request is known again when it is sent once more: never by its bytes, which a channel binding changes (docs/guides/approval.md). */
import { hash } from 'node:crypto';
import { copiedExtensions } from '../ca/profile.ts';
import type { ProfileConfig } from '../config/schema.ts';
import { OID } from '../pki/der/oids.ts';
import { parseCsr, parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { changeSubject, type CsrContent } from '../pki/pkcs10/csr-content.ts';
import { comparableGeneralNames } from '../pki/x509/general-name.ts';
import { comparableName, withoutEmpty } from '../pki/x509/name.ts';
import { spkiHash } from '../pki/x509/public-key.ts';
import { certifiedSubject } from './names.ts';
import { bodyOf, type ReceivedByEst, type RequestBase } from './request.ts';

/** The compared content, in addition to requester, CA and operation. */
export interface Recognized extends Pick<CsrContent, 'subject' | 'subjectAltNames' | 'extensions'> {
  /** The requester's own key, or the requested form of a generated key. */
  readonly key: string;
}

/**
 * A request for its own key is recognized by that key. One for a generated key is not, since the CSR's key may change
 * between polls; but its protection counts, so that approval of an encrypted key never yields a plain one.
 */
export function recognize(csr: CsrContent, kind: 'own' | 'generated'): Recognized {
  if (kind === 'own') return { ...csr, key: spkiHash(csr.publicKey) };
  const has = (type: string): boolean => csr.attributes.some(({ oid }) => oid === type);
  if (has(OID.decryptKeyIdentifier)) return { ...csr, key: 'generated, symmetric' };
  return { ...csr, key: has(OID.asymmetricDecryptKeyIdentifier) ? 'generated, asymmetric' : 'generated' };
}

/** The content of an unproven request. @throws EstuaryError 400 */
export function recognizeSent(received: ReceivedByEst): Recognized {
  const der = bodyOf(received);
  return received.operation === 'serverkeygen'
    ? recognize(parseCsrWithoutProof(der), 'generated')
    : recognize(withRequestedNames(parseCsr(der)), 'own');
}

/** As {@link decideNames} reads them. */
const withRequestedNames = (csr: CsrContent): CsrContent =>
  changeSubject({ ...csr, subject: withoutEmpty(csr.subject) });

/** Equal for the same request of the same requester. */
export function recognitionOf({ ca, operation, identity }: RequestBase, sent: Recognized): string {
  const parts = [
    identity.requester,
    ca.label,
    operation,
    sent.key,
    comparableName(certifiedSubject(identity, sent)),
    comparableGeneralNames(sent.subjectAltNames),
    ...copiedParts(ca.profile, sent),
  ];
  return hash('sha256', JSON.stringify(parts), 'hex');
}

/** Copied values count: an approval of one value is no approval of another. Undefined if nothing is copied. */
function copiedParts(profile: ProfileConfig, { extensions }: Recognized): readonly string[] {
  return copiedExtensions(profile, extensions)
    .map(({ oid, value }) => `${oid} ${value.toString('hex')}`)
    .sort();
}
