/** Authenticates EST requests by the client certificate of the TLS handshake. */
import { EstuaryError, unauthorized, unavailable } from '../../errors.ts';
import { OID } from '../../pki/der/oids.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { isRecordOf, type CertificateStore } from '../../store/certificate-store.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import type { Rescue, RescueStore } from '../../store/rescue-store.ts';
import { certificateHolder, type CertificateHolder, holderKey, holderOf } from '../certificate-holder.ts';
import type { MtlsIdentity, PresentedCredentials } from '../identity.ts';
import { type AuthContext, type AuthPlugin, NotAccepted } from '../plugin.ts';
import type { ClientTrust } from './client-trust.ts';
import { IntermediateMemory } from './intermediate-memory.ts';
import { findPath, type IssuerSource } from './path-building.ts';
import { allowsPurpose, isValidAt, keyProblem, unprocessedCriticalExtension } from './path-validation.ts';
import { PresentedCertificates, presentedCertificates } from './presented-certificates.ts';
import { checkDeviceCas, checkNotRevokedHere, isRecorded } from './revocation-lists.ts';

type Memory = Pick<IntermediateMemory, 'recall' | 'remember'>;

interface ClientCertificateOptions {
  /** Accepts a certificate that expired at most this long ago (renewal_grace_days). */
  readonly expiredGraceSeconds?: number;
  /** Accepted extended key usages, if the certificate has any; default: clientAuth. */
  readonly purposes?: readonly string[];
  /** What clients sent in earlier handshakes; default: only what is presented counts. */
  readonly memory?: Memory | undefined;
  /** It has a pass: neither its expiry nor the validity of its issuers counts. */
  readonly rescued?: boolean;
  /** For a certificate that is not signed yet: who will sign it. */
  readonly assumedIssuer?: Certificate;
}

export interface ValidatedClientCertificate {
  readonly certificate: Certificate;
  /** The client's certificate first, the trust anchor last. */
  readonly path: readonly Certificate[];
}

/**
 * Validates a client certificate: path (RFC 5280 §6.1), purpose, validity and CRLs, but not revocation in our own
 * store.
 *
 * Like OpenSSL, accepts a certificate without extKeyUsage. Accepts an anchor with a suitable purpose as a client
 * certificate. In a grace period, the issuers must have been valid when the certificate expired.
 * @param presented the connection's certificates, which cache a rejection
 * @throws EstuaryError 401
 */
export async function validatePresented(
  trust: ClientTrust,
  presented: PresentedCertificates,
  now: number,
  options: ClientCertificateOptions = {},
): Promise<ValidatedClientCertificate> {
  const cached = trust.cachedPath(presented.fingerprint);
  const leaf = cached?.[0] ?? presented.leaf();
  const graceEnd = leaf.notAfter.getTime() + 999 + (options.expiredGraceSeconds ?? 0) * 1000;
  const at = now > leaf.notAfter.getTime() && now <= graceEnd ? leaf.notAfter.getTime() : now;
  const { rescued = false } = options;
  const stillValid = rescued || cached?.slice(1).every((issuer) => isValidAt(issuer, at)) === true;
  const search = () => validPath(trust, presented, { at: rescued ? undefined : at, now }, options);
  const path =
    cached !== undefined && stillValid ? cached : await (rescued ? search() : presented.path(trust, at, search));
  if (trust.isProxy(leaf)) throw unauthorized('CLIENT_CERTIFICATE_OF_PROXY', 'client certificate belongs to a proxy');
  checkEndEntity(leaf, rescued ? leaf.notAfter.getTime() : at, options.purposes);
  checkRevocationLists(trust, path, now);
  return { certificate: leaf, path };
}

/**
 * {@link validatePresented} for a certificate that did not come with a connection.
 * @param leafDer the client's certificate
 * @param intermediates DER of further certificates from the client; malformed ones are skipped
 */
export function validateClientCertificate(
  trust: ClientTrust,
  leafDer: Buffer,
  intermediates: readonly Buffer[],
  now: number,
  options: ClientCertificateOptions = {},
): Promise<ValidatedClientCertificate> {
  return validatePresented(trust, new PresentedCertificates(leafDer, intermediates), now, options);
}

