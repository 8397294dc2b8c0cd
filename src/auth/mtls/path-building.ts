/** Builds a certification path from an end entity to a trust anchor: depth first, with bounded work. */
import { verifyCertificateSignature, type Certificate } from '../../pki/x509/certificate.ts';
import { refusedAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import { foldedName, formatName } from '../../pki/x509/name.ts';
import { isSelfIssued, isValidAt, issuerProblem, pathNamesProblem } from './path-validation.ts';

/** Certificates in a path, including the end entity and the anchor. */
const MAX_PATH = 10;
/** Signature verifications per end entity, which bound the cost of a hostile client. */
const MAX_SIGNATURES = 32;
/** Characters of a name in the log. */
const MAX_TEXT = 256;

export interface IssuerSource {
  readonly isAnchor: (certificate: Certificate) => boolean;
  /** CA certificates with this subject (in the form of {@link foldedName}), preferred ones first. */
  readonly bySubject: (name: string) => readonly Certificate[];
  /** Whether the issuer's signature on a CA certificate is already verified. */
  readonly isKnownLink: (subject: Certificate, issuer: Certificate) => boolean;
}

type PathSearchResult =
  /** End entity first, trust anchor last; a single certificate if the end entity is an anchor. */
  | { readonly path: readonly Certificate[] }
  /** Why the search found none, for the log. */
  | {
      readonly problem: string;
      /** An issuer was skipped for its validity dates, so a path may exist at another time. */
      readonly untimely: boolean;
    };

/**
 * @param at time at which every issuer must be valid; undefined: any
 * @param ofIssuer the path is that of a CA certificate
 */
export async function findPath(
  endEntity: Certificate,
  source: IssuerSource,
  at: number | undefined,
  ofIssuer = false,
): Promise<PathSearchResult> {
  const search = new Search(source, at, ofIssuer);
  const path = await search.extend([endEntity], endEntity);
  return path === undefined ? { problem: search.problem, untimely: search.untimely } : { path };
}

/** Why a certificate is not accepted for the algorithm of its signature, or undefined. */
export function refusal({ signatureAlgorithm, subject }: Certificate): string | undefined {
  const algorithm = refusedAlgorithm(signatureAlgorithm);
  if (algorithm === undefined) return undefined;
  return `${formatName(subject).slice(0, MAX_TEXT)} is signed with ${algorithm}, which is not accepted`;
}

class Search {
  readonly #source: IssuerSource;
  readonly #at: number | undefined;
  readonly #ofIssuer: boolean;
  #signatures = 0;
  /** The last obstacle. */
  problem = 'none of its issuers has its authorityKeyIdentifier';
  untimely = false;

  constructor(source: IssuerSource, at: number | undefined, ofIssuer: boolean) {
    this.#source = source;
    this.#at = at;
    this.#ofIssuer = ofIssuer;
  }

  async extend(path: readonly Certificate[], top: Certificate): Promise<readonly Certificate[] | undefined> {
    if (this.#source.isAnchor(top)) {
      const problem = pathNamesProblem(path, this.#ofIssuer);
      if (problem === undefined) return path;
      this.#note(top, problem);
      return undefined;
    }
    if (path.length === MAX_PATH) {
      this.#note(top, `is at the end of a path of more than ${MAX_PATH} certificates`);
      return undefined;
    }
    const issuers = this.#source.bySubject(foldedName(top.issuer));
    if (issuers.length === 0) this.#note(top, `its issuer ${formatName(top.issuer).slice(0, MAX_TEXT)} is unknown`);
    for (const issuer of issuers) {
      if (path.some(({ der }) => der.equals(issuer.der)) || !keyIdentifiersMatch(top, issuer)) continue;
      const refused = refusal(top);
      if (refused !== undefined && !this.#source.isKnownLink(top, issuer)) {
        this.#note(top, refused);
        continue;
      }
      const problem = this.#roleProblem(path, issuer) ?? (await this.#signatureProblem(top, issuer));
      if (problem !== undefined) {
        this.#note(issuer, problem);
        continue;
      }
      const found = await this.extend([...path, issuer], issuer);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #roleProblem(path: readonly Certificate[], issuer: Certificate): string | undefined {
    if (this.#at !== undefined && !isValidAt(issuer, this.#at)) {
      this.untimely = true;
      return 'is expired or not yet valid';
    }
    const below = path.slice(1).filter((certificate) => !isSelfIssued(certificate)).length;
    return issuerProblem(issuer, { anchor: this.#source.isAnchor(issuer), below });
  }

  async #signatureProblem(subject: Certificate, issuer: Certificate): Promise<string | undefined> {
    if (this.#source.isKnownLink(subject, issuer)) return undefined;
    if (++this.#signatures > MAX_SIGNATURES) return `was not checked: the limit is ${MAX_SIGNATURES} signatures`;
    return (await verifyCertificateSignature(subject, issuer)) ? undefined : 'did not sign the certificate below it';
  }

  #note(certificate: Certificate, problem: string): void {
    this.problem = `${certificate.fingerprint}: ${problem}`;
  }
}

/** RFC 5280 §4.2.1.1: key identifiers distinguish a CA's keys. */
function keyIdentifiersMatch(subject: Certificate, issuer: Certificate): boolean {
  const wanted = subject.authorityKeyIdentifier;
  const offered = issuer.subjectKeyIdentifier;
  return wanted === undefined || offered === undefined || wanted.equals(offered);
}
