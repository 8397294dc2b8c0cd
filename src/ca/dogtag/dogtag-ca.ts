/** A CA in Dogtag PKI, which Estuary uses as an agent (docs/guides/dogtag.md). */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, EstuaryError, failed, isUnavailable } from '../../errors.ts';
import type { ProfileConfig } from '../../config/schema/profile.ts';
import type { CmsSigner } from '../../pki/cms/cms.ts';
import { type Certificate, parseCertificate, isIssuedBy, readableCertificates } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import type {
  CaDependency,
  CaDriver,
  ForwardedRequest,
  HealthReport,
  IssuanceRequest,
  IssuanceResult,
  KeyArchive,
  PollResult,
  PreparedIssuance,
  RemoteQueue,
  RevocationRequest,
} from '../driver.ts';
import { type IssuedProfile, issuedProblem, isKey } from '../remote/issued.ts';
import { caUnavailable, checkSubject } from '../remote/upstream.ts';
import { type RequestInfo, textOf, getJson } from './answers.ts';
import type { RemoteChain } from './chain.ts';
import type { CmcService } from './cmc.ts';
import {
  directoryAnswers,
  fetchCertificate,
  findRequestInfo,
  profileInputs,
  type ProfileInputs,
  submitRequest,
} from './enroll.ts';
import type { Kra } from './kra.ts';
import type { Replicas } from './replicas.ts';
import { findRequest, revokeCertificate } from './certificates.ts';

/** The parts of `[ca.profile]` that its certificates are compared with. */
export type AskedProfile = IssuedProfile & Pick<ProfileConfig, 'max_validity_days'>;

/** Milliseconds that the server's start waits for the replicas. */
const PATIENCE = 2000;

interface DogtagCaOptions {
  readonly replicas: Replicas;
  readonly chain: RemoteChain;
  /** Receives the requests of full CMC messages. */
  readonly cmc: CmcService;
  /** Archives server-generated keys. */
  readonly kra: Kra | undefined;
  /** Dogtag's enrollment profile. */
  readonly profile: string;
  /** Requirements of `[ca.profile]`. */
  readonly asked: AskedProfile;
  /** Class of the profile input that takes the request; undefined: read from the profile. */
  readonly inputClass: string | undefined;
  /** Milliseconds until an unknown request counts as lost. */
  readonly lostAfter: number;
  /** Milliseconds per operation. */
  readonly timeout: number;
  readonly retryAfter: number;
  readonly now: () => number;
}

export class DogtagCa implements CaDriver {
  readonly #options: DogtagCaOptions;
  #inputs: ProfileInputs | undefined;
  readonly remoteQueue: RemoteQueue;
  readonly takesCsr = true;
  readonly dependency: CaDependency = { name: 'dogtag', health: () => this.health() };
  readonly keyArchive?: KeyArchive;
  /** The agent signs CMC responses, unless `[cmc]` configures a signer. */
  readonly cmsSigner: CmsSigner;
  readonly cmsCertificates: readonly Buffer[];

  constructor(options: DogtagCaOptions) {
    this.#options = options;
    if (options.kra !== undefined) this.keyArchive = options.kra;
    this.cmsSigner = options.cmc.signer;
    this.cmsCertificates = [options.cmc.certificate];
    this.remoteQueue = {
      settled: 2 * options.timeout,
      lostAfter: options.lostAfter,
      issuesAtOnce: () => issuesAtOnce(options.replicas, options.profile),
      poll: (reference, request) => this.#poll(reference, request),
      find: (sought) => findRequest(options.replicas, sought, requestorOf(sought.request_id)),
      verify: (certificate, request) => this.#verify(parseCertificate(certificate), request),
    };
  }

  /** Checks the replicas and reads the chain. */
  async start(): Promise<void> {
    const { replicas, kra, chain } = this.#options;
    await chain.recall();
    // The server's start does not wait for a replica that hangs.
    const started = Promise.all([replicas.start(), kra?.start()]);
    await Promise.race([started, sleep(PATIENCE, undefined, { ref: false })]);
  }