async function validPath(
  trust: ClientTrust,
  presented: PresentedCertificates,
  { at, now }: { readonly at: number | undefined; readonly now: number },
  { memory, assumedIssuer }: ClientCertificateOptions,
): Promise<readonly Certificate[]> {
  const leaf = presented.leaf();
  let issuers = withAssumed(trust.issuers(presented.intermediates()), leaf, assumedIssuer);
  let found = await findPath(leaf, issuers, at);
  // A resumed session has only the client's own certificate.
  const remembered = 'path' in found || memory === undefined ? [] : await memory.recall(leaf);
  if (remembered.length > 0) {
    issuers = trust.issuers([...presented.intermediates(), ...remembered]);
    found = await findPath(leaf, issuers, at);
  }
  if ('path' in found) {
    if (assumedIssuer === undefined) trust.cachePath(found.path);
    await memory?.remember(
      leaf,
      found.path.slice(1).filter((issuer) => !trust.has(issuer)),
      now,
    );
    return found.path;
  }
  if (found.untimely && 'path' in (await findPath(leaf, issuers, undefined)))
    throw unauthorized('CLIENT_CERTIFICATE_ISSUER_EXPIRED', 'client certificate issuer expired or not yet valid', {
      detail: found.problem,
    });
  throw unauthorized('CLIENT_CERTIFICATE_UNTRUSTED', 'certificate signed by unknown authority', {
    detail: found.problem,
  });
}

/** The issuer's signature on the certificate counts as verified. */
const withAssumed = (source: IssuerSource, leaf: Certificate, assumed: Certificate | undefined): IssuerSource =>
  assumed === undefined
    ? source
    : {
        ...source,
        isKnownLink: (subject, issuer) =>
          (subject === leaf && issuer.spki.equals(assumed.spki)) || source.isKnownLink(subject, issuer),
      };

function checkEndEntity(leaf: Certificate, at: number, purposes: readonly string[] = [OID.clientAuth]): void {
  const critical = unprocessedCriticalExtension(leaf);
  if (critical !== undefined)
    throw unauthorized(
      'CLIENT_CERTIFICATE_UNSUPPORTED',
      `client certificate has a critical extension that is not supported: ${critical}`,
    );
  const weak = keyProblem(leaf.publicKey);
  if (weak !== undefined)
    throw unauthorized('CLIENT_CERTIFICATE_KEY_REFUSED', 'client certificate key too weak or not supported', {
      detail: weak,
    });
  if (!allowsPurpose(leaf, purposes) || leaf.keyUsage?.includes('digitalSignature') === false)
    throw unauthorized('CLIENT_CERTIFICATE_PURPOSE', 'client certificate not valid for client authentication');
  if (at < leaf.notBefore.getTime())
    throw unauthorized('CLIENT_CERTIFICATE_NOT_YET_VALID', 'client certificate not yet valid');
  if (!isValidAt(leaf, at)) throw unauthorized('CLIENT_CERTIFICATE_EXPIRED', 'client certificate expired');
}

/** From the anchor down: a revoked CA is a better reason than its invalid CRL. */
function checkRevocationLists(trust: ClientTrust, path: readonly Certificate[], now: number): void {
  for (const [i, certificate] of [...path.entries()].reverse()) {
    const issuer = path[i + 1];
    if (issuer === undefined) continue;
    const status = trust.revocation.status(certificate, issuer, now);
    if (status === 'good') continue;
    const options = { detail: `${certificate.fingerprint} is ${status} by its issuer's CRL` };
    if (status === 'unknown')
      throw unauthorized(
        'CLIENT_CERTIFICATE_REVOCATION_UNKNOWN',
        'client certificate revocation status unknown',
        options,
      );
    if (i === 0) throw unauthorized('CLIENT_CERTIFICATE_REVOKED', 'client certificate revoked', options);
    throw unauthorized('CLIENT_CERTIFICATE_ISSUER_REVOKED', 'client certificate issuer revoked', options);
  }
}

type MtlsStore = CertificateStore & IntermediateStore & Pick<RescueStore, 'findRescues'>;

const UNVERIFIABLE = ['CLIENT_CERTIFICATE_UNTRUSTED', 'CLIENT_CERTIFICATE_ISSUER_EXPIRED'];

/**
 * Turns the rejection of a certificate that only the chain of its CA could verify into 503, while that is unknown or not
 * valid.
 * @returns a function that throws the error, or EstuaryError 503 `CA_UNAVAILABLE`
 */
