import { authoriseReenroll, authoriseRenewalIssuer } from '../../enrollment/authorise.ts';
import { unauthorized } from '../../errors.ts';
import {
  authenticate,
  denialsAudited,
  enrollAndAnswer,
  readCsr,
  recogniseCsr,
  type EnrollDependencies,
} from './enroll.ts';
import type { EstOperation } from './operation.ts';

const DAY_SECONDS = 86_400;

/** `POST simplereenroll` (RFC 7030 §4.2.2): renews, or rekeys, the certificate that the client authenticates with. */
export function simplereenroll(dependencies: EnrollDependencies): EstOperation {
  return {
    name: 'simplereenroll',
    method: 'POST',
    requestType: 'application/pkcs10',
    enabled: true,
    challenges: false,
    handle: async (request) => {
      const { ca } = request;
      const requester = await authenticate(dependencies, 'simplereenroll', request, {
        certificateOnly: true,
        expiredGraceSeconds: ca.profile.renewal_grace_days * DAY_SECONDS,
        recognise: recogniseCsr,
      });
      const { identity } = requester;
      if (identity.method !== 'mtls') throw unauthorized('CERTIFICATE_REQUIRED', 'client certificate required');
      return denialsAudited(dependencies, 'simplereenroll', request, requester, async () => {
        await authoriseRenewalIssuer(ca, identity);
        const csr = authoriseReenroll(ca, identity, await readCsr(request.body));
        return enrollAndAnswer(dependencies, 'simplereenroll', request, requester, csr);
      });
    },
  };
}
