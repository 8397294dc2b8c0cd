import { enrolment, type EnrolmentDependencies } from './enrolment.ts';
import type { EstOperation } from './operation.ts';

/** `POST simpleenroll` (RFC 7030 §4.2.1): a certificate for whoever authenticates by mTLS, GSSAPI or OTP. */
export function simpleenroll(dependencies: EnrolmentDependencies): EstOperation {
  return enrolment('simpleenroll', { enabled: true, challenges: true }, dependencies);
}
