/** CRLs of foreign client CAs: loading and queries (RFC 5280 §6.3, complete direct lists only). */
import { unauthorized } from '../../errors.ts';
import { unlessMalformed } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { InputError } from '../../pki/input-error.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import {
  type CertificateList,
  distributionPointNames,
  isListSignedBy,
  type IssuingDistributionPoint,
  parseIssuingDistributionPoint,
  revokedEntries,
} from '../../pki/x509/crl.ts';
import { findExtension } from '../../pki/x509/extensions.ts';
import { foldedName, formatName } from '../../pki/x509/name.ts';
import { isRecordOf, type IssuedCertificate, type CertificateStore } from '../../store/certificate-store.ts';

/** A configured CRL; `name` is for messages. */
export interface CrlSource {
  readonly name: string;
  readonly list: CertificateList;
}

type RevocationStatus = 'good' | 'revoked' | 'unknown';

interface LoadedList {
  readonly issuer: string;
  /** RFC 4514. */
  readonly issuerName: string;
  readonly issuerSpki: Buffer;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly scope: IssuingDistributionPoint | undefined;
  readonly scopeKey: string;
  readonly serials: ReadonlySet<string>;
  /** Paths of certificates with the signing key that may sign CRLs. */
  readonly signers: readonly Path[];
}

/** A CA certificate first, a trust anchor last (the anchor alone for its own). */
type Path = readonly Certificate[];

/** Entries to read before yielding to other work. */
const SLICE = 2000;

/** CRL extensions that are irrelevant for complete direct lists. */
const KNOWN_CRITICAL: ReadonlySet<string> = new Set([
  OID.issuingDistributionPoint,
  OID.cRLNumber,
  OID.authorityKeyIdentifier,
]);

export interface ListsInput {
  readonly sources: readonly CrlSource[];
  /** CA certificates that may have signed the lists, with their paths. */
  readonly issuers: readonly Path[];
  readonly anchors: readonly Certificate[];
  /** A further list could not be read. */
  readonly isIncomplete: boolean;
  /** Whether it is a CA of this server or above one, which needs no list. */
  readonly isOwn: (issuer: Certificate) => boolean;
  /** In force until now; undefined at the start. */
  readonly before?: RevocationLists | undefined;
}

/** The list of an issuer. */
export interface ListState {
  /** RFC 4514. */
  readonly issuer: string;
  /** 0: the issuer needs a list and has none. */
  readonly nextUpdate: number;
  /** Why the status of its certificates is unknown now. */
  readonly problem?: string;
}

export class RevocationLists {
  /** Why lists cannot be used: malformed, of an unknown issuer, wrongly signed, not supported, or without nextUpdate. */
  readonly problems: readonly string[];
  readonly #lists: readonly LoadedList[];
  readonly #byIssuer: ReadonlyMap<string, readonly LoadedList[]>;
  /** Lists with a revoked signer: their entries count, but absence from them proves nothing. */
  readonly #void: ReadonlySet<LoadedList>;
  /** Names of the issuers that had a list in this process, by name and key. */
  readonly #listed: ReadonlyMap<string, string>;
  readonly #anchors: ReadonlyMap<string, Certificate>;
  /** Anchors whose list may be one that cannot be used. */
  readonly #unproven: ReadonlyMap<string, Certificate>;
  readonly #isOwn: (issuer: Certificate) => boolean;

