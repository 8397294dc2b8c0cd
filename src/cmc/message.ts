/** A full PKI request as received: the CMS layer, and the PKIData with parsed controls. */
import { parseAuthenticatedData, type AuthenticatedData } from '../pki/cms/authenticated-data.ts';
import { berToDer } from '../pki/der/ber.ts';
import { digestMatches, parseContentInfo, parseSignedData, type SignedData, type SignerInfo } from '../pki/cms/cms.ts';
import { parseDer, Tag } from '../pki/der/der.ts';
import { OID } from '../pki/der/oids.ts';
import {
  controlsNamed,
  parseControl,
  type CmcControl,
  type ControlName,
  type KnownControl,
} from '../pki/cmc/controls.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import { parsePkiData, type PkiData, type TaggedRequest } from '../pki/cmc/pki-data.ts';
import { parseCertificateRequest, type CmcCertificateRequest } from '../pki/cmc/tagged-request.ts';
import { asRefusal, badMessage, badMessageCheck, CmcRefusal } from './refusal.ts';

/** The CMS layer of a request (RFC 5272 §3.2). Only the digest of the content has been verified. */
export type Envelope =
  | { readonly kind: 'signed'; readonly signedData: SignedData; readonly signer: SignerInfo }
  /** RFC 5272 §6.11: a revocation request authenticated only by a shared secret. */
  | { readonly kind: 'unsigned'; readonly signedData: SignedData }
  /** RFC 5272 §3.2: a shared secret instead of a key. */
  | { readonly kind: 'authenticated'; readonly data: AuthenticatedData };

/** A certification request of the message, or its error. */
export type RequestPart =
  | { readonly bodyPartID: BodyPartID; readonly request: CmcCertificateRequest }
  | { readonly bodyPartID: BodyPartID; readonly refusal: CmcRefusal };

export interface Message {
  readonly envelope: Envelope;
  /** The PKIData as received. */
  readonly content: Buffer;
  readonly data: PkiData;
  readonly controls: readonly CmcControl[];
  /** PKCS #10 and CRMF; other kinds are only in `data`. */
  readonly requests: readonly RequestPart[];
}

/**
 * Reads the CMS layer.
 * @param body BER ContentInfo
 * @throws DerError; CmcRefusal badMessageCheck for a digest mismatch or encrypted content; badRequest for more than one
 * signature
 */
export function readEnvelope(body: Buffer): Envelope {
  const der = berToDer(body);
  const { contentType, content } = parseContentInfo(der);
  switch (contentType) {
    case OID.signedData:
      return signedEnvelope(parseSignedData(der));
    case OID.authenticatedData:
      return authenticatedEnvelope(parseAuthenticatedData(der));
    case OID.data:
      return { kind: 'unsigned', signedData: unsignedData(content) };
    case OID.envelopedData:
      throw badMessageCheck('This server cannot decrypt the message. Send it unencrypted: TLS protects it.');
    default:
      throw badMessage(0, 'The message is neither SignedData nor AuthenticatedData.');
  }
}

/**
 * RFC 5272 §6.11 leaves the form of an unsigned revocation request open: Dogtag's CMCRequest puts the PKIData into
 * id-data instead of a SignedData without signatures.
 */
function unsignedData(data: Buffer): SignedData {
  const content = parseDer(data, Tag.OCTET_STRING, 'Data').value;
  return { contentType: OID.pkiData, content, certificates: [], crls: [], signerInfos: [] };
}

function signedEnvelope(signedData: SignedData): Envelope {
  const { signerInfos, contentType, content } = signedData;
  if (contentType !== OID.pkiData || content === undefined) throw badMessage(0, 'The signed content is not PKIData.');
  const [signer, ...more] = signerInfos;
  if (signer === undefined) return { kind: 'unsigned', signedData };
  if (more.length > 0) throw badMessageCheck('The message must have one signature only.');
  if (!digestMatches(signedData, signer))
    throw badMessageCheck('The content does not match the signature: its digest differs.');
  return { kind: 'signed', signedData, signer };
}

function authenticatedEnvelope(data: AuthenticatedData): Envelope {
  if (data.contentType !== OID.pkiData) throw badMessage(0, 'The authenticated content is not PKIData.');
  return { kind: 'authenticated', data };
}

function contentOf(envelope: Envelope): Buffer {
  return envelope.kind === 'authenticated' ? envelope.data.content : (envelope.signedData.content ?? Buffer.alloc(0));
}

/** Controls that may occur only once. */
const SINGLE: readonly ControlName[] = [
  'transactionId',
  'senderNonce',
  'recipientNonce',
  'identification',
  'identityProof',
  'identityProofV2',
  'popLinkRandom',
  'batchRequests',
];

/** Parses the content. @throws CmcError; CmcRefusal badRequest that names a repeated control */
export function readContent(envelope: Envelope): Message {
  const content = contentOf(envelope);
  const data = parsePkiData(content);
  const controls = data.controlSequence.map(parseControl);
  for (const name of SINGLE) {
    const [, second] = controlsNamed(controls, name);
    if (second !== undefined) throw badMessage(second.bodyPartID, `The control ${name} occurs twice.`);
  }
  return { envelope, content, data, controls, requests: data.reqSequence.flatMap(readRequest) };
}

function readRequest(tagged: TaggedRequest): RequestPart[] {
  if (tagged.kind === 'orm') return [];
  const { bodyPartID } = tagged;
  try {
    return [{ bodyPartID, request: parseCertificateRequest(tagged) }];
  } catch (error) {
    return [{ bodyPartID, refusal: asRefusal(error, bodyPartID) }];
  }
}

/** The requests that were parsed. */
export function readableRequests({ requests }: Pick<Message, 'requests'>): CmcCertificateRequest[] {
  return requests.flatMap((part) => ('request' in part ? [part.request] : []));
}

/** A control that may occur only once. */
export function control<N extends ControlName>(
  { controls }: Pick<Message, 'controls'>,
  name: N,
): Extract<KnownControl, { readonly name: N }> | undefined {
  const [first] = controlsNamed(controls, name);
  return first;
}

/** Rejects an unsigned message that is no revocation. */
export function checkUnsigned({ data, controls }: Message): void {
  const harmless: readonly string[] = [
    'transactionId',
    'senderNonce',
    'recipientNonce',
    'identification',
    'dataReturn',
  ];
  const other = controls.find(({ name }) => name !== 'revokeRequest' && !harmless.includes(name));
  if (other !== undefined || data.reqSequence.length > 0 || controlsNamed(controls, 'revokeRequest').length === 0)
    throw new CmcRefusal(
      'unauthenticated',
      'badIdentity',
      [other?.bodyPartID ?? 0],
      'The message is not signed. Only a revocation with a shared secret may be unsigned.',
    );
}