  unconfirmed(): readonly Certificate[] {
    return this.#options.chain.unconfirmed;
  }

  chain(): readonly Buffer[] {
    return this.#options.chain.der;
  }

  async issue(request: IssuanceRequest): Promise<IssuanceResult> {
    return (await this.prepare(request)).issue();
  }

  async prepare(request: IssuanceRequest): Promise<PreparedIssuance> {
    const { csr, forwarded } = request;
    if (forwarded !== undefined) {
      this.#issuer();
      return { serial: null, issue: () => this.#forward(request, forwarded) };
    }
    checkSubject(csr, request.subject);
    this.#issuer();
    const inputs = await this.#profileInputs();
    return { serial: null, issue: () => this.#issue(request, csr.der, inputs) };
  }

  /** The expected issuer. @throws EstuaryError 503 while it is unknown or a different CA */
  #issuer(): Certificate {
    const { chain, retryAfter } = this.#options;
    const { certificate } = chain;
    if (certificate === undefined || chain.problem !== undefined || this.#options.replicas.health().health === 'down')
      throw caUnavailable(
        chain.problem ?? this.#options.replicas.health().detail ?? 'the CA certificate is unknown',
        retryAfter,
      );
    return certificate;
  }

  async #profileInputs(): Promise<ProfileInputs> {
    const { replicas, profile, inputClass } = this.#options;
    if (inputClass !== undefined) return { requestClass: inputClass, requestorClass: 'submitterInfoInputImpl' };
    this.#inputs ??= await profileInputs(replicas, profile);
    return this.#inputs;
  }

  async #issue(request: IssuanceRequest, csr: Buffer, inputs: ProfileInputs): Promise<IssuanceResult> {
    const { replicas, profile } = this.#options;
    const requestor = requestorOf(request.request_id);
    const info = await submitRequest(replicas, { profile, inputs, type: 'pkcs10', request: csr, requestor });
    try {
      return await this.#outcome(info, request);
    } catch (error) {
      // The request is complete, but its certificate could not be read now. A later poll reads it.
      if (isUnavailable(error)) return { status: 'pending', reference: info.id };
      throw error;
    }
  }

