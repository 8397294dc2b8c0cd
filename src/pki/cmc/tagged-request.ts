/** Certification requests in CMC (RFC 5272 §3.2.1.2): PKCS #10 and CRMF in one type. */
import { badRequest, EstuaryError } from '../../errors.ts';
import { hasSecrets } from '../pkcs10/challenges.ts';
import { parseCsr, verifyCsr, type Csr, type RequestKey, type VerifiedCsr } from '../pkcs10/csr.ts';
import { checkedContent, checkKey, type CsrContent } from '../pkcs10/csr-content.ts';
import { DerError, unlessMalformed } from '../der/der.ts';
import { oidName, OID } from '../der/oids.ts';
import { parsePublicKey } from '../x509/public-key.ts';
import {
  UnsupportedSignatureAlgorithm,
  parseSignatureAlgorithm,
  verifySignature,
  type SignatureAlgorithm,
} from '../x509/signature-algorithms.ts';
import { type BodyPartID, CURRENT_MESSAGE } from './body-part.ts';
import { CmcError } from './cmc-error.ts';
import { parseCertReqMsg, type CertReqMsg } from './crmf.ts';
import type { TaggedRequest } from './pki-data.ts';
import type { CmcFailInfoName } from './status-info.ts';
import type { SignedData } from '../cms/cms.ts';
import { findExtension, parseSubjectKeyIdentifier } from '../x509/extensions.ts';

/** The supported kinds of request; an `orm` is rejected with noSupport. */
type KnownTaggedRequest = Exclude<TaggedRequest, { readonly kind: 'orm' }>;

/**
 * The content of a certification request in either format. Its proof of possession covers `info`. A CRMF request's
 * controls become `attributes`, each with one value.
 */
export type CmcCertificateRequest = CsrContent & { readonly bodyPartID: BodyPartID } & (
    { readonly kind: 'pkcs10'; readonly csr: Csr } | { readonly kind: 'crmf'; readonly message: CertReqMsg }
  );

/** How the request proved possession of the private key. */
export type ProofOfPossession =
  | { readonly method: 'signature'; /** undefined: a CRMF request. */ readonly csr: VerifiedCsr | undefined }
  /** The sender, which must be an RA, states that it verified possession. */
  | { readonly method: 'raVerified' };

/** failInfo for the errors of `parseCsr` and `verifyCsr`; all others are badRequest. */
const FAIL_INFO: ReadonlyMap<string, CmcFailInfoName> = new Map<string, CmcFailInfoName>([
  ['CSR_KEY_UNSUPPORTED', 'badAlg'],
  ['CSR_KEY_WEAK', 'badAlg'],
  ['CSR_SIGNATURE_ALGORITHM', 'badAlg'],
  ['CSR_SIGNATURE_INVALID', 'popFailed'],
  ['CSR_KEY_INVALID', 'popFailed'],
]);

/** @throws CmcError naming the request's body part: `request-malformed` (badRequest), `algorithm` (badAlg) */
export function parseCertificateRequest(tagged: KnownTaggedRequest): CmcCertificateRequest {
  const { bodyPartID } = tagged;
  return naming(bodyPartID, () => {
    if (tagged.kind === 'tcr') {
      const csr = parseCsr(tagged.der);
      return { ...csr, kind: 'pkcs10', bodyPartID, csr };
    }
    const message = parseCertReqMsg(tagged.der);
    return { ...crmfContent(message), kind: 'crmf', bodyPartID, message };
  });
}

/** Turns an error about a request into a CmcError that names it. */
function naming<T>(bodyPartID: BodyPartID, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw named(bodyPartID, error);
  }
}

function named(bodyPartID: BodyPartID, error: unknown): unknown {
  if (error instanceof EstuaryError) {
    const failInfo = FAIL_INFO.get(error.code) ?? 'badRequest';
    const rule = { badAlg: 'algorithm', popFailed: 'proof-of-possession' } as const;
    const broken = failInfo === 'badAlg' || failInfo === 'popFailed' ? rule[failInfo] : 'request-malformed';
    return new CmcError(broken, [bodyPartID], error.message, failInfo, error);
  }
  if (error instanceof UnsupportedSignatureAlgorithm)
    return new CmcError(
      'algorithm',
      [bodyPartID],
      `The request's signature algorithm ${oidName(error.oid)} is not accepted.`,
      'badAlg',
      error,
    );
  if (error instanceof DerError)
    return new CmcError(
      'request-malformed',
      [bodyPartID],
      `The certification request is not valid DER: ${error.message}.`,
      'badRequest',
      error,
    );
  return error;
}

/**
 * RFC 5272 §3.2.1.2.2 requires subject and publicKey and forbids regInfo. RFC 4211 §5 forbids fields that the CA
 * assigns.
 */
