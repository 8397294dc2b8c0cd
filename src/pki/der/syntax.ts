/** ASN.1 types as values: each reads and writes one type. All readers throw DerError. */
import {
  children,
  DerError,
  DerReader,
  type DerElement,
  generalizedTime,
  integer,
  integerBytes,
  octetString,
  oid,
  readInteger,
  readOid,
  readString,
  readTime,
  Tag,
  tlv,
  utf8String,
} from './der.ts';

export interface Syntax<T> {
  /** undefined: any tag. */
  readonly tag: number | undefined;
  /** @param what names the element in errors */
  readonly read: (element: DerElement, what?: string) => T;
  readonly encode: (value: T) => Buffer;
}

/** A field of a {@link record} that may be absent. */
export interface Optional<T> extends Syntax<T> {
  /** Whether an element with this tag is the field. */
  readonly isNext: (tag: number) => boolean;
}

export interface AnySyntax extends Pick<Syntax<unknown>, 'tag' | 'read'> {
  readonly encode: (value: never) => Buffer;
}

export type Fields = Readonly<Record<string, AnySyntax>>;
export type ValueOf<S extends AnySyntax> = ReturnType<S['read']>;

type OptionalKey<F extends Fields> = {
  [K in keyof F]: F[K] extends { isNext: unknown } ? K : never;
}[keyof F];
export type RecordOf<F extends Fields> = { readonly [K in Exclude<keyof F, OptionalKey<F>>]: ValueOf<F[K]> } & {
  readonly [K in OptionalKey<F>]?: ValueOf<F[K]>;
};

export function syntax<T>(
  tag: number | undefined,
  read: (element: DerElement, what: string) => T,
  encode: (value: T) => Buffer,
): Syntax<T> {
  return {
    tag,
    read: (element, what = 'element') => {
      if (tag !== undefined && element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
      return read(element, what);
    },
    encode,
  };
}

export const optional = <T>(field: Syntax<T>, isNext = (tag: number) => tag === field.tag): Optional<T> => ({
  ...field,
  isNext,
});

/** Encodes with a syntax that was found by name: its value's type is the caller's promise. */
export const encodeAs = ({ encode }: AnySyntax, value: unknown): Buffer =>
  (encode as (value: unknown) => Buffer)(value);

/** A SEQUENCE, or an IMPLICIT one with another tag. */
export function record<F extends Fields>(name: string, fields: F, tag: number = Tag.SEQUENCE): Syntax<RecordOf<F>> {
  const all = Object.entries<AnySyntax & { isNext?: (tag: number) => boolean }>(fields);
  return syntax(
    tag,
    (element) => {
      const reader = new DerReader(element.value, name);
      const found: Record<string, unknown> = {};
      for (const [field, { read, tag: expected, isNext }] of all) {
        const { nextTag } = reader;
        if (isNext === undefined || (nextTag !== undefined && isNext(nextTag)))
          found[field] = read(reader.next(expected, field), `${name}.${field}`);
      }
      reader.end();
      // Each field has the type of its syntax.
      return found as RecordOf<F>;
    },
    (value: Readonly<Record<string, unknown>>) =>
      tlv(tag, ...all.flatMap(([field, item]) => (value[field] === undefined ? [] : [encodeAs(item, value[field])]))),
  );
}

/** SEQUENCE OF. @param least how many elements it has at least */
export const listOf = <T>(item: Syntax<T>, least: 0 | 1 = 0): Syntax<readonly T[]> =>
  syntax<readonly T[]>(
    Tag.SEQUENCE,
    ({ value }, what) => {
      const items = children(value, what).map((element) => item.read(element, what));
      if (items.length < least) throw new DerError(`${what}: empty`);
      return items;
    },
    (items) => tlv(Tag.SEQUENCE, ...items.map(item.encode)),
  );

/** The undecoded element. */
export const raw = (tag?: number): Syntax<Buffer> =>
  syntax(
    tag,
    (element) => element.raw,
    (der) => der,
  );

/** INTEGER or ENUMERATED with named values. */
export function named<N extends string>(tag: number, names: Readonly<Record<N, number>>): Syntax<N> {
  const byNumber = new Map(Object.entries<number>(names).map(([name, number]) => [number, name as N]));
  return syntax(
    tag,
    (element, what) => {
      const name = byNumber.get(readInteger(element, what));
      if (name === undefined) throw new DerError(`${what}: unknown`);
      return name;
    },
    (name) => tlv(tag, integer(names[name]).subarray(2)),
  );
}

export const OCTETS = syntax(Tag.OCTET_STRING, ({ value }) => value, octetString);
export const UTF8 = syntax(Tag.UTF8_STRING, readString, utf8String);
export const OBJECT_ID = syntax(Tag.OID, readOid, oid);
export const TIME = syntax(Tag.GENERALIZED_TIME, readTime, generalizedTime);

/** An INTEGER of any size as lowercase hex of its content octets: transactionIds are compared, never computed with. */
export const BIG_INTEGER = syntax(
  Tag.INTEGER,
  (element, what) => integerBytes(element, what).toString('hex'),
  (hex) => tlv(Tag.INTEGER, Buffer.from(hex, 'hex')),
);

/** Its parameters are DER. */
export const ALGORITHM = record('AlgorithmIdentifier', {
  oid: OBJECT_ID,
  parameters: optional(raw(), () => true),
});
export type AlgorithmIdentifier = ValueOf<typeof ALGORITHM>;
