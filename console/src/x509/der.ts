/** Reads DER (X.690) for display only. No decision depends on it. */

export interface Element {
  /** The identifier octet. */
  readonly tag: number;
  readonly content: Uint8Array;
  /** The element with its header. */
  readonly raw: Uint8Array;
}

/** Reads consecutive elements. @throws RangeError if they are not DER */
export function readAll(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const { tag, start, end } = readHead(bytes, at);
    elements.push({ tag, content: bytes.subarray(start, end), raw: bytes.subarray(at, end) });
    at = end;
  }
  return elements;
}

/** The elements in a constructed one. */
export const within = (element: Element | undefined): Element[] =>
  element === undefined ? [] : readAll(element.content);

function readHead(bytes: Uint8Array, at: number): { tag: number; start: number; end: number } {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || first === undefined) throw new RangeError('truncated');
  let [length, start] = [first, at + 2];
  if (first >= 0x80) {
    const octets = first & 0x7f;
    if (octets === 0 || octets > 4) throw new RangeError('length');
    length = 0;
    for (const octet of bytes.subarray(start, start + octets)) length = length * 256 + octet;
    start += octets;
  }
  if (start + length > bytes.length) throw new RangeError('truncated');
  return { tag, start, end: start + length };
}

export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (octet) => octet.toString(16).padStart(2, '0')).join('');

/** An OBJECT IDENTIFIER in dots. */
export function oid({ content }: Element): string {
  const numbers: number[] = [];
  let value = 0;
  for (const octet of content) {
    value = value * 128 + (octet & 0x7f);
    if (octet >= 0x80) continue;
    if (numbers.length === 0)
      numbers.push(value < 80 ? Math.floor(value / 40) : 2, value < 80 ? value % 40 : value - 80);
    else numbers.push(value);
    value = 0;
  }
  return numbers.join('.');
}

/** A character string of any of X.509's types. */
export function characters({ tag, content }: Element): string {
  if (tag === 0x1e) return new TextDecoder('utf-16be').decode(content);
  return new TextDecoder(tag === 0x0c ? 'utf-8' : 'latin1').decode(content);
}

export const isText = ({ tag }: Element): boolean => [0x0c, 0x12, 0x13, 0x14, 0x16, 0x1a, 0x1e].includes(tag);

/** The DER of the PEM blocks of a text. */
export function fromPem(pem: string): Uint8Array[] {
  return [...pem.matchAll(/-----BEGIN [^-]+-----([^-]+)-----END [^-]+-----/g)].flatMap(([, body = '']) => {
    try {
      return [Uint8Array.from(atob(body.replace(/\s+/g, '')), (character) => character.charCodeAt(0))];
    } catch {
      return [];
    }
  });
}