function crmfContent({ der, certReq, certTemplate, controls, hasRegInfo }: CertReqMsg): CsrContent {
  const { version, subject, publicKey: spki, extensions = [], assigned } = certTemplate;
  if (hasRegInfo) throw refused('contains regInfo, which must be a control of the message');
  if (version !== undefined && version !== 2) throw refused('is for a certificate of another version than 3');
  if (assigned.length > 0) throw refused(`contains ${assigned.join(', ')}, which only the CA assigns`);
  if (subject === undefined) throw refused('has no subject');
  if (spki === undefined) throw refused('has no public key');
  const publicKey = parsePublicKey(spki);
  checkKey(publicKey);
  const attributes = controls.map(({ oid, value }) => ({ oid, values: [value] }));
  const content = checkedContent({ der, info: certReq, subject, publicKey }, attributes, extensions);
  if (hasSecrets(content))
    throw refused('has a secret of RFC 7894 in its controls, which is only an attribute of PKCS #10');
  return content;
}

const refused = (problem: string): EstuaryError => badRequest('CSR_MALFORMED', `The CRMF request ${problem}.`);

/**
 * Verifies the request's proof of possession.
 * @throws CmcError `proof-of-possession`: popRequired if it is missing or needs another round trip, popFailed if it is
 * wrong; `algorithm` (badAlg)
 */
export async function verifyProofOfPossession(request: CmcCertificateRequest): Promise<ProofOfPossession> {
  const { bodyPartID } = request;
  if (request.kind === 'pkcs10') {
    const csr = await verifyCsr(request.csr).catch((error: unknown) => {
      throw named(bodyPartID, error);
    });
    return { method: 'signature', csr };
  }
  const { popo } = request.message;
  if (popo?.kind === 'raVerified') return { method: 'raVerified' };
  if (popo?.kind !== 'signature')
    throw unproven(bodyPartID, 'popRequired', 'The request has no signature that proves possession of its key.');
  if (popo.withInput)
    throw unproven(bodyPartID, 'popFailed', 'The proof of possession signs a poposkInput instead of the request.');
  const algorithm = naming(bodyPartID, () => parseSignatureAlgorithm(popo.algorithm));
  if (!(await isSigned(request, algorithm, popo.signature)))
    throw unproven(bodyPartID, 'popFailed', "The request's proof of possession is not valid.");
  return { method: 'signature', csr: undefined };
}

/**
 * The requested key, and the algorithm of the signature that proves its possession, if any.
 * @throws CmcError `algorithm` (badAlg)
 */
export function requestKey(request: CmcCertificateRequest): RequestKey {
  return { keyType: request.publicKey.keyType, signatureAlgorithm: signatureAlgorithmOf(request) };
}

function signatureAlgorithmOf(request: CmcCertificateRequest): SignatureAlgorithm | undefined {
  if (request.kind === 'pkcs10') return request.csr.signatureAlgorithm;
  const { popo } = request.message;
  if (popo?.kind !== 'signature') return undefined;
  return naming(request.bodyPartID, () => parseSignatureAlgorithm(popo.algorithm));
}

const unproven = (bodyPartID: BodyPartID, failInfo: 'popRequired' | 'popFailed', message: string): CmcError =>
  new CmcError('proof-of-possession', [bodyPartID], message, failInfo);

async function isSigned(
  { publicKey, info }: CmcCertificateRequest,
  algorithm: SignatureAlgorithm,
  signature: Buffer,
): Promise<boolean> {
  try {
    return await verifySignature(algorithm, publicKey, info, signature);
  } catch {
    return false; // an unusable key, such as a point off its curve
  }
}

/**
 * The request whose key signed the message (RFC 5272 §3.2), or undefined if the signer has a certificate. The signer's
 * subjectKeyIdentifier equals the request's Subject Key Identifier extension. The caller verifies the signature.
 * @throws CmcError `malformed` (badMessageCheck) if there are further signers or two requests claim the identifier
 */
export function requestOfSigner(
  { signerInfos }: Pick<SignedData, 'signerInfos'>,
  requests: readonly CmcCertificateRequest[],
): CmcCertificateRequest | undefined {
  const named = signerInfos.flatMap(({ sid }) => (sid.kind === 'subjectKeyIdentifier' ? [sid.keyIdentifier] : []));
  const [request, ...more] = requests.filter((request) => {
    const identifier = requestedKeyIdentifier(request);
    return identifier !== undefined && named.some((sid) => sid.equals(identifier));
  });
  if (request === undefined) return undefined;
  if (more.length > 0) throw wrongSigner('Two requests have the key identifier of the signer.');
  if (signerInfos.length > 1)
    throw wrongSigner('A message that is signed with a requested key must have no other signature.');
  return request;
}

const wrongSigner = (message: string): CmcError =>
  new CmcError('malformed', [CURRENT_MESSAGE], message, 'badMessageCheck');

function requestedKeyIdentifier({ extensions }: CmcCertificateRequest): Buffer | undefined {
  const extension = findExtension(extensions, OID.subjectKeyIdentifier);
  return extension && unlessMalformed(() => parseSubjectKeyIdentifier(extension.value), undefined);
}
