/**
 * Uses of a shared secret in CMC: proof of the sender's identity (RFC 5272 §6.2), proof that the same sender holds a
 * request's key (§6.3.1), and the right to revoke (§6.11).
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { DerError, Tag, parseDer } from '../der/der.ts';
import { HMAC_HASHES } from '../cms/authenticated-data.ts';
import { sameOctets } from '../cms/cms.ts';
import { singleValue } from '../pkcs10/csr-content.ts';
import { OID, oidName } from '../der/oids.ts';
import { DIGESTS, type HashName } from '../x509/signature-algorithms.ts';
import type { BodyPartID } from './body-part.ts';
import { CmcError } from './cmc-error.ts';
import { type KnownControl, KEYED_WITNESS, type KeyedWitness } from './controls.ts';
import type { AlgorithmIdentifier } from '../der/syntax.ts';
import type { CmcCertificateRequest } from './tagged-request.ts';

export interface SharedSecret {
  /** Octets of the secret; UTF-8 if it is text. */
  readonly secret: Buffer;
  /** The message's Identification control, if present. */
  readonly identification: string | undefined;
}

type IdentityProofV2 = Extract<KnownControl, { readonly name: 'identityProofV2' }>;

/**
 * Verifies the witness in constant time (RFC 5272 §6.2.1, §6.2.3): the MAC over reqSequence, keyed with the hash of the
 * secret and the identification, if present.
 * @param reqSequenceBytes as received, including the header
 * @throws CmcError `algorithm` (badAlg), naming the control, unless the hash is SHA-256, -384 or -512
 */
export function verifyIdentityProof(control: IdentityProofV2, reqSequenceBytes: Buffer, shared: SharedSecret): boolean {
  const { hash, mac } = algorithms(control.value, control.bodyPartID);
  return sameOctets(identityWitness(hash, mac, reqSequenceBytes, shared), control.value.witness);
}

const identification = ({ identification: text }: SharedSecret): Buffer => Buffer.from(text ?? '', 'utf8');

function identityWitness(hash: HashName, mac: HashName, data: Buffer, shared: SharedSecret): Buffer {
  return witness(hash, mac, data, [shared.secret, identification(shared)]);
}

function witness(hash: HashName, mac: HashName, data: Buffer, secret: readonly Buffer[]): Buffer {
  const key = createHash(hash).update(Buffer.concat(secret)).digest();
  const result = createHmac(mac, key).update(data).digest();
  key.fill(0);
  return result;
}

function algorithms(
  { keyAlgorithm, macAlgorithm }: KeyedWitness,
  bodyPartID: BodyPartID,
): { hash: HashName; mac: HashName } {
  const hash = withoutParameters(keyAlgorithm) ? DIGESTS.get(keyAlgorithm.oid) : undefined;
  const mac = withoutParameters(macAlgorithm) ? HMAC_HASHES.get(macAlgorithm.oid) : undefined;
  if (hash === undefined || mac === undefined) {
    const wrong = hash === undefined ? keyAlgorithm : macAlgorithm;
    throw new CmcError(
      'algorithm',
      [bodyPartID],
      `The witness uses ${oidName(wrong.oid)}; SHA-256, SHA-384 or SHA-512 and HMAC with one of those are accepted.`,
      'badAlg',
    );
  }
  return { hash, mac };
}

const withoutParameters = ({ parameters }: AlgorithmIdentifier): boolean =>
  parameters === undefined || parameters[0] === Tag.NULL;

/**
 * The popLinkWitnessV2 among a request's attributes (PKCS #10) or controls (CRMF).
 * @throws CmcError `request-malformed`, naming the request
 */
function popLinkWitness({ bodyPartID, attributes }: CmcCertificateRequest): KeyedWitness | undefined {
  try {
    const value = singleValue(attributes, OID.popLinkWitnessV2);
    return value && KEYED_WITNESS.read(parseDer(value, Tag.SEQUENCE, 'popLinkWitnessV2'));
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new CmcError(
      'request-malformed',
      [bodyPartID],
      `The request's popLinkWitnessV2 is not valid: ${error.message}.`,
      'badRequest',
      error,
    );
  }
}

/**
 * Whether the request contains a popLinkWitnessV2 for this secret and the message's popLinkRandom (RFC 5272 §6.3.1.1).
 * The key is the hash of the secret. Dogtag's clients append the identification, as in §6.2.3; that form is accepted
 * too.
 * @throws CmcError `request-malformed`; `algorithm` (badAlg), both naming the request
 */
export function verifyPopLinkWitness(request: CmcCertificateRequest, random: Buffer, shared: SharedSecret): boolean {
  const found = popLinkWitness(request);
  if (found === undefined) return false;
  const { hash, mac } = algorithms(found, request.bodyPartID);
  const alone = sameOctets(witness(hash, mac, random, [shared.secret]), found.witness);
  const withName = sameOctets(identityWitness(hash, mac, random, shared), found.witness);
  return alone || withName;
}

/** Compares the secret of a revokeRequest (RFC 5272 §6.11) in constant time, without disclosing the length. */
export function sameSecret(sent: Buffer, registered: Buffer): boolean {
  const digest = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(digest(sent), digest(registered));
}