  async #forward(request: IssuanceRequest, forwarded: ForwardedRequest): Promise<IssuanceResult> {
    const result = await this.#options.cmc.submit(forwarded);
    if (result.status === 'rejected') return result;
    const certificates = readableCertificates(result.certificates);
    const own =
      certificates.find((certificate) => isKey(certificate, request.spki)) ?? certificates.find(({ isCa }) => !isCa);
    if (own === undefined) throw failed('CA_CERTIFICATE_MISSING', 'The CA issued no certificate.');
    await this.#verify(own, request);
    return { status: 'issued', certificate: own.der };
  }

  async #poll(reference: string, request: IssuanceRequest): Promise<PollResult> {
    const { replicas } = this.#options;
    const info = await findRequestInfo(replicas, reference);
    if (info !== undefined) return this.#outcome(info, request);
    // Dogtag also answers "not found" while its directory is down.
    return (await directoryAnswers(replicas)) ? { status: 'unknown' } : { status: 'pending', reference };
  }

  async #outcome(info: RequestInfo, request: IssuanceRequest): Promise<IssuanceResult> {
    switch (info.status) {
      case 'complete':
        return { status: 'issued', certificate: await this.#certificate(info, request) };
      case 'rejected':
        return { status: 'rejected', reason: info.message ?? 'The CA rejected the request.' };
      case 'canceled':
        return { status: 'canceled' };
      default:
        return { status: 'pending', reference: info.id };
    }
  }

  async #certificate(info: RequestInfo, request: IssuanceRequest): Promise<Buffer> {
    if (info.certId === undefined)
      throw failed('CA_CERTIFICATE_MISSING', 'The CA issued no certificate.', {
        detail: `request ${info.id} is complete without a certificate`,
      });
    const certificate = await fetchCertificate(this.#options.replicas, info.certId);
    await this.#verify(certificate, request);
    return certificate.der;
  }

  /** @throws EstuaryError 500 `CA_ISSUED_OTHER`: the certificate is not delivered, and is revoked if this CA issued it */
  async #verify(certificate: Certificate, request: IssuanceRequest): Promise<void> {
    const { asked, now } = this.#options;
    // A serial number of another CA may be that of a certificate in use.
    const isOurs = await isIssuedBy(certificate, this.#issuer());
    const problem =
      issuedProblem(certificate, request, asked, now()) ??
      (isOurs ? undefined : `"${formatName(certificate.issuer)}" issued it, or a CA with the same name`) ??
      validityProblem(certificate, asked);
    if (problem === undefined) return;
    throw failed('CA_ISSUED_OTHER', 'The CA issued a certificate that differs from the request.', {
      detail: `certificate ${certificate.serialNumber}: ${problem}; ${isOurs ? await this.#withdraw(certificate) : 'left as it is'}`,
    });
  }

  /** Revokes the certificate and describes the outcome. */
  async #withdraw({ serialNumber }: Certificate): Promise<string> {
    try {
      await this.revoke({ serial: serialNumber, reason: 'privilegeWithdrawn' });
      return 'revoked at the CA';
    } catch (error) {
      return `could not be revoked: ${describe(error)}`;
    }
  }

  readonly cannotHold = true;

  revoke(request: RevocationRequest): Promise<void> {
    return revokeCertificate(this.#options.replicas, request);
  }

  health(): Promise<HealthReport> {
    const { chain, replicas } = this.#options;
    if (chain.problem !== undefined) return Promise.resolve({ health: 'down', detail: chain.problem });
    const kra = this.#options.kra?.health();
    const ca = replicas.health();
    if (ca.health !== 'ok' || kra === undefined || kra.health === 'ok') return Promise.resolve(ca);
    return Promise.resolve({ health: 'degraded', detail: `key archive: ${kra.detail ?? kra.health}` });
  }

  close(): Promise<void> {
    this.#options.replicas.close();
    this.#options.kra?.close();
    return Promise.resolve();
  }
}

const DAY = 86_400_000;
/** A CA may count days by a calendar with daylight saving time. */
const CALENDAR_SLACK = 3_600_000;

function validityProblem({ notBefore, notAfter }: Certificate, { max_validity_days }: AskedProfile) {
  const validity = notAfter.getTime() - notBefore.getTime();
  if (validity > 0 && validity <= max_validity_days * DAY + CALENDAR_SLACK) return undefined;
  return `it is valid from ${notBefore.toISOString()} to ${notAfter.toISOString()}, beyond ca.profile.max_validity_days (${max_validity_days})`;
}

/** Marks our requests at the CA; its agents see it. */
const requestorOf = (requestId: string): string => `estuary ${requestId}`;

/**
 * Whether a profile decides immediately: profiles with an authenticator do; others queue requests for agents. Not
 * cached, since an administrator may change it at any time.
 * @throws EstuaryError 500 `CA_PROFILE_UNREADABLE` if the agent lacks permission; 503
 */
export async function issuesAtOnce(replicas: Replicas, profile: string): Promise<boolean> {
  try {
    return await replicas.read((replica) =>
      replica.session(async (call) => {
        // Profiles are visible only in a logged-in session.
        await getJson(call, '/ca/rest/account/login');
        const shown = await getJson(call, `/ca/rest/profiles/${profile}`);
        const authenticator = textOf(shown, 'authenticatorId') ?? '';
        return authenticator.trim() !== '';
      }),
    );
  } catch (error) {
    if (!(error instanceof EstuaryError) || isUnavailable(error)) throw error;
    throw failed('CA_PROFILE_UNREADABLE', 'The CA does not return the configured profile.', {
      detail: `the profile ${profile}: ${error.detail ?? error.message}`,
      cause: error,
    });
  }
}
