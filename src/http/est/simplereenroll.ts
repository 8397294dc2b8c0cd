import { enrolment, type EnrolmentDependencies } from './enrolment.ts';
import type { EstOperation } from './operation.ts';

/** `POST simplereenroll` (RFC 7030 §4.2.2): renews, or rekeys, the certificate that the client authenticates with. */
export function simplereenroll(dependencies: EnrolmentDependencies): EstOperation {
  return enrolment('simplereenroll', { enabled: true, challenges: false }, dependencies);
}
