/** A cursor over the fields of a SEQUENCE or SET. */
import { DerError, parseDer, readElement, Tag, type DerElement } from './element.ts';
import { readBoolean, readInteger, readOid } from './values.ts';

export class DerReader {
  readonly #bytes: Buffer;
  readonly #what: string;
  #offset = 0;

  constructor(value: Buffer, what: string) {
    this.#bytes = value;
    this.#what = what;
  }

  /** A reader over the content of the single SEQUENCE (or other `tag`) in `bytes`. */
  static of(bytes: Buffer, what: string, tag: number = Tag.SEQUENCE): DerReader {
    return new DerReader(parseDer(bytes, tag, what).value, what);
  }

  get done(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  get nextTag(): number | undefined {
    return this.#bytes[this.#offset];
  }

  /** The next element, which must exist and have this tag (any tag if omitted). */
  next(tag?: number, field = 'field'): DerElement {
    const element = readElement(this.#bytes, this.#offset, this.#bytes.length, this.#what, field);
    if (tag !== undefined && element.tag !== tag) throw new DerError(`${this.#what}.${field}: unexpected tag`);
    this.#offset = element.end;
    return element;
  }

  /** The next element if it has this tag; with `undefined`, if there is one. */
  optional(tag: number | undefined, field = 'field'): DerElement | undefined {
    return this.done || this.nextTag !== (tag ?? this.nextTag) ? undefined : this.next(tag, field);
  }

  /** A reader over the content of the next element. */
  enter(tag: number = Tag.SEQUENCE, field = 'field'): DerReader {
    return new DerReader(this.next(tag, field).value, `${this.#what}.${field}`);
  }

  /** DER of the next element, a SEQUENCE. */
  sequence(field: string): Buffer {
    return this.next(Tag.SEQUENCE, field).raw;
  }

  /** The next element, an OBJECT IDENTIFIER. */
  oid(field: string): string {
    return readOid(this.next(Tag.OID, field), `${this.#what}.${field}`);
  }

  /** The next element, an INTEGER within JavaScript's safe integers. */
  integer(field: string): number {
    return readInteger(this.next(Tag.INTEGER, field), `${this.#what}.${field}`);
  }

  /** The next element if it has this tag, a BOOLEAN that is false by default. */
  flag(tag: number, field: string): boolean {
    const element = this.optional(tag, field);
    return element !== undefined && readBoolean(element, `${this.#what}.${field}`);
  }

  /** The content of the next element, an OCTET STRING. */
  octets(field: string): Buffer {
    return this.next(Tag.OCTET_STRING, field).value;
  }

  /** Throws unless everything has been read. */
  end(): void {
    if (!this.done) throw new DerError(`${this.#what}: trailing fields`);
  }
}

/** What `read` makes of the fields of a SEQUENCE, all of which it must read. */
export function readFields<T>(element: DerElement, what: string, read: (fields: DerReader) => T): T {
  if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
  const fields = new DerReader(element.value, what);
  const result = read(fields);
  fields.end();
  return result;
}

export interface Algorithm {
  readonly oid: string;
  readonly parameters: DerElement | undefined;
}

/** AlgorithmIdentifier (RFC 5280 §4.1.1.2). */
export const readAlgorithm = (element: DerElement, what = 'AlgorithmIdentifier'): Algorithm =>
  readFields(element, what, (fields) => ({
    oid: fields.oid('algorithm'),
    parameters: fields.optional(undefined, 'parameters'),
  }));