  private constructor(lists: readonly LoadedList[], problems: readonly string[], input: ListsInput) {
    const { anchors, isIncomplete, isOwn, before } = input;
    const isFaulty = isIncomplete || problems.length > 0;
    const kept = isFaulty && before !== undefined ? before.#lists : [];
    this.problems = problems;
    this.#isOwn = isOwn;
    this.#lists = newest([...lists, ...kept]);
    this.#byIssuer = Map.groupBy(this.#lists, ({ issuer }) => issuer);
    this.#void = new Set(this.#lists.filter(({ signers }) => signers.every((path) => this.#hasRevoked(path))));
    const listed = this.#lists.map(
      ({ issuer, issuerSpki, issuerName }) => [idOf(issuer, issuerSpki), issuerName] as const,
    );
    this.#listed = new Map([...(before === undefined ? [] : before.#listed), ...listed]);
    this.#anchors = new Map(anchors.map((anchor) => [idOf(foldedName(anchor.subject), anchor.spki), anchor]));
    // A reload leaves the anchors alone that authenticated before.
    const isNew = (id: string): boolean => before === undefined || !before.#anchors.has(id) || before.#unproven.has(id);
    this.#unproven = new Map(isFaulty ? [...this.#anchors].filter(([id]) => isNew(id)) : []);
  }

  /**
   * Verifies and reads every list. An expired list is loaded, and makes its issuer's certificates fail. While one cannot
   * be used, those in force stay; at the start, certificates of anchors without a list fail.
   */
  static async load(input: ListsInput): Promise<RevocationLists> {
    const lists: LoadedList[] = [];
    const problems: string[] = [];
    for (const { name, list } of input.sources) {
      try {
        lists.push(await loadList(list, input.issuers));
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        problems.push(`${name}: ${error.message}`);
      }
    }
    return new RevocationLists(lists, problems, input);
  }

  /** Each list, and the issuers that lack one. */
  states(now: number): ListState[] {
    const states = this.#lists.map(({ issuerName: issuer, thisUpdate, nextUpdate }): ListState => {
      const date = (time: number): string => new Date(time).toISOString();
      if (now >= nextUpdate)
        return { issuer, nextUpdate, problem: `the CRL of "${issuer}" expired on ${date(nextUpdate)}` };
      if (now >= thisUpdate) return { issuer, nextUpdate };
      return { issuer, nextUpdate, problem: `the CRL of "${issuer}" is not valid before ${date(thisUpdate)}` };
    });
    const unproven = [...this.#unproven].filter(([, anchor]) => !this.#isOwn(anchor));
    const needed = new Map([
      ...unproven.map(([id, { subject }]) => [id, formatName(subject)] as const),
      ...this.#listed,
    ]);
    for (const [id, issuer] of needed)
      if (!this.#byIssuer.has(nameIn(id)))
        states.push({ issuer, nextUpdate: 0, problem: `there is no CRL of "${issuer}"` });
    return states;
  }

  /**
   * The status of a certificate: `good` if its issuer needs no list; `unknown` if no list covers it, or a covering one is
   * expired or has a revoked signer.
   */
  status(certificate: Certificate, issuer: Certificate, now: number): RevocationStatus {
    const decisive = this.#decisive(certificate, issuer);
    if (decisive === undefined) return this.#lacksList(issuer) ? 'unknown' : 'good';
    if (isListed(certificate, decisive)) return 'revoked';
    const speaking = decisive.filter((list) => !this.#void.has(list));
    if (speaking.length === 0) return 'unknown';
    return speaking.every((list) => now >= list.thisUpdate && now < list.nextUpdate) ? 'good' : 'unknown';
  }

  /** The lists that apply to a certificate; undefined if its issuer has none. */
  #decisive(certificate: Certificate, issuer: Certificate): readonly LoadedList[] | undefined {
    const named = this.#byIssuer.get(foldedName(issuer.subject));
    if (named === undefined) return undefined;
    // CAs may share a name, and a CA with a new key signs lists for the old one's certificates too.
    const covering = named.filter((list) => covers(list, certificate));
    const sameKey = covering.filter(({ issuerSpki }) => issuerSpki.equals(issuer.spki));
    return sameKey.length > 0 ? sameKey : covering;
  }

  #lacksList(issuer: Certificate): boolean {
    const id = idOf(foldedName(issuer.subject), issuer.spki);
    return this.#listed.has(id) || (this.#unproven.has(id) && !this.#isOwn(issuer));
  }

  #hasRevoked(path: Path): boolean {
    return path.some((certificate, i) => {
      const issuer = path[i + 1];
      return issuer !== undefined && isListed(certificate, this.#decisive(certificate, issuer) ?? []);
    });
  }
}

const idOf = (name: string, spki: Buffer): string => `${spki.toString('base64')} ${name}`;
const nameIn = (id: string): string => id.slice(id.indexOf(' ') + 1);

const isListed = ({ serialNumber }: Certificate, lists: readonly LoadedList[]): boolean =>
  lists.some(({ serials }) => serials.has(serialNumber));

