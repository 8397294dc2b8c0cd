/** The CRLs of foreign client CAs: loading them, and asking them (RFC 5280 §6.3, complete direct lists only). */
import { EstuaryError, describe, failed } from '../../errors.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import {
  distributionPointNames,
  isListSignedBy,
  parseCertificateList,
  parseIssuingDistributionPoint,
  revokedEntries,
  type CertificateList,
  type IssuingDistributionPoint,
} from '../../pki/x509/crl.ts';
import { unlessMalformed } from '../../pki/der/der.ts';
import { findExtension } from '../../pki/x509/extensions.ts';
import { foldedName } from '../../pki/x509/name-matching.ts';
import { OID } from '../../pki/der/oids.ts';

/** A CRL as configured; `name` is for messages. */
export interface CrlSource {
  readonly name: string;
  readonly der: Buffer;
}

export type RevocationStatus = 'good' | 'revoked' | 'unknown';

interface LoadedList {
  readonly issuer: string;
  readonly issuerSpki: Buffer;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly scope: IssuingDistributionPoint | undefined;
  readonly scopeKey: string;
  readonly serials: ReadonlySet<string>;
}

/** Entries read before other work gets its turn. */
const SLICE = 2000;

/** CRL extensions that need no processing where the list is complete and direct. */
const KNOWN_CRITICAL: ReadonlySet<string> = new Set([
  OID.issuingDistributionPoint,
  OID.cRLNumber,
  OID.authorityKeyIdentifier,
]);

export class RevocationLists {
  readonly #byIssuer: ReadonlyMap<string, readonly LoadedList[]>;

  private constructor(lists: readonly LoadedList[]) {
    this.#byIssuer = Map.groupBy(newest(lists), ({ issuer }) => issuer);
  }

  /**
   * Verifies and reads every list. An expired list is loaded: it makes its issuer's certificates fail.
   *
   * @param issuers the CA certificates that may have signed them
   * @throws EstuaryError 500 `CRL_INVALID` that names the list: malformed, of an unknown issuer, wrongly signed, a
   *   delta or indirect CRL, for some reasons only, or without nextUpdate
   */
  static async load(sources: readonly CrlSource[], issuers: readonly Certificate[]): Promise<RevocationLists> {
    const lists: LoadedList[] = [];
    for (const source of sources) {
      try {
        lists.push(await loadList(parseCertificateList(source.der), issuers));
      } catch (error) {
        if (error instanceof EstuaryError) throw error;
        throw failed('CRL_INVALID', `CRL ${source.name}: ${describe(error)}`);
      }
    }
    return new RevocationLists(lists);
  }

  /**
   * What the lists of its issuer say of a certificate. `good` where the issuer has no list at all; `unknown` where it
   * has lists, but none of them covers the certificate or one that does is out of date.
   *
   * @param now milliseconds
   */
  status(certificate: Certificate, issuer: Certificate, now: number): RevocationStatus {
    const named = this.#byIssuer.get(foldedName(issuer.subject));
    if (named === undefined) return 'good';
    // Two CAs may share a name; a CA that changed its key signs for the old one's certificates too.
    const sameKey = named.filter(({ issuerSpki }) => issuerSpki.equals(issuer.spki));
    const covering = (sameKey.length > 0 ? sameKey : named).filter((list) => covers(list, certificate));
    if (covering.some(({ serials }) => serials.has(certificate.serialNumber))) return 'revoked';
    if (covering.length === 0) return 'unknown';
    return covering.every((list) => now >= list.thisUpdate && now < list.nextUpdate) ? 'good' : 'unknown';
  }
}

/** Of several lists with the same issuer, key and scope only the newest counts. */
function newest(lists: readonly LoadedList[]): LoadedList[] {
  const byScope = new Map<string, LoadedList>();
  for (const list of lists) {
    const key = `${list.issuer}\n${list.issuerSpki.toString('base64')}\n${list.scopeKey}`;
    const other = byScope.get(key);
    if (other === undefined || other.thisUpdate < list.thisUpdate) byScope.set(key, list);
  }
  return [...byScope.values()];
}

function covers({ scope }: LoadedList, certificate: Certificate): boolean {
  if (scope === undefined) return true;
  if (scope.onlyContainsUserCerts && certificate.isCa) return false;
  if (scope.onlyContainsCACerts && !certificate.isCa) return false;
  const { fullName } = scope;
  if (fullName === undefined) return true;
  return pointsOf(certificate).some((name) => fullName.some((own) => own.equals(name)));
}

/** A cRLDistributionPoints that does not parse names no point, so no list with a scope covers the certificate. */
function pointsOf(certificate: Certificate): Buffer[] {
  return unlessMalformed(() => distributionPointNames(certificate.extensions), []);
}

async function loadList(list: CertificateList, issuers: readonly Certificate[]): Promise<LoadedList> {
  const extension = findExtension(list.extensions, OID.issuingDistributionPoint);
  const scope = extension && parseIssuingDistributionPoint(extension.value);
  refuseUnsupported(list, scope);
  if (list.nextUpdate === undefined) throw new RangeError('it has no nextUpdate (RFC 5280 §5.1.2.5)');

  const issuer = foldedName(list.issuer);
  const signer = await findSigner(list, issuer, issuers);
  return {
    issuer,
    issuerSpki: signer.spki,
    thisUpdate: list.thisUpdate.getTime(),
    nextUpdate: list.nextUpdate.getTime(),
    scope,
    scopeKey: extension?.value.toString('base64') ?? '',
    serials: await readSerials(list),
  };
}

function refuseUnsupported(list: CertificateList, scope: IssuingDistributionPoint | undefined): void {
  if (findExtension(list.extensions, OID.deltaCRLIndicator) !== undefined)
    throw new RangeError('delta CRLs are not supported; use the complete CRL');
  if (scope?.indirectCRL === true) throw new RangeError('indirect CRLs are not supported');
  if (scope?.onlySomeReasons === true) throw new RangeError('CRLs for some reasons only are not supported');
  if (scope?.onlyContainsAttributeCerts === true) throw new RangeError('it is about attribute certificates only');
  const critical = list.extensions.find(({ oid, critical }) => critical && !KNOWN_CRITICAL.has(oid));
  if (critical !== undefined) throw new RangeError(`its critical extension ${critical.oid} is not supported`);
}

async function findSigner(
  list: CertificateList,
  issuer: string,
  issuers: readonly Certificate[],
): Promise<Certificate> {
  const named = issuers.filter(({ subject }) => foldedName(subject) === issuer);
  if (named.length === 0) throw new RangeError('its issuer is none of the trust anchors or CAs known here');
  for (const candidate of named) {
    if (candidate.keyUsage !== undefined && !candidate.keyUsage.includes('cRLSign')) continue;
    if (await isListSignedBy(list, candidate.publicKey)) return candidate;
  }
  throw new RangeError("its signature is not one of its issuer's that may sign CRLs");
}

async function readSerials(list: CertificateList): Promise<Set<string>> {
  const serials = new Set<string>();
  let read = 0;
  for (const { serialNumber, extensions } of revokedEntries(list)) {
    const critical = extensions.find((extension) => extension.critical && extension.oid !== OID.cRLReason);
    if (critical !== undefined) throw new RangeError(`an entry's critical extension ${critical.oid} is not supported`);
    serials.add(serialNumber);
    if (++read % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return serials;
}
