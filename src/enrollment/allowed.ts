/** The stage after every check of our own: the external service of the CA, where it has one, allows it (docs/reference/authorization.md). */
import { auditedRequester } from '../auth/identity.ts';
import type { PreparedIssuance } from '../ca/driver.ts';
import { isRefusal } from '../errors.ts';
import { encodePem } from '../pki/der/pem.ts';
import { withoutSecrets } from '../pki/pkcs10/challenges.ts';
import { formatGeneralName, type GeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { RequestOverride, RequestRow } from '../store/request-store.ts';
import type { Authorizer } from './authorization/external-authorization.ts';
import { readOverride, type AuthorizationRequest } from './authorization/messages.ts';
import { Checked } from './checked.ts';
import type { Keyed } from './keyed.ts';

/** Created only from a checked and allowed request; only such requests are reserved or queued. */
export class Allowed {
  readonly #checked: Checked;
  /** The service's decision on names and validity; null without a service. */
  readonly override: RequestOverride | null;

  private constructor(checked: Checked, override: RequestOverride | null) {
    this.#checked = checked;
    this.override = override;
  }

  get keyed(): Keyed {
    return this.#checked.keyed;
  }

  get prepared(): PreparedIssuance {
    return this.#checked.prepared;
  }

  /**
   * Calls the service once.
   * @throws EstuaryError 403 `AUTHORIZATION_DENIED`; 503 `AUTHORIZATION_FAILED`, also for an override that the profile
   * does not allow
   */
  static async of(checked: Checked, service: Authorizer): Promise<Allowed> {
    const { keyed } = checked;
    if (!service.concerns(keyed.request.ca.label)) return new Allowed(checked, null);
    const asked = requestOf(keyed);
    // A dry run is a separate request, which shares no cached decision.
    const { authorized, request } = keyed;
    const name = request.dryRun === true ? `dry-run ${request.requestId}` : authorized.recognition;
    const override = await service.decide(name, asked);
    if (Object.keys(override).length === 0) return new Allowed(checked, override);
    if (repeatsNames(keyed, override)) return new Allowed(checked, {});
    const problem = overrideProblem(keyed, override);
    if (problem !== undefined) throw service.failure(asked, problem);
    try {
      return new Allowed(await Checked.of(keyed.overridden(override)), override);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw service.failure(asked, `the CA does not issue what it allows: ${error.code} ${error.message}`);
    }
  }

  /** A queued request keeps its earlier decision; without one, the service is called now. @throws as {@link of} */
  static async queued(checked: Checked, { override }: RequestRow, service: Authorizer): Promise<Allowed> {
    return override === null ? Allowed.of(checked, service) : new Allowed(checked, override);
  }

  /** The same with a new serial number after a collision. @throws EstuaryError as {@link Checked.again} */
  async again(): Promise<Allowed> {
    return new Allowed(await this.#checked.again(), this.override);
  }
}

/** A remote CA gets the CSR as it was signed. An answer may repeat its names. */
function repeatsNames({ request, names }: Keyed, override: RequestOverride): boolean {
  if (request.ca.driver.remoteQueue === undefined || override.validity_days !== undefined) return false;
  const { subject = names.subject, subjectAltNames = names.subjectAltNames } = readOverride(override);
  const texts = (some: readonly GeneralName[]): string => some.map(formatGeneralName).toSorted().join();
  return formatName(subject) === formatName(names.subject) && texts(subjectAltNames) === texts(names.subjectAltNames);
}

function overrideProblem(
  { request, authorized }: Keyed,
  { subject, sans, validity_days }: RequestOverride,
): string | undefined {
  if (authorized.isRenewal && (subject !== undefined || sans !== undefined))
    return 'it contains names at a re-enrollment';
  const { driver, profile } = request.ca;
  if (driver.remoteQueue !== undefined) return 'the remote CA uses the names of the CSR and decides the validity';
  if (validity_days !== undefined && validity_days > profile.max_validity_days)
    return `it asks for ${validity_days} days, more than max_validity_days`;
  return undefined;
}

const PEM_LABELS = { pkcs10: 'CERTIFICATE REQUEST', crmf: 'CRMF REQUEST' } as const;

function requestOf({ request, names, csr, key }: Keyed): AuthorizationRequest {
  const { requestId, ca, operation, identity, address, device, dryRun } = request;
  const certificate = 'certificate' in identity ? identity.certificate : undefined;
  const { requester_issuer = null, requester_sans = [] } = auditedRequester(identity);
  return {
    request_id: requestId,
    ca: ca.label,
    operation,
    requester: {
      method: identity.method,
      id: identity.display,
      issuer: requester_issuer,
      subject: certificate === undefined ? null : formatName(certificate.subject),
      sans: [...requester_sans],
      address,
    },
    subject: formatName(names.subject),
    sans: names.subjectAltNames.map(formatGeneralName),
    key_type: key.publicKey.keyType,
    csr: encodePem(PEM_LABELS[key.format], withoutSecrets(csr, undefined)),
    ...(device === undefined ? {} : { device: device.id }),
    ...(dryRun === undefined ? {} : { dry_run: dryRun }),
  };
}