/** The newest of the lists with the same issuer, key and scope. */
function newest(lists: readonly LoadedList[]): LoadedList[] {
  const byScope = new Map<string, LoadedList>();
  for (const list of lists) {
    const key = `${list.scopeKey}\n${idOf(list.issuer, list.issuerSpki)}`;
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

/** A malformed cRLDistributionPoints names no point, so no list with a scope covers the certificate. */
function pointsOf(certificate: Certificate): Buffer[] {
  return unlessMalformed(() => distributionPointNames(certificate.extensions), []);
}

async function loadList(list: CertificateList, issuers: readonly Path[]): Promise<LoadedList> {
  const extension = findExtension(list.extensions, OID.issuingDistributionPoint);
  const scope = extension && parseIssuingDistributionPoint(extension.value);
  refuseUnsupported(list, scope);
  if (list.nextUpdate === undefined) throw new InputError('it has no nextUpdate (RFC 5280 §5.1.2.5)');

  const issuer = foldedName(list.issuer);
  const { spki, signers } = await findSigner(list, issuer, issuers);
  return {
    issuer,
    issuerName: formatName(list.issuer),
    issuerSpki: spki,
    signers,
    thisUpdate: list.thisUpdate.getTime(),
    nextUpdate: list.nextUpdate.getTime(),
    scope,
    scopeKey: extension?.value.toString('base64') ?? '',
    serials: await readSerials(list),
  };
}

function refuseUnsupported(list: CertificateList, scope: IssuingDistributionPoint | undefined): void {
  if (findExtension(list.extensions, OID.deltaCRLIndicator) !== undefined)
    throw new InputError('delta CRLs are not supported; use the complete CRL');
  if (scope?.indirectCRL === true) throw new InputError('indirect CRLs are not supported');
  if (scope?.onlySomeReasons === true)
    throw new InputError('CRLs that cover only some revocation reasons are not supported');
  if (scope?.onlyContainsAttributeCerts === true) throw new InputError('it covers attribute certificates only');
  const critical = list.extensions.find(({ oid, critical }) => critical && !KNOWN_CRITICAL.has(oid));
  if (critical !== undefined) throw new InputError(`its critical extension ${critical.oid} is not supported`);
}

/** The signing key and the paths of its certificates (a cross-certified CA has several). */
async function findSigner(
  list: CertificateList,
  issuer: string,
  issuers: readonly Path[],
): Promise<{ spki: Buffer; signers: Path[] }> {
  const named = issuers.filter(
    ([certificate]) => certificate !== undefined && foldedName(certificate.subject) === issuer,
  );
  if (named.length === 0) throw new InputError('its issuer is neither a trust anchor nor a CA of this server');
  const candidates = named.filter(([certificate]) => certificate?.keyUsage?.includes('cRLSign') !== false);
  for (const [candidate] of candidates) {
    if (candidate === undefined || !(await isListSignedBy(list, candidate.publicKey))) continue;
    const { spki } = candidate;
    return { spki, signers: candidates.filter(([certificate]) => certificate?.spki.equals(spki) === true) };
  }
  throw new InputError('no certificate of its issuer that may sign CRLs verifies its signature');
}

async function readSerials(list: CertificateList): Promise<Set<string>> {
  const serials = new Set<string>();
  let read = 0;
  for (const { serialNumber, extensions } of revokedEntries(list)) {
    const critical = extensions.find((extension) => extension.critical && extension.oid !== OID.cRLReason);
    if (critical !== undefined) throw new InputError(`an entry's critical extension ${critical.oid} is not supported`);
    serials.add(serialNumber);
    if (++read % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return serials;
}

/**
 * Checks the store's record of a client certificate. A revocation in it always counts, regardless of CRLs.
 * @throws EstuaryError 401 if the store knows the certificate as revoked; 500 or 503 if the store is unavailable
 */
export async function checkNotRevokedHere(
  store: Pick<CertificateStore, 'findRevoked'>,
  presented: IssuedCertificate,
): Promise<void> {
  const detail = await revocationHere(store, presented);
  if (detail !== undefined) throw unauthorized('CLIENT_CERTIFICATE_REVOKED', 'client certificate revoked', { detail });
}

async function revocationHere(
  store: Pick<CertificateStore, 'findRevoked'>,
  presented: IssuedCertificate,
): Promise<string | undefined> {
  for (const row of await store.findRevoked(presented.certificate.serialNumber))
    if (await isRecordOf(row, presented)) return `${row.ca} ${row.serial} is revoked in the store`;
  return undefined;
}

/**
 * Checks the CAs that devices run, below a CA of this server.
 * @param path the client's certificate first, the trust anchor last
 * @throws EstuaryError 401 if the store knows one as revoked; 500 or 503 if the store is unavailable
 */
export async function checkDeviceCas(
  store: Pick<CertificateStore, 'findRevoked'>,
  path: readonly Certificate[],
  isOfThisServer: (path: readonly Certificate[]) => boolean,
): Promise<void> {
  for (const [position, certificate] of path.slice(1).entries()) {
    const above = path.slice(position + 2);
    const [issuer] = above;
    const detail = isOfThisServer(above) ? await revocationHere(store, { certificate, issuer }) : undefined;
    if (detail !== undefined)
      throw unauthorized('CLIENT_CERTIFICATE_ISSUER_REVOKED', 'client certificate issuer revoked', { detail });
  }
}

/** @throws EstuaryError 500 or 503 if the store is unavailable */
export async function isRecorded(
  store: Pick<CertificateStore, 'getCertificates'>,
  presented: IssuedCertificate,
): Promise<boolean> {
  for (const row of await store.getCertificates(presented.certificate.serialNumber))
    if (await isRecordOf(row, presented)) return true;
  return false;
}
