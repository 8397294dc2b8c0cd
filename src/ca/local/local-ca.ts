/** A local certificate authority over a {@link Signer}: builds, lints and signs. */
import type { ProfileConfig } from '../../config/schema/profile.ts';
import { badRequest, failed } from '../../errors.ts';
import {
  type Authority,
  buildTbs,
  constantExtensions,
  expiry,
  type ExtensionProfile,
  notValid,
  ProfileExtensions,
  type PublicationUrls,
  randomSerial,
  type TbsConstants,
  validityPeriod,
  type ValidityProfile,
} from './tbs.ts';
import { issuedContent, type Certificate } from '../../pki/x509/certificate.ts';
import { issuerAndSerialNumber, type CmsSigner } from '../../pki/cms/cms.ts';
import { DerError } from '../../pki/der/der.ts';
import type { KeyUsage } from '../../pki/x509/extensions.ts';
import { encodeNameConstraints } from '../../pki/x509/name-constraints.ts';
import { OID, oidByName } from '../../pki/der/oids.ts';
import { formatName } from '../../pki/x509/name.ts';
import { parsePublicKey, subjectKeyIdentifier, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import type {
  CaDependency,
  CaDriver,
  HealthReport,
  IssuanceRequest,
  IssuanceResult,
  OcspDelegate,
  PreparedIssuance,
  Signer,
  ServerCertificateRequest,
  StatusSigner,
} from '../driver.ts';
import { CA_KEY_USAGE, keyUsageFor } from './key-usage.ts';
import { lint, type LintContext, type LintFinding } from './lint.ts';
import { STATUS, VerifiedSigner } from './signing.ts';
import { InputError } from '../../pki/input-error.ts';

/** The parts of `[ca.profile]` that determine the certificate. */
export type IssuanceProfile = ExtensionProfile &
  ValidityProfile &
  Pick<ProfileConfig, 'max_validity_days' | 'key_usage' | 'extended_key_usage' | 'certificate_authority'> & {
    readonly san?: Pick<ProfileConfig['san'], 'dns_underscore'>;
  };

interface LocalCaOptions {
  /** The CA's certificate, for the signer's key. */
  readonly certificate: Certificate;
  /** The certificates above it, root last. */
  readonly issuers: readonly Certificate[];
  /** OldWithOld, OldWithNew, NewWithOld (RFC 4210 §4.4). */
  readonly rollover?: readonly Certificate[];
  readonly signer: Signer;
  /** Starts the signer, if needed. */
  readonly start?: (() => Promise<void>) | undefined;
  /** Signs OCSP responses instead of the CA. */
  readonly delegate?: OcspDelegate | undefined;
  readonly profile: IssuanceProfile;
  /** Written into every certificate. */
  readonly publication?: PublicationUrls | undefined;
  readonly now: () => number;
}

const CERTIFICATE = 'the certificate';
/** Validity of this service's own certificate: long enough to notice that renewal fails. */
const SERVER_CERTIFICATE_DAYS = 90;
const NOWHERE: PublicationUrls = { crl: [], ocsp: [], caIssuers: [] };

export class LocalCa implements CaDriver {
  readonly certificate: Certificate;
  readonly signer: Signer;
  readonly statusSigner: StatusSigner;
  readonly dependency?: CaDependency;
  readonly #chain: readonly Buffer[];
  readonly #constants: TbsConstants;
  /** For this service's own certificate. */
  readonly #serverConstants: TbsConstants;
  readonly #extensions: ProfileExtensions;
  readonly #authority: Authority | undefined;
  readonly #key: VerifiedSigner;
  readonly #options: LocalCaOptions;

  /** @throws InputError if the signer's key does not match the certificate, or the profile names an unknown purpose */
  constructor(options: LocalCaOptions) {
    const { certificate, issuers, rollover = [], signer, delegate, profile, publication } = options;
    if (!signer.spki.equals(certificate.spki))
      throw new InputError('the private key does not belong to the CA certificate');
    this.certificate = certificate;
    this.signer = signer;
    if (signer.dependency !== undefined) this.dependency = signer.dependency;
    this.#key = new VerifiedSigner(signer, certificate.publicKey);
    this.statusSigner = {
      signatureAlgorithm: signer.signatureAlgorithm,
      sign: (tbs) => this.#key.sign(tbs, STATUS),
      concurrency: signer.concurrency,
      delegate,
    };
    this.#chain = [certificate, ...issuers, ...rollover].map(({ der }) => der);
    this.#options = options;
    this.#extensions = new ProfileExtensions(profile);
    this.#authority = profile.certificate_authority && authority(profile.certificate_authority);
    const constants = (
      purposes: readonly string[],
      further: readonly Buffer[],
      forCas: Authority | undefined,
    ): TbsConstants => ({
      signatureAlgorithm: signer.signatureAlgorithm,
      issuer: certificate.subject.der,
      extensions: [
        ...constantExtensions(
          certificate.subjectKeyIdentifier ?? subjectKeyIdentifier(certificate.spki),
          purposes,
          publication ?? NOWHERE,
          forCas,
        ),
        ...further,
      ],
    });
    // A CA's extKeyUsage would limit the certificates below it.
    const purposes = this.#authority === undefined ? profile.extended_key_usage.map(purpose) : [];
    this.#constants = constants(purposes, this.#extensions.constant, this.#authority);
    // RFC 7030 §3.6.1: id-kp-cmcRA identifies an EST server.
    this.#serverConstants = constants([OID.serverAuth, OID.cmcRA], [], undefined);
  }

  /** The signer remains when the profile or the chain changes. */
  get backend(): Signer {
    return this.signer;
  }

  async start(): Promise<void> {
    await this.#options.start?.();
  }

  /** @throws as the constructor */
  withProfile(profile: IssuanceProfile): LocalCa {
    return new LocalCa({ ...this.#options, profile });
  }

  chain(): readonly Buffer[] {
    return this.#chain;
  }

  get cmsSigner(): CmsSigner {
    return {
      sid: issuerAndSerialNumber(this.certificate),
      // EdDSA and ML-DSA use SHA-512 (RFC 8419 §2.3, RFC 9882 §3.3).
      digest: this.#key.algorithm.hash ?? 'sha512',
      signatureAlgorithm: this.#key.algorithm,
      sign: (data) => this.signer.sign(data),
    };
  }

  /**
   * Builds the TBSCertificate and lints its bytes.
   * @throws EstuaryError 400 CERTIFICATE_LINT (the request violates the named rule) or KEY_USAGE_IMPOSSIBLE; 500
   * CERTIFICATE_LINT (our fault); 503 CA_NOT_VALID (outside the validity of the CA certificate or one above it), or
   * from the key store
   */
  prepare(request: IssuanceRequest): Promise<PreparedIssuance> {
    // A promise turns a throw into a rejection.
    return new Promise((resolve) => resolve(this.#prepare(request)));
  }

  async issue(request: IssuanceRequest): Promise<IssuanceResult> {
    return (await this.prepare(request)).issue();
  }

  /** Why it cannot issue at this time: its certificate or one above it has expired or is not yet valid. */
  get #untimely(): string | undefined {
    const { issuers, now } = this.#options;
    const time = now();
    const certificate = [this.certificate, ...issuers].find(
      ({ notBefore, notAfter }) => time < notBefore.getTime() || time >= notAfter.getTime(),
    );
    return certificate && `the certificate of "${formatName(certificate.subject)}" is ${expiry(certificate)}`;
  }

  /** @throws EstuaryError 503 */
  #requireUp(): void {
    const problem = this.#untimely;
    if (problem !== undefined) throw notValid(problem);
    this.signer.requireUp?.();
  }

  #prepare(request: IssuanceRequest): PreparedIssuance {
    this.#requireUp();
    const { notBefore, notAfter } = validityPeriod(
      this.#options.profile,
      this.certificate,
      this.#options.now(),
      request.validityDays,
    );
    const publicKey = request.publicKey ?? readKey(request.spki);
    const serialNumber = randomSerial();
    const tbs = buildTbs(this.#constants, {
      serialNumber,
      notBefore,
      notAfter,
      subject: request.subject,
      spki: request.spki,
      subjectKeyIdentifier: subjectKeyIdentifier(request.spki),
      keyUsage: this.#keyUsage(publicKey),
      subjectAltNames: request.subjectAltNames,
      further: this.#extensions.copied(request.extensions ?? []),
    });
    const { max_validity_days: maxValidityDays, san } = this.#options.profile;
    const rules = {
      maxValidityDays,
      underscores: san?.dns_underscore,
      further: this.#extensions.further,
      authority: this.#authority,
    };
    return this.#linted(tbs, { serialNumber, notAfter }, publicKey, rules);
  }

  prepareServerCertificate(request: ServerCertificateRequest): Promise<PreparedIssuance> {
    return new Promise((resolve) => resolve(this.#prepareServerCertificate(request)));
  }

  #prepareServerCertificate({ subject, subjectAltNames, spki }: ServerCertificateRequest): PreparedIssuance {
    this.#requireUp();
    const serialNumber = randomSerial();
    const validity = validityPeriod(
      this.#options.profile,
      this.certificate,
      this.#options.now(),
      SERVER_CERTIFICATE_DAYS,
    );
    const tbs = buildTbs(this.#serverConstants, {
      serialNumber,
      ...validity,
      subject,
      spki,
      subjectKeyIdentifier: subjectKeyIdentifier(spki),
      keyUsage: ['digitalSignature'],
      subjectAltNames,
    });
    const rules = { maxValidityDays: SERVER_CERTIFICATE_DAYS };
    return this.#linted(tbs, { serialNumber, ...validity }, readKey(spki), rules);
  }

  #linted(
    tbs: Buffer,
    { serialNumber, notAfter }: { readonly serialNumber: Buffer; readonly notAfter: Date },
    publicKey: PublicKeyInfo,
    rules: Pick<LintContext, 'maxValidityDays' | 'underscores' | 'further' | 'authority'>,
  ): PreparedIssuance {
    const { signatureAlgorithm } = this.signer;
    const linted = lint(tbs, { issuer: this.certificate, publicKey, signatureAlgorithm, ...rules });
    refuseFindings(linted.findings);
    let issued = false;
    return {
      serial: serialNumber.toString('hex'),
      notAfter,
      tbs,
      issue: async () => {
        if (issued) throw failed('ISSUED_TWICE', 'The certificate was already signed.');
        issued = true;
        const certificate = await this.#key.sign(tbs, CERTIFICATE);
        return { status: 'issued', certificate, ...(linted.tbs && { content: issuedContent(linted.tbs) }) };
      },
    };
  }

  #keyUsage(publicKey: PublicKeyInfo): readonly KeyUsage[] {
    if (this.#authority !== undefined) return CA_KEY_USAGE;
    const usages = keyUsageFor(publicKey, this.#options.profile.key_usage);
    if (usages.length === 0 && this.#options.profile.key_usage.length > 0)
      throw badRequest(
        'KEY_USAGE_IMPOSSIBLE',
        `A ${publicKey.keyType} key cannot be used for ${this.#options.profile.key_usage.join(', ')}, which this CA certifies.`,
      );
    return usages;
  }

  async health(): Promise<HealthReport> {
    const problem = this.#untimely;
    if (problem !== undefined) return { health: 'down', detail: problem };
    return (await this.dependency?.health()) ?? { health: 'ok' };
  }

  async close(): Promise<void> {
    await this.signer.close?.();
  }
}

function authority({ path_length, ...permitted }: NonNullable<ProfileConfig['certificate_authority']>): Authority {
  const { permitted_dns: dns, permitted_ip: ip, permitted_email: email, permitted_uri: uri } = permitted;
  return { pathLength: path_length, nameConstraints: encodeNameConstraints({ dns, ip, email, uri }) };
}

function purpose(nameOrOid: string): string {
  const dotted = oidByName(nameOrOid);
  if (dotted === undefined) throw new InputError(`unknown extended key usage "${nameOrOid}"`);
  return dotted;
}

function readKey(spki: Buffer): PublicKeyInfo {
  try {
    return parsePublicKey(spki);
  } catch (error) {
    if (error instanceof DerError)
      throw badRequest('PUBLIC_KEY_MALFORMED', 'The public key to certify is not valid DER.', { cause: error });
    throw error;
  }
}

function refuseFindings(findings: readonly LintFinding[]): void {
  const [first] = findings;
  if (first === undefined) return;
  const detail = findings.map(({ rule, message }) => `${rule}: ${message}`).join('; ');
  // If any finding is our fault, the client cannot fix it.
  if (findings.some(({ blames }) => blames === 'ca'))
    throw failed('CERTIFICATE_LINT', 'The CA will not sign this certificate.', { detail });
  throw badRequest('CERTIFICATE_LINT', `The CA will not sign this certificate: ${first.message} (${first.rule}).`, {
    detail,
  });
}
