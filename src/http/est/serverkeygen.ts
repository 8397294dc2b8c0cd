import { enrolment, type EnrolmentDependencies } from './enrolment.ts';
import type { EstOperation } from './operation.ts';

export interface ServerKeyGenDependencies extends EnrolmentDependencies {
  /** `est.serverkeygen`. */
  readonly serverKeyGen: boolean;
}

/** `POST serverkeygen` (RFC 7030 §4.4): a certificate and the private key that the server made for it. */
export function serverkeygen(dependencies: ServerKeyGenDependencies): EstOperation {
  return enrolment('serverkeygen', { enabled: dependencies.serverKeyGen, challenges: true }, dependencies);
}
