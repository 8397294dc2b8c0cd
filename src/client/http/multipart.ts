/** multipart bodies (RFC 2046 §5.1). */
import { InputError } from '../../pki/input-error.ts';

export interface BodyPart {
  /** In lower case, without parameters. */
  readonly type: string;
  readonly contentType: string;
  readonly body: Buffer;
}

/** @throws InputError without a boundary or parts */
export function parseMultipart(contentType: string, body: Buffer): readonly BodyPart[] {
  const [, quoted, plain] = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw new InputError(`its type is "${contentType}", without a boundary`);
  const escaped = boundary.replace(/[^A-Za-z0-9]/g, '\\$&');
  const delimiter = new RegExp(`\\r?\\n--${escaped}(?=--|[ \\t]*\\r?\\n|[ \\t]*$)`);
  const [, ...pieces] = `\n${body.toString('latin1')}`.split(delimiter);
  const end = pieces.findIndex((piece) => piece.startsWith('--'));
  const parts = (end === -1 ? pieces : pieces.slice(0, end)).map(readPart);
  if (parts.length === 0) throw new InputError('it has no parts');
  return parts;
}

function readPart(piece: string): BodyPart {
  const text = piece.replace(/^[ \t]*\r?\n/, '\n');
  const end = /\r?\n\r?\n/.exec(text);
  const headers = end === null ? text : text.slice(0, end.index);
  const contentType = /^content-type\s*:\s*(.*(?:\r?\n[ \t].*)*)/im.exec(headers)?.[1]?.trim() ?? 'text/plain';
  const body = end === null ? '' : text.slice(end.index + end[0].length);
  const [type = ''] = contentType.toLowerCase().split(/[;\s]/);
  return { type, contentType, body: Buffer.from(body, 'latin1') };
}
