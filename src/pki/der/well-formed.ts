/** Whether octets whose type nobody here knows are DER all the way down. */
import { children, DerError, parseDer, Tag, type DerElement } from './element.ts';

const CONSTRUCTED = 0x20;
const UNIVERSAL_CONSTRUCTED: ReadonlySet<number> = new Set([Tag.SEQUENCE, Tag.SET, 0x28, 0x2b]);
/** More than any extension in use needs. */
const MAX_DEPTH = 16;

/**
 * One whole value and nothing after it; every constructed value in it is read too (X.690 §10).
 * @throws DerError
 */
export function requireDer(bytes: Buffer, what = 'element'): void {
  check(parseDer(bytes, undefined, what), what, 1);
}

function check({ tag, value }: DerElement, what: string, depth: number): void {
  if (depth > MAX_DEPTH) throw new DerError(`${what}: nested too deep`);
  const isUniversal = (tag & 0xc0) === 0;
  const isConstructed = (tag & CONSTRUCTED) !== 0;
  // strings come in one piece (X.690 §10.2), sequences and sets never as primitives
  if (isUniversal && isConstructed !== UNIVERSAL_CONSTRUCTED.has(tag | CONSTRUCTED))
    throw new DerError(`${what}: unexpected tag`);
  if (tag === 0) throw new DerError(`${what}: unexpected tag`);
  if (isConstructed) for (const child of children(value, what)) check(child, what, depth + 1);
}
