/** Key wrapping: AES key wrap (RFC 3394) and id-alg-PWRI-KEK (RFC 3211 §2.3). */
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto';
import { OID } from '../der/oids.ts';

export type AesBits = 128 | 192 | 256;

export const WRAP_OIDS: Readonly<Record<AesBits, string>> = {
  128: OID.aes128Wrap,
  192: OID.aes192Wrap,
  256: OID.aes256Wrap,
};

export const CBC_OIDS: Readonly<Record<AesBits, string>> = {
  128: OID.aes128CBC,
  192: OID.aes192CBC,
  256: OID.aes256CBC,
};

/** RFC 3394 §2.2.3.1. */
const WRAP_IV = Buffer.alloc(8, 0xa6);
/** Octets of an AES block. */
export const BLOCK_LENGTH = 16;

/** The size of an AES key. @throws RangeError for any other length */
export function aesBits(key: Buffer): AesBits {
  const bits = key.length * 8;
  if (bits !== 128 && bits !== 192 && bits !== 256) throw new RangeError('not an AES key');
  return bits;
}

/** RFC 3394. `kek` has `bits`; the length of `key` is a multiple of eight octets, at least 16. */
export function wrapKey(bits: AesBits, kek: Buffer, key: Buffer): Buffer {
  const cipher = createCipheriv(`id-aes${bits}-wrap`, kek, WRAP_IV);
  return Buffer.concat([cipher.update(key), cipher.final()]);
}

/** RFC 3394; undefined if the integrity check fails. */
export function unwrapKey(bits: AesBits, kek: Buffer, wrapped: Buffer): Buffer | undefined {
  if (wrapped.length < 24 || wrapped.length % 8 !== 0) return undefined;
  try {
    const cipher = createDecipheriv(`id-aes${bits}-wrap`, kek, WRAP_IV);
    return Buffer.concat([cipher.update(wrapped), cipher.final()]);
  } catch {
    return undefined;
  }
}

/** RFC 3211 §2.3.2; undefined if the check octets disagree, as with a wrong password. */
export function unwrapPasswordKey(bits: AesBits, kek: Buffer, iv: Buffer, wrapped: Buffer): Buffer | undefined {
  if (wrapped.length < 2 * BLOCK_LENGTH || wrapped.length > 512 || wrapped.length % BLOCK_LENGTH !== 0)
    return undefined;
  const name = `aes-${bits}-cbc`;
  // The last block of the inner ciphertext is the outer IV.
  const outerIv = cbc(
    createDecipheriv(name, kek, wrapped.subarray(-2 * BLOCK_LENGTH, -BLOCK_LENGTH)),
    wrapped.subarray(-BLOCK_LENGTH),
  );
  const inner = cbc(createDecipheriv(name, kek, outerIv), wrapped);
  const block = cbc(createDecipheriv(name, kek, iv), inner);
  const length = block.readUInt8(0);
  const key = block.subarray(4, 4 + length);
  const check = block.subarray(1, 4).map((octet) => octet ^ 0xff);
  if (length < 3 || key.length !== length || !timingSafeEqual(check, key.subarray(0, 3))) return undefined;
  return key;
}

interface Cbc {
  setAutoPadding(on: boolean): unknown;
  update(data: Buffer): Buffer;
  final(): Buffer;
}

/** Runs whole blocks through a cipher without padding. */
function cbc(cipher: Cbc, data: Buffer): Buffer {
  cipher.setAutoPadding(false);
  return Buffer.concat([cipher.update(data), cipher.final()]);
}
