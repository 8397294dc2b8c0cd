import { authoriseEnroll } from '../../enrollment/authorise.ts';
import {
  authenticate,
  denialsAudited,
  enrollAndAnswer,
  readCsr,
  recogniseCsr,
  type EnrollDependencies,
} from './enroll.ts';
import type { EstOperation } from './operation.ts';

/** `POST simpleenroll` (RFC 7030 §4.2.1): a certificate for whoever authenticates by mTLS, GSSAPI or OTP. */
export function simpleenroll(dependencies: EnrollDependencies): EstOperation {
  return {
    name: 'simpleenroll',
    method: 'POST',
    requestType: 'application/pkcs10',
    enabled: true,
    challenges: true,
    handle: async (request) => {
      const requester = await authenticate(dependencies, 'simpleenroll', request, {
        certificateOnly: false,
        expiredGraceSeconds: 0,
        recognise: recogniseCsr,
      });
      return denialsAudited(dependencies, 'simpleenroll', request, requester, async () => {
        const sent = await readCsr(request.body);
        const csr = authoriseEnroll(request.ca, requester.identity, sent, dependencies.clientIdBinding);
        return enrollAndAnswer(dependencies, 'simpleenroll', request, requester, csr);
      });
    },
  };
}
