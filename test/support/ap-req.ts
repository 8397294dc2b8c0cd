/** The AP-REQ of a Kerberos token (RFC 4120 §5.5.1), with nothing true in it but its cleartext. */
import { parseSpnegoToken, SpnegoTokenError } from '../../src/auth/gssapi/spnego-token.ts';
import { explicit, integer, octetString, sequence, tlv } from '../../src/pki/der/der.ts';

export const text = (value: string): Buffer => tlv(0x1b, Buffer.from(value));
export const encrypted = sequence(explicit(0, integer(18)), explicit(2, octetString(Buffer.alloc(64))));

export interface Parts {
  mechanisms?: readonly string[];
  mechToken?: Buffer | null;
  ticket?: Buffer;
  realm?: Buffer;
  sname?: readonly Buffer[];
  encrypted?: Buffer;
  version?: number;
}

export function apReq({
  ticket,
  realm = text('EXAMPLE.TEST'),
  sname = [text('HTTP'), text('localhost')],
  version = 5,
  ...parts
}: Parts = {}): Buffer {
  const name = sequence(explicit(0, integer(3)), explicit(1, sequence(...sname)));
  const inner = sequence(
    explicit(0, integer(version)),
    explicit(1, realm),
    explicit(2, name),
    explicit(3, parts.encrypted ?? encrypted),
  );
  const request = sequence(
    explicit(0, integer(5)),
    explicit(1, integer(14)),
    explicit(2, tlv(0x03, Buffer.from([0, 0, 0, 0, 0]))),
    explicit(3, ticket ?? tlv(0x61, inner)),
    explicit(4, parts.encrypted ?? encrypted),
  );
  return tlv(0x6e, request);
}

/** The defect that the parser names, or what it read. */
export function defect(token: Buffer): string {
  try {
    return `parsed: ${JSON.stringify(parseSpnegoToken(token))}`;
  } catch (error) {
    if (error instanceof SpnegoTokenError) return error.defect;
    throw error;
  }
}
