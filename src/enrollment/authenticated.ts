/** Stage after authentication: the sender, and the names that it may request. */
import type { AuditEvent } from '../audit/event.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { EstAuthenticator } from '../auth/est-authenticator.ts';
import type { FailureRecords } from '../auth/failure-records.ts';
import {
  type CmcIdentity,
  type Identity,
  type MtlsIdentity,
  type PasswordCredentials,
  tokenOf,
  type UsedToken,
} from '../auth/identity.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { AuthContext, CredentialRules } from '../auth/plugin.ts';
import type { Ca } from '../ca/router.ts';
import { EstuaryError, unauthorized } from '../errors.ts';
import { OID } from '../pki/der/oids.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { type Certificate, isSameCertificate } from '../pki/x509/certificate.ts';
import { isOfCa, type NameRight, notIssuedHere } from './names.ts';
import { Proven } from './proven.ts';
import { recognitionOf, recognizeSent } from './recognition.ts';
import type { Repeats } from './repeats.ts';
import { bodyOf, type EstEnrollment, type Received, type ReceivedByEst, type RequestBase } from './request.ts';

/** Which credentials a CA's label accepts for enrollments; shared by simpleenroll, serverkeygen and fullcmc. */

/** @param exempt certificates that are not filtered: those of configured registration authorities */
export function credentialRules(ca: Ca, exempt: readonly Certificate[] = []): CredentialRules {
  return {
    methods: ca.config.auth.methods,
    accepts: async (path) =>
      exempt.some((certificate) => path[0] !== undefined && isSameCertificate(certificate, path[0])) ||
      (await ca.clientIssuers.accept(path)),
    isOfThisServer: (path) => ca.clientIssuers.isOfThisServer(path),
  };
}

/** The authentication rules of each EST operation. */
interface Rules {
  readonly certificateOnly: boolean;
  /** Accepted seconds since expiry of a client certificate. */
  readonly expiredGraceSeconds: (ca: Ca) => number;
  /** @throws EstuaryError 401 */
  readonly right: (identity: Identity) => NameRight;
}

const DAY_SECONDS = 86_400;

const ENROLMENT: Rules = {
  certificateOnly: false,
  expiredGraceSeconds: () => 0,
  right: (identity) => ({ kind: 'enrollment', identity }),
};

const RULES: Readonly<Record<EstEnrollment, Rules>> = {
  simpleenroll: ENROLMENT,
  serverkeygen: ENROLMENT,
  simplereenroll: {
    certificateOnly: true,
    expiredGraceSeconds: (ca) => ca.profile.renewal_grace_days * DAY_SECONDS,
    right: (identity) => {
      if (identity.method !== 'mtls') throw unauthorized('CERTIFICATE_REQUIRED', 'client certificate required');
      return { kind: 'renewal', certificate: identity.certificate };
    },
  },
};

const contextOf = (operation: EstEnrollment, ca: Ca, now: number) => ({
  certificateOnly: RULES[operation].certificateOnly,
  expiredGraceSeconds: RULES[operation].expiredGraceSeconds(ca),
  operation,
  caLabel: ca.label,
  awaitsChain: ca.awaitsChain.bind(ca),
  now,
});

/** Of a simplereenroll that repeats no other. */
export const renewalContext = (ca: Ca, now: number): AuthContext => ({
  ...contextOf('simplereenroll', ca, now),
  recognition: () => undefined,
});

interface EstAuthentication {
  readonly authenticator: EstAuthenticator;
  readonly otp: Pick<OtpService, 'refuseUnusable' | 'refuseRepeat'>;
  readonly failures: Pick<FailureRecords, 'record'>;
  readonly repeats: Pick<Repeats, 'usedTokenPermits'>;
  readonly now: () => number;
}

/** Created only by authentication. */
export class Authenticated {
  readonly request: RequestBase;
  readonly linking: PopLinking;
  readonly #right: NameRight;

  private constructor(
    { linking, ...received }: Received,
    identity: Identity,
    events: readonly AuditEvent[],
    right: NameRight,
    dryRun = false,
  ) {
    const { requestId, operation, ca, address } = received;
    this.request = { requestId, operation, ca, address, identity, events, ...(dryRun ? { dryRun } : {}) };
    this.linking = linking;
    this.#right = right;
  }

