/** SMIMECapabilities (RFC 8551 §2.5.2): what the client can decrypt, in a CSR for a server-generated key (RFC 7030 §4.4.1). */
import { children, DerError, DerReader, parseDer, readOid, Tag } from '../der/der.ts';

export interface SMimeCapability {
  /** Dotted OID. */
  readonly oid: string;
  /** The algorithm that the parameters name, where they are an AlgorithmIdentifier (RFC 5753 §7: the key wrap). */
  readonly inner: string | undefined;
}

/** @param der the attribute's value. @throws DerError */
export function parseSMimeCapabilities(der: Buffer): SMimeCapability[] {
  return children(parseDer(der, Tag.SEQUENCE, 'SMIMECapabilities').value, 'SMIMECapability').map((element) => {
    if (element.tag !== Tag.SEQUENCE) throw new DerError('SMIMECapability: unexpected tag');
    const reader = new DerReader(element.value, 'SMIMECapability');
    const oid = readOid(reader.next(Tag.OID, 'capabilityID'));
    const parameters = reader.done ? undefined : reader.next(undefined, 'parameters');
    reader.end();
    return { oid, inner: parameters?.tag === Tag.SEQUENCE ? firstOid(parameters.value) : undefined };
  });
}

function firstOid(value: Buffer): string | undefined {
  const [first] = children(value);
  return first?.tag === Tag.OID ? readOid(first) : undefined;
}
