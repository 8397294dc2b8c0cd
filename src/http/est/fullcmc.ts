import type { EstAuthenticator } from '../../auth/est-authenticator.ts';
import type { MtlsIdentity } from '../../auth/identity.ts';
import type { Ca } from '../../ca/router.ts';
import { type CmcParties, type Responder, responderFor } from '../../cmc/sender.ts';
import type { CmcServer } from '../../cmc/server.ts';
import { credentialRules } from '../../enrollment/authenticated.ts';
import { countsAt } from '../../config/rules/names.ts';
import { errorWith, isRefusal, type EstuaryError } from '../../errors.ts';
import { CMC_LABELS, decodeBody, encodeBody } from './codec.ts';
import { derAnswer, type EstOperation, type EstRequest } from './operation.ts';

export interface FullCmcDependencies {
  readonly authenticator: EstAuthenticator;
  /** `est.fullcmc`. */
  readonly fullCmc: boolean;
  /** `est.fullcmc_require_mtls`. */
  readonly fullCmcRequireMtls: boolean;
  readonly cmcServer: CmcServer;
  /** `[cmc]` in force. */
  readonly cmcParties: () => CmcParties;
  readonly now: () => number;
}

const CMC_RESPONSE = 'application/pkcs7-mime; smime-type=CMC-response';

/** `POST fullcmc` (RFC 7030 §4.3): a full PKI request of CMC. */
export function fullcmc(dependencies: FullCmcDependencies): EstOperation {
  return {
    name: 'fullcmc',
    method: 'POST',
    requestType: 'application/pkcs7-mime',
    enabled: dependencies.fullCmc,
    challenges: false,
    checkOffered: (ca) => void responderOf(dependencies, ca),
    handle: async (request) => {
      const { ca, requestId, presented, lineLength } = request;
      const { peerCertificate, peerIntermediates } = presented;
      const responder = responderOf(dependencies, ca);
      const tls = await tlsIdentity(dependencies, request);
      const body = decodeBody(request.body, CMC_LABELS);
      const {
        httpStatus: status,
        der,
        retryAfter,
      } = await dependencies.cmcServer.answer({
        requestId,
        ca,
        address: presented.address,
        now: dependencies.now(),
        tls,
        presented: peerCertificate === undefined ? [] : [peerCertificate, ...peerIntermediates],
        body,
        responder,
        channelBinding: () => request.channelBinding(),
      });
      const { headers, body: text } = derAnswer(CMC_RESPONSE, encodeBody(der, lineLength));
      const later = retryAfter === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) };
      return { status, headers: { ...headers, ...later }, body: text };
    },
  };
}

/** The signer of responses. @throws EstuaryError 501 */
function responderOf({ cmcParties }: FullCmcDependencies, ca: Ca): Responder {
  const responder = responderFor(cmcParties(), ca);
  if (responder === undefined)
    throw errorWith(501, 'FULLCMC_NO_SIGNER', 'This CA cannot sign CMC responses, so it does not accept CMC requests.');
  return responder;
}

/**
 * The identity in the connection's client certificate, or why it does not count: then the message may authenticate its
 * sender. If certificates are not a method of the label, one can still be required, but it authenticates nobody.
 * @throws EstuaryError 401 or 403 if a certificate is required; 500 or 503
 */
async function tlsIdentity(
  { authenticator, fullCmcRequireMtls, cmcParties, now }: FullCmcDependencies,
  { ca, presented }: EstRequest,
): Promise<MtlsIdentity | EstuaryError | undefined> {
  const counts = countsAt(ca.config, 'mtls');
  if (!fullCmcRequireMtls && (presented.peerCertificate === undefined || !counts)) return undefined;
  const context = {
    operation: 'fullcmc',
    caLabel: ca.label,
    certificateOnly: true,
    expiredGraceSeconds: 0,
    awaitsChain: ca.awaitsChain.bind(ca),
    now: now(),
    rules: { ...credentialRules(ca, cmcParties().raCertificates), methods: undefined },
  };
  try {
    const identity = await authenticator.authenticate(presented, context);
    return identity.method === 'mtls' && counts ? identity : undefined;
  } catch (error) {
    if (fullCmcRequireMtls || !isRefusal(error)) throw error;
    return error;
  }
}
