/** The OCSP responder that a CA delegates (RFC 6960 §2.6, §4.2.2.2): a key of its own, certified by the CA for that alone. */
import type { OcspDelegate, Signer } from '../driver.ts';
import { explicit, sequence } from '../../pki/der/der.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { STATUS, VerifiedSigner } from './signing.ts';
import { InputError } from '../../pki/input-error.ts';

/** @throws InputError when the key is not the certificate's. */
export function ocspDelegate(certificate: Certificate, signer: Signer): OcspDelegate {
  if (!signer.spki.equals(certificate.spki)) throw new InputError("the private key is not the certificate's");
  const key = new VerifiedSigner(signer, certificate.publicKey);
  // Relying parties know the CA, not its responder: the certificate goes along.
  const certificates = explicit(0, sequence(certificate.der));
  return {
    certificate,
    sign: (responseData) => key.sign(responseData, STATUS, certificates),
  };
}