  get right(): NameRight {
    return this.#right;
  }

  /**
   * Authenticates an EST request. The events of a success are committed with the request's outcome.
   * @throws EstuaryError 401, 500, 503; also 401 for a used-up password, unless it comes with the request that it was
   * used for
   */
  static async byEst(
    received: ReceivedByEst,
    { authenticator, otp, failures, repeats, now }: EstAuthentication,
  ): Promise<Authenticated> {
    const { operation, ca, presented } = received;
    const rules = RULES[operation];
    const events: AuditEvent[] = [];
    const context = {
      ...contextOf(operation, ca, now()),
      ...(operation === 'simplereenroll'
        ? { recognition: (identity: MtlsIdentity) => recognitionOfSent(received, identity) }
        : { rules: credentialRules(ca) }),
      events,
    };
    const otpChallenge = (): Promise<PasswordCredentials | undefined> => challengeOf(received);
    const identity = await authenticator.authenticate({ ...presented, otpChallenge }, context);
    const token = tokenOf(identity);
    if (token?.usable === false) {
      const attempt = { ...context, address: received.address };
      const permitted = await usedTokenPermits(received, identity, token, repeats);
      if (permitted === 'unknown') await otp.refuseUnusable(identity, attempt);
      if (permitted === 'refused') await otp.refuseRepeat(identity, attempt, failures);
    }
    return new Authenticated(received, identity, events, rules.right(identity));
  }

  /** By a message of CMC, which its service has authenticated (docs/guides/cmc.md) and audited. */
  static bySender(received: Received, identity: CmcIdentity, right: NameRight): Authenticated {
    return new Authenticated(received, identity, [], right);
  }

  /** As if an EST operation had authenticated this sender, for a dry run ({@link RequestBase.dryRun}). */
  static forDryRun(received: Received & { readonly operation: EstEnrollment }, identity: Identity): Authenticated {
    return new Authenticated(received, identity, [], RULES[received.operation].right(identity), true);
  }
}

/**
 * The one-time password in a request. An unreadable request has none; reading the body reports the error. @throws
 * EstuaryError 400
 */
async function challengeOf(received: ReceivedByEst): Promise<PasswordCredentials | undefined> {
  const csr = readOr(() => parseCsrWithoutProof(bodyOf(received)), undefined);
  if (csr?.otpChallenge === undefined) return undefined;
  // The cheap checks precede the password check.
  await Proven.byEst(received);
  const [name] = csr.subject.rdns.flat().filter(({ type }) => type === OID.commonName);
  return { username: name?.text ?? '', password: csr.otpChallenge };
}

function readOr<T, U>(read: () => T, otherwise: U): T | U {
  try {
    return read();
  } catch (error) {
    if (error instanceof EstuaryError && error.kind === 'bad-request') return otherwise;
    throw error;
  }
}

/** undefined: the request is unreadable. */
const recognitionOfSent = (received: ReceivedByEst, identity: MtlsIdentity): string | undefined =>
  readOr(() => recognitionOf({ ...received, identity, events: [] }, recognizeSent(received)), undefined);

/** Whether a used-up token comes with the request that it was used for; malformed data never does. */
async function usedTokenPermits(
  received: ReceivedByEst,
  identity: Identity,
  token: UsedToken,
  repeats: Pick<Repeats, 'usedTokenPermits'>,
): Promise<'answered' | 'refused' | 'unknown'> {
  const sent = readOr(() => recognizeSent(received), undefined);
  if (sent === undefined) return 'unknown';
  return repeats.usedTokenPermits({ ...received, identity, events: [] }, token, sent);
}

/**
 * Checks a requester before its request is read: a certificate to renew must be the addressed CA's, by issuer name and
 * signature.
 * @throws EstuaryError 403 `NOT_ISSUED_HERE`
 */
export async function checkRequester({ request: { ca }, right }: Authenticated): Promise<void> {
  if (right.kind === 'renewal' && !(await isOfCa(ca, right.certificate))) throw notIssuedHere();
}
