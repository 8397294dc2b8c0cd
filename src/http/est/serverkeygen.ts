import { authoriseEnroll } from '../../enrollment/authorise.ts';
import type { KeyGenerator } from '../../enrollment/key-generation.ts';
import type { KeyProtectionSettings } from '../../enrollment/key-encryption-keys.ts';
import { checkKeyForm, protectKey, type KeyPart } from '../../enrollment/key-part.ts';
import { chooseProtection } from '../../enrollment/key-protection.ts';
import { recogniseServerKey } from '../../enrollment/request.ts';
import { unavailable, type EstuaryError } from '../../errors.ts';
import { parseCsrWithoutProof } from '../../pki/pkcs10/csr.ts';
import { certsOnly } from '../../pki/cms/pkcs7.ts';
import { decodeBody } from './codec.ts';
import {
  authenticate,
  denialsAudited,
  linkingTo,
  withNegotiate,
  type EnrollDependencies,
  type Requester,
} from './enroll.ts';
import { multipart } from './multipart.ts';
import { CERTS_ONLY, pendingAnswer, type EstAnswer, type EstOperation, type EstRequest } from './operation.ts';

export interface ServerKeyGenDependencies extends EnrollDependencies {
  /** `est.serverkeygen`. */
  readonly serverKeyGen: boolean;
  readonly keyGenerator: KeyGenerator;
  /** As it is now: a reload replaces it. */
  readonly keyProtection: () => KeyProtectionSettings;
}

/** `POST serverkeygen` (RFC 7030 §4.4): a certificate and the private key that the server made for it. */
export function serverkeygen(dependencies: ServerKeyGenDependencies): EstOperation {
  return {
    name: 'serverkeygen',
    method: 'POST',
    requestType: 'application/pkcs10',
    enabled: dependencies.serverKeyGen,
    challenges: true,
    handle: async (request) => {
      const requester = await authenticate(dependencies, 'serverkeygen', request, {
        certificateOnly: false,
        expiredGraceSeconds: 0,
        recognise: (der) => recogniseServerKey(parseCsrWithoutProof(der)),
      });
      return denialsAudited(dependencies, 'serverkeygen', request, requester, () =>
        generateAndAnswer(dependencies, request, requester),
      );
    },
  };
}

/**
 * Everything that a request can be refused for comes first; the key is generated and protected before an OTP use is taken,
 * or by the poll that finds the request approved. How the key is protected, that poll says: it is the one that gets it.
 */
async function generateAndAnswer(
  dependencies: ServerKeyGenDependencies,
  request: EstRequest,
  requester: Requester,
): Promise<EstAnswer> {
  const { ca } = request;
  const { identity, events } = requester;
  const sent = parseCsrWithoutProof(decodeBody(request.body));
  const csr = authoriseEnroll(ca, identity, sent, dependencies.clientIdBinding);
  const protection = chooseProtection(dependencies.keyProtection(), csr, identity, dependencies.now());
  checkKeyForm(ca, protection);
  const parts: KeyPart[] = [];
  try {
    const outcome = await dependencies.enrollment.enrollGenerated({
      requestId: request.requestId,
      operation: 'serverkeygen',
      ca,
      identity,
      address: request.presented.address,
      csr,
      events,
      linking: linkingTo(request),
      generateKey: (keyType, use) =>
        dependencies.keyGenerator.withKey(keyType, async (key) => {
          const used = await use(key);
          parts.push(await protectKey(ca, key.pkcs8, protection, new Date(dependencies.now())));
          if (request.isGone()) throw clientGone();
          return used;
        }),
    });
    const answer =
      outcome.status === 'pending'
        ? pendingAnswer(dependencies.retryAfter)
        : multipartAnswer([{ contentType: CERTS_ONLY, der: certsOnly([outcome.certificate]) }, ...parts], request);
    return withNegotiate(answer, identity);
  } finally {
    for (const { der } of parts) der.fill(0);
  }
}

/** The answer with the key is the only one: without a taker, there is to be no certificate, and no use is taken. */
const clientGone = (): EstuaryError =>
  unavailable('CLIENT_GONE', 'The client closed its connection before its key was ready.');

/** Certificate first, key second (contract §3); clients tell the parts by their Content-Type. */
function multipartAnswer(parts: readonly KeyPart[], { lineLength }: EstRequest): EstAnswer {
  const { contentType, body } = multipart(parts, lineLength);
  return { status: 200, headers: { 'Content-Type': contentType }, body };
}
