/** The stage after the sender has been found out: who asks, and for which names that entitles it to ask. */
import type { AuditEvent } from '../audit/event.ts';
import type { PopLinking } from '../auth/channel-binding.ts';
import type { EstAuthenticator } from '../auth/est-authenticator.ts';
import type { FailureRecords } from '../auth/failure-records.ts';
import {
  type CmcIdentity,
  type Identity,
  type PasswordCredentials,
  tokenOf,
  type UsedToken,
} from '../auth/identity.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { CredentialRules } from '../auth/plugin.ts';
import type { Ca } from '../ca/router.ts';
import { EstuaryError, unauthorized } from '../errors.ts';
import { OID } from '../pki/der/oids.ts';
import { parseCsrWithoutProof } from '../pki/pkcs10/csr.ts';
import { type Certificate, isSameCertificate } from '../pki/x509/certificate.ts';
import { isOfCa, type NameRight, notIssuedHere } from './names.ts';
import { Proven } from './proven.ts';
import { recognizeSent } from './recognition.ts';
import type { Repeats } from './repeats.ts';
import { bodyOf, type EstEnrollment, type Received, type ReceivedByEst, type RequestBase } from './request.ts';

/** Which credentials count at a CA's label for enrollments: one rule for simpleenroll, serverkeygen and fullcmc. */

/** @param exempt certificates that are not filtered: those of registration authorities that the configuration names */
export function credentialRules(ca: Ca, exempt: readonly Certificate[] = []): CredentialRules {
  return {
    methods: ca.config.auth.methods,
    accepts: async (path) =>
      exempt.some((one) => path[0] !== undefined && isSameCertificate(one, path[0])) ||
      (await ca.clientIssuers.accept(path)),
    isOfThisServer: (path) => ca.clientIssuers.isOfThisServer(path),
  };
}

/** What becomes of a sender of each of EST's operations. */
interface Rules {
  readonly certificateOnly: boolean;
  /** A client certificate may have expired this long ago. */
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

interface EstAuthentication {
  readonly authenticator: EstAuthenticator;
  readonly otp: Pick<OtpService, 'refuseUnusable' | 'refuseRepeat'>;
  readonly failures: Pick<FailureRecords, 'record'>;
  readonly repeats: Pick<Repeats, 'standing'>;
  readonly now: () => number;
}

/** Made where a sender was authenticated, and nowhere else. */
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

  /** Which names this sender may ask for. */
  get right(): NameRight {
    return this.#right;
  }

  /**
   * By what a request to EST's own operations presents. The events of a success are committed with what comes of the request.
   *
   * @throws EstuaryError 401, 500, 503; also 401 for a password without a use left, unless it comes with the request that it was used for
   */
  static async byEst(
    received: ReceivedByEst,
    { authenticator, otp, failures, repeats, now }: EstAuthentication,
  ): Promise<Authenticated> {
    const { operation, ca, presented } = received;
    const rules = RULES[operation];
    const events: AuditEvent[] = [];
    const context = {
      certificateOnly: rules.certificateOnly,
      expiredGraceSeconds: rules.expiredGraceSeconds(ca),
      ...(operation === 'simplereenroll' ? {} : { rules: credentialRules(ca) }),
      operation,
      caLabel: ca.label,
      now: now(),
      events,
    };
    const otpChallenge = (): Promise<PasswordCredentials | undefined> => challengeOf(received);
    const identity = await authenticator.authenticate({ ...presented, otpChallenge }, context);
    const token = tokenOf(identity);
    if (token?.usable === false) {
      const attempt = { ...context, address: received.address };
      const standing = await standingOf(received, identity, token, repeats);
      if (standing === 'unknown') await otp.refuseUnusable(identity, attempt);
      if (standing === 'refused') await otp.refuseRepeat(identity, attempt, failures);
    }
    return new Authenticated(received, identity, events, rules.right(identity));
  }

  /** By a message of CMC, which its service has authenticated (docs/guides/cmc.md) and audited. */
  static bySender(received: Received, identity: CmcIdentity, right: NameRight): Authenticated {
    return new Authenticated(received, identity, [], right);
  }

  /** As if this sender had been authenticated by one of EST's own operations: for what has no effects ({@link RequestBase.dryRun}). */
  static forDryRun(received: Received & { readonly operation: EstEnrollment }, identity: Identity): Authenticated {
    return new Authenticated(received, identity, [], RULES[received.operation].right(identity), true);
  }
}

/** The one-time password in a request; what cannot be read holds none, and why is told where the body is looked at. @throws EstuaryError 400 */
async function challengeOf(received: ReceivedByEst): Promise<PasswordCredentials | undefined> {
  const csr = readOr(() => parseCsrWithoutProof(bodyOf(received)), undefined);
  if (csr?.otpChallenge === undefined) return undefined;
  // The cheap checks come before a password is looked at.
  if (received.operation !== 'serverkeygen') await Proven.byEst(received);
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

/** Whether a token without a use left comes with the request that it was used for; bad bytes are no such request. */
async function standingOf(
  received: ReceivedByEst,
  identity: Identity,
  token: UsedToken,
  repeats: Pick<Repeats, 'standing'>,
): Promise<'answered' | 'refused' | 'unknown'> {
  const sent = readOr(() => recognizeSent(received), undefined);
  if (sent === undefined) return 'unknown';
  return repeats.standing({ ...received, identity, events: [] }, token, sent);
}

/**
 * What can be said of a requester before its request is read: a certificate to be renewed is the addressed CA's, by its issuer's
 * name and signature.
 *
 * @throws EstuaryError 403 `NOT_ISSUED_HERE`
 */
export async function checkRequester({ request: { ca }, right }: Authenticated): Promise<void> {
  if (right.kind === 'renewal' && !(await isOfCa(ca, right.certificate))) throw notIssuedHere();
}
