/** What a CMC client makes of a shared secret: AuthenticatedData and the witnesses of RFC 5272. */
import { createCipheriv, createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyedWitness } from '../../src/pki/cmc/controls.ts';
import type { SharedSecret } from '../../src/pki/cmc/identity-proof.ts';
import { contentInfo, digestAlgorithm } from '../../src/pki/cms/cms.ts';
import { BLOCK_LENGTH } from '../../src/pki/cms/key-wrap.ts';
import {
  contextConstructed,
  explicit,
  integer,
  NULL,
  octetString,
  oid,
  parseDer,
  sequence,
  setOf,
  tlv,
} from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import type { HashName } from '../../src/pki/x509/signature-algorithms.ts';

/** HMAC's AlgorithmIdentifiers (RFC 4231 §3.1, RFC 8018 appendix B.1). */
const HMAC_OIDS: Readonly<Record<HashName, string>> = {
  sha256: OID.hmacWithSHA256,
  sha384: OID.hmacWithSHA384,
  sha512: OID.hmacWithSHA512,
};

const ITERATIONS = 210_000;
const SALT_LENGTH = 16;
const derive = promisify(pbkdf2);

/**
 * Authenticates content with a secret: PBKDF2-HMAC-SHA256, id-alg-PWRI-KEK over AES-256-CBC, HMAC-SHA256.
 * @param contentType dotted OID
 * @param password as for verifyAuthenticatedData
 * @returns DER ContentInfo
 */
export async function buildAuthenticatedData(
  contentType: string,
  content: Buffer,
  password: Buffer,
  iterations = ITERATIONS,
): Promise<Buffer> {
  const [salt, iv, key] = [randomBytes(SALT_LENGTH), randomBytes(BLOCK_LENGTH), randomBytes(32)];
  const kek = await derive(password, salt, iterations, 32, 'sha256');
  const hmac = sequence(oid(HMAC_OIDS.sha256), NULL);
  const recipient = tlv(
    contextConstructed(3),
    integer(0),
    tlv(contextConstructed(0), oid(OID.pbkdf2), sequence(octetString(salt), integer(iterations), hmac)),
    sequence(oid(OID.pwriKek), sequence(oid(OID.aes256CBC), octetString(iv))),
    octetString(wrapPasswordKey(kek, iv, key)),
  );
  const attributes = setOf(
    sequence(oid(OID.contentType), setOf(oid(contentType))),
    sequence(oid(OID.messageDigest), setOf(octetString(createHash('sha256').update(content).digest()))),
  );
  const mac = createHmac('sha256', key).update(attributes).digest();
  kek.fill(0);
  key.fill(0);
  return contentInfo(
    OID.authenticatedData,
    sequence(
      integer(0),
      setOf(recipient),
      hmac,
      tlv(contextConstructed(1), parseDer(digestAlgorithm('sha256')).value),
      sequence(oid(contentType), explicit(0, octetString(content))),
      tlv(contextConstructed(2), parseDer(attributes).value),
      octetString(mac),
    ),
  );
}

/**
 * RFC 3211 §2.3.1 with AES-256-CBC: length, three check octets, key and random padding, encrypted twice.
 * @param key 3 to 255 octets
 */
export function wrapPasswordKey(kek: Buffer, iv: Buffer, key: Buffer): Buffer {
  if (key.length < 3 || key.length > 255) throw new RangeError('a key of 3 to 255 octets can be wrapped');
  const length = Math.max(2 * BLOCK_LENGTH, Math.ceil((4 + key.length) / BLOCK_LENGTH) * BLOCK_LENGTH);
  const check = key.subarray(0, 3).map((octet) => octet ^ 0xff);
  const block = Buffer.concat([Buffer.of(key.length), check, key, randomBytes(length - 4 - key.length)]);
  const inner = cbc(kek, iv, block);
  const wrapped = cbc(kek, inner.subarray(-BLOCK_LENGTH), inner);
  return wrapped;
}

/** Runs whole blocks through AES-256-CBC without padding. */
function cbc(key: Buffer, iv: Buffer, data: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-cbc', key, iv).setAutoPadding(false);
  return Buffer.concat([cipher.update(data), cipher.final()]);
}

/** The witness of identityProofV2 (RFC 5272 §6.2.1). */
export function createIdentityProof(
  reqSequenceBytes: Buffer,
  { secret, identification = '' }: SharedSecret,
  hash: HashName = 'sha256',
): KeyedWitness {
  return keyedWitness(hash, reqSequenceBytes, [secret, Buffer.from(identification, 'utf8')]);
}

/** popLinkWitnessV2 (RFC 5272 §6.3.1.1). */
export function createPopLinkWitness(random: Buffer, secret: Buffer, hash: HashName = 'sha256'): KeyedWitness {
  return keyedWitness(hash, random, [secret]);
}

function keyedWitness(hash: HashName, data: Buffer, secret: readonly Buffer[]): KeyedWitness {
  const key = createHash(hash).update(Buffer.concat(secret)).digest();
  return {
    keyAlgorithm: { oid: OID[hash] },
    macAlgorithm: { oid: HMAC_OIDS[hash] },
    witness: createHmac(hash, key).update(data).digest(),
  };
}
