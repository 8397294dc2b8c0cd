/** PKCS #12 (RFC 7292): the key encrypted with PBES2 and AES-256, certificates unencrypted, HMAC-SHA256 over all. */
import { createHash, createHmac, createPrivateKey, randomBytes } from 'node:crypto';
import { explicit, integer, NULL, octetString, oid, sequence, setOf, Tag, tlv } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import { encryptPrivateKey } from '../../pki/cms/encrypted-private-key.ts';
import { subjectKeyIdentifier } from '../../pki/x509/public-key.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';

export interface Pkcs12Content {
  readonly certificate: Certificate;
  /** From the issuer to the last one below the anchor. */
  readonly chain: readonly Certificate[];
  /** PKCS#8 PEM. */
  readonly privateKey: string;
  readonly password: string;
  /** The entry's friendlyName. */
  readonly name: string;
}

const SHROUDED_KEY_BAG = '1.2.840.113549.1.12.10.1.2';
const CERTIFICATE_BAG = '1.2.840.113549.1.12.10.1.3';
const X509_CERTIFICATE = '1.2.840.113549.1.9.22.1';
const FRIENDLY_NAME = '1.2.840.113549.1.9.20';
const LOCAL_KEY_ID = '1.2.840.113549.1.9.21';
const MAC_ITERATIONS = 100_000;
const SALT_LENGTH = 16;

export async function encodePkcs12({ certificate, chain, privateKey, password, name }: Pkcs12Content): Promise<Buffer> {
  const id = subjectKeyIdentifier(certificate.spki);
  const attributes = setOf(
    sequence(oid(FRIENDLY_NAME), setOf(tlv(Tag.BMP_STRING, bmp(name)))),
    sequence(oid(LOCAL_KEY_ID), setOf(octetString(id))),
  );
  const pkcs8 = createPrivateKey(privateKey).export({ format: 'der', type: 'pkcs8' });
  const shrouded = await encryptPrivateKey(pkcs8, Buffer.from(password, 'utf8'));
  pkcs8.fill(0);
  const keys = sequence(sequence(oid(SHROUDED_KEY_BAG), explicit(0, shrouded), attributes));
  const certificates = sequence(
    certificateBag(certificate, attributes),
    ...chain.map((certificate) => certificateBag(certificate, undefined)),
  );
  const safe = sequence(dataOf(certificates), dataOf(keys));
  return sequence(integer(3), dataOf(safe), mac(safe, password));
}

const dataOf = (content: Buffer): Buffer => sequence(oid(OID.data), explicit(0, octetString(content)));

function certificateBag({ der }: Certificate, attributes: Buffer | undefined): Buffer {
  const value = sequence(oid(X509_CERTIFICATE), explicit(0, octetString(der)));
  return sequence(oid(CERTIFICATE_BAG), explicit(0, value), ...(attributes === undefined ? [] : [attributes]));
}

function mac(content: Buffer, password: string): Buffer {
  const salt = randomBytes(SALT_LENGTH);
  const digest = createHmac('sha256', macKey(password, salt)).update(content).digest();
  const info = sequence(sequence(oid(OID.sha256), NULL), octetString(digest));
  return sequence(info, octetString(salt), integer(MAC_ITERATIONS));
}

/** RFC 7292 appendix B.2 with SHA-256 and ID 3; one block is the whole key. */
function macKey(password: string, salt: Buffer): Buffer {
  const block = 64;
  const repeated = (bytes: Buffer): Buffer => {
    const length = Math.ceil(bytes.length / block) * block;
    return Buffer.alloc(length, bytes.length === 0 ? undefined : bytes);
  };
  const secret = Buffer.concat([bmp(password), Buffer.alloc(2)]);
  let key: Buffer = Buffer.concat([Buffer.alloc(block, 3), repeated(salt), repeated(secret)]);
  for (let round = 0; round < MAC_ITERATIONS; round++) key = createHash('sha256').update(key).digest();
  return key;
}

/** BMPString: UTF-16, big-endian. */
const bmp = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