export const unlessAwaited =
  ({ caLabel, awaitsChain, now }: Pick<AuthContext, 'caLabel' | 'awaitsChain' | 'now'>, leaf: () => Certificate) =>
  async (error: unknown): Promise<never> => {
    const isUnverifiable = error instanceof EstuaryError && UNVERIFIABLE.includes(error.code);
    if (!isUnverifiable || (await awaitsChain?.(leaf(), now)) !== true) throw error;
    throw unavailable('CA_UNAVAILABLE', `The CA "${caLabel}" is not available.`, {
      detail: 'its chain is unknown or not valid now, so its certificates cannot be verified',
    });
  };

export class MtlsPlugin implements AuthPlugin {
  readonly method = 'mtls';
  readonly #trust: () => ClientTrust;
  readonly #store: MtlsStore;
  readonly #memory: IntermediateMemory;

  /**
   * @param trust the snapshot in force; a reload replaces it
   * @param remembers as for {@link IntermediateMemory}
   */
  constructor(trust: () => ClientTrust, store: MtlsStore, remembers = true) {
    this.#trust = trust;
    this.#store = store;
    this.#memory = new IntermediateMemory(store, remembers);
  }

  async authenticate(presented: PresentedCredentials, context: AuthContext): Promise<MtlsIdentity | undefined> {
    const certificates = presentedCertificates(presented);
    if (certificates === undefined) return undefined;
    const passes = await this.#passes(certificates, context);
    const rescued = passes.length === 0 ? undefined : await this.#rescued(certificates, context, passes);
    const validated = rescued?.validated ?? (await this.#validated(certificates, context));
    const holder = holderOf(validated);
    await checkNotRevokedHere(this.#store, holder);
    const { rules } = context;
    const note = presented.forwarded === true ? 'certificate forwarded by a proxy' : undefined;
    if (rules === undefined) return { ...mtlsIdentity(holder), ...rescued?.pass, note };
    if (!(await rules.accepts(validated.path))) throw new NotAccepted(mtlsIdentity(holder));
    await checkDeviceCas(this.#store, validated.path, (path) => rules.isOfThisServer(path));
    // The store knows certificates of CAs that are no longer configured.
    const issuedHere = rules.isOfThisServer(validated.path) || (await isRecorded(this.#store, holder));
    return { ...mtlsIdentity(holder, issuedHere), note };
  }

  /** @throws EstuaryError 401, 503 */
  #validated(
    certificates: PresentedCertificates,
    context: AuthContext,
    rescued = false,
  ): Promise<ValidatedClientCertificate> {
    return validatePresented(this.#trust(), certificates, context.now, {
      expiredGraceSeconds: context.expiredGraceSeconds,
      memory: this.#memory,
      rescued,
    }).catch(unlessAwaited(context, () => certificates.leaf()));
  }

  /** The passes for one more renewal of certificates with this serial number, if this one has expired. */
  async #passes(certificates: PresentedCertificates, { recognition, now }: AuthContext): Promise<readonly Rescue[]> {
    if (recognition === undefined) return [];
    const { notAfter, serialNumber } = certificates.leaf();
    return now > notAfter.getTime() + 999 ? this.#store.findRescues(serialNumber, now) : [];
  }

  /**
   * undefined: the passes are those of other certificates.
   * @throws EstuaryError 401, also if the pass was used for another request; 503
   */
  async #rescued(certificates: PresentedCertificates, context: AuthContext, passes: readonly Rescue[]) {
    const validated = await this.#validated(certificates, context, true);
    const holder = holderOf(validated);
    for (const pass of passes) {
      if (!(await isRecordOf(pass, holder))) continue;
      const { ca, serial, request_id, recognition } = pass;
      if (request_id !== null && recognition !== context.recognition?.(mtlsIdentity(holder)))
        throw unauthorized('CLIENT_CERTIFICATE_EXPIRED', 'client certificate expired', {
          detail: `its pass was used by request ${request_id}`,
        });
      return { validated, pass: { rescued: { ca, serial } } };
    }
    return undefined;
  }
}

export function mtlsIdentity(holder: CertificateHolder, issuedHere = false): MtlsIdentity {
  const display = certificateHolder(holder.certificate);
  return { method: 'mtls', requester: `mtls:${holderKey(holder)}`, display, ...holder, issuedHere };
}
