/** Names of tokens and keys in the configuration: `pkcs11:` URIs (RFC 7512) and CKA_IDs. */

/** What a URI may say. */
export interface Pkcs11Uri {
  readonly token?: string;
  readonly manufacturer?: string;
  readonly model?: string;
  readonly serial?: string;
  /** CK_SLOT_ID in decimal. */
  readonly 'slot-id'?: string;
  /** CKA_LABEL of the key. */
  readonly object?: string;
  /** CKA_ID of the key in hex. */
  readonly id?: string;
  readonly 'module-path'?: string;
  /** The path of a file. */
  readonly 'pin-source'?: string;
}

const PATH_ATTRIBUTES = ['token', 'manufacturer', 'model', 'serial', 'slot-id', 'object', 'id', 'type'];
const QUERY_ATTRIBUTES = ['module-path', 'pin-source'];

/** @returns the URI's parts, or what is wrong with it */
export function parsePkcs11Uri(uri: string): Pkcs11Uri | string {
  const [, path = '', query] = /^pkcs11:([^?]*)(?:\?(.*))?$/is.exec(uri) ?? [];
  if (!/^pkcs11:/i.test(uri)) return 'does not begin with pkcs11:';
  const parts = new Map<string, string>();
  const sections = [
    [path.split(';'), PATH_ATTRIBUTES],
    [(query ?? '').split('&'), QUERY_ATTRIBUTES],
  ] as const;
  for (const [attributes, known] of sections)
    for (const attribute of attributes.filter((attribute) => attribute !== '')) {
      const [name = '', ...rest] = attribute.split('=');
      const problem = attributeProblem(name, known, parts, rest.length > 0);
      if (problem !== undefined) return problem;
      const value = valueOf(name, rest.join('='));
      if (value === undefined) return `has an invalid value of ${name}`;
      parts.set(name, value);
    }
  parts.delete('type');
  return Object.fromEntries(parts);
}

function attributeProblem(
  name: string,
  known: readonly string[],
  parts: ReadonlyMap<string, string>,
  hasValue: boolean,
): string | undefined {
  if (name === 'pin-value') return 'contains pin-value: a secret must not be in the configuration file';
  if (!known.includes(name)) return `has the attribute "${name}", which is not supported`;
  if (parts.has(name)) return `has the attribute ${name} twice`;
  return hasValue ? undefined : `has the attribute ${name} without a value`;
}

/** undefined: invalid. */
function valueOf(name: string, raw: string): string | undefined {
  const octets = percentDecoded(raw);
  if (octets === undefined) return undefined;
  if (name === 'id') return octets.length === 0 ? undefined : octets.toString('hex');
  const text = octets.toString('utf8');
  if (!Buffer.from(text).equals(octets) || text.includes('\0')) return undefined;
  switch (name) {
    case 'type':
      return text === 'private' ? text : undefined;
    case 'slot-id':
      return isSlotId(text) ? text : undefined;
    case 'module-path':
      return text === '' ? undefined : text;
    case 'pin-source':
      return pinFile(text);
    default:
      return text;
  }
}

function percentDecoded(text: string): Buffer | undefined {
  if (/%(?![0-9a-f]{2})/i.test(text)) return undefined;
  const parts = text.split(/(%[0-9a-f]{2})/i);
  return Buffer.concat(parts.map((part, n) => (n % 2 === 1 ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part))));
}

/** A path or `file:` URI; not the program that `|` names. */
function pinFile(source: string): string | undefined {
  if (source.startsWith('|')) return undefined;
  const [, host, path] = /^file:(?:\/\/([^/]*)(?=\/))?(.*)$/is.exec(source) ?? [undefined, undefined, source];
  return path === '' || !['', 'localhost', undefined].includes(host) ? undefined : path;
}

/** The URI of a private key, without its PIN. */
export function privateKeyUri(parts: { readonly [Name in keyof Pkcs11Uri]?: string | number | undefined }): string {
  const written = (name: string, value: string | number): string =>
    name === 'id' ? String(value).replace(/../g, '%$&') : encodeURIComponent(value);
  const given = Object.entries(parts).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${written(name, value)}`,
  );
  return `pkcs11:${[...given, 'type=private'].join(';')}`;
}

/** CK_SLOT_ID, decimal or `0x…`, of at most 64 bits. */
export const isSlotId = (text: string): boolean =>
  /^(\d{1,20}|0x[0-9a-f]{1,16})$/i.test(text) && BigInt(text) <= 0xffff_ffff_ffff_ffffn;

/** A CKA_ID in the configuration: `0102`, `0x0102`, `%01%02` or `01:02`. @returns hex; undefined if invalid */
export function keyId(text: string): string | undefined {
  if (!/^((0x)?([0-9a-f]{2})+|(%[0-9a-f]{2})+|[0-9a-f]{2}(:[0-9a-f]{2})*)$/i.test(text)) return undefined;
  return text.replace(/^0x|[%:]/gi, '').toLowerCase();
}
