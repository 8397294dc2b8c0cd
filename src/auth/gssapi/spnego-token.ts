import { DerError, DerReader, Tag, contextConstructed, readInteger } from '../../pki/der/der.ts';

/** Maximum token size: Windows' MaxTokenSize, the limit of Kerberos clients in HTTP. */
export const MAX_TOKEN_BYTES = 65_536;

/** Why a token cannot authenticate, determined without a Kerberos library. */
type TokenDefect = 'malformed' | 'too large' | 'NTLM' | 'not Kerberos' | 'multi-leg';

/** A token rejected by its form. The message is for the log only. */
export class SpnegoTokenError extends Error {
  readonly defect: TokenDefect;

  constructor(defect: TokenDefect, message: string) {
    super(message);
    this.name = 'SpnegoTokenError';
    this.defect = defect;
  }
}

/** The service name in a ticket's cleartext. It is unverified until the ticket is decrypted. */
export interface TicketService {
  readonly realm: string;
  /** RFC 4120 §6.2 name components, such as `HTTP` and `est.example.com`. */
  readonly components: readonly string[];
}

/** Identifier octets of the APPLICATION tags. */
const INITIAL_CONTEXT_TOKEN = 0x60;
const TICKET = 0x61;
const AP_REQ = 0x6e;
const GENERAL_STRING = 0x1b;

/** DER content octets of the mechanism OIDs. */
const SPNEGO = Buffer.from('2b0601050502', 'hex'); // 1.3.6.1.5.5.2
const KRB5 = Buffer.from('2a864886f712010202', 'hex'); // 1.2.840.113554.1.2.2
const MS_KRB5 = Buffer.from('2a864882f712010202', 'hex'); // 1.2.840.48018.1.2.2, Windows' misspelled krb5
const NTLMSSP = Buffer.from('2b06010401823702020a', 'hex'); // 1.3.6.1.4.1.311.2.2.10
const NTLM_SIGNATURE = Buffer.from('NTLMSSP\0', 'latin1');
/** Token identifier of an AP-REQ (RFC 4121 §4.1). */
const AP_REQ_ID = Buffer.from([0x01, 0x00]);

/** Maximum mechanisms read from a NegTokenInit; real clients send two to five. */
const MECHANISMS_READ = 32;

const isKerberos = (mechanism: Buffer): boolean => mechanism.equals(KRB5) || mechanism.equals(MS_KRB5);

/** Decodes the base64 in `Authorization: Negotiate <token>` (RFC 4559 §4.2). */
export function decodeNegotiateToken(base64: string): Buffer {
  if (base64.length > Math.ceil(MAX_TOKEN_BYTES / 3) * 4)
    throw new SpnegoTokenError('too large', `token of ${base64.length} base64 characters`);
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64))
    throw new SpnegoTokenError('malformed', 'token is not base64');
  const token = Buffer.from(base64, 'base64');
  if (token.length > MAX_TOKEN_BYTES) throw new SpnegoTokenError('too large', `token of ${token.length} bytes`);
  return token;
}

/**
 * Parses a client's first token: NegTokenInit (RFC 4178 §4.2.1), or a bare RFC 4121 token, around an AP-REQ (RFC 4120
 * §5.5.1), down to the cleartext service name of its ticket. Verifies nothing.
 * @throws SpnegoTokenError if no single-leg Kerberos authentication can result
 */
export function parseSpnegoToken(token: Buffer): TicketService {
  try {
    return readToken(token);
  } catch (error) {
    if (error instanceof DerError) throw new SpnegoTokenError('malformed', error.message);
    throw error;
  }
}

function ntlm(): SpnegoTokenError {
  return new SpnegoTokenError('NTLM', 'the client sent an NTLM token: it has no Kerberos ticket for this service');
}

/** Rejects tokens without framing, which may occur bare or inside SPNEGO. */
function refuseUnframed(token: Buffer): void {
  if (token.subarray(0, NTLM_SIGNATURE.length).equals(NTLM_SIGNATURE)) throw ntlm();
  if (token[0] === AP_REQ)
    throw new SpnegoTokenError('multi-leg', 'a bare AP-REQ (DCE style) needs a third leg, which HTTP does not have');
}

function readToken(token: Buffer): TicketService {
  refuseUnframed(token);
  if (token[0] === contextConstructed(1))
    throw new SpnegoTokenError('multi-leg', 'the token continues a negotiation that was never started');
  const context = DerReader.of(token, 'InitialContextToken', INITIAL_CONTEXT_TOKEN);
  const { value: mechanism } = context.next(Tag.OID, 'thisMech');
  if (isKerberos(mechanism)) return readKerberosToken(token);
  if (!mechanism.equals(SPNEGO)) throw new SpnegoTokenError('not Kerberos', 'neither SPNEGO nor Kerberos');
  const negotiation = context.enter(contextConstructed(0), 'negTokenInit');
  context.end();
  return readNegTokenInit(negotiation.enter(Tag.SEQUENCE, 'NegTokenInit'));
}

function readNegTokenInit(init: DerReader): TicketService {
  checkMechanisms(init.enter(contextConstructed(0), 'mechTypes').enter(Tag.SEQUENCE, 'MechTypeList'));
  init.optional(contextConstructed(1), 'reqFlags');
  const mechToken = init.optional(contextConstructed(2), 'mechToken');
  if (mechToken === undefined)
    throw new SpnegoTokenError('multi-leg', 'the client sent no optimistic token and expects a second leg');
  return readKerberosToken(new DerReader(mechToken.value, 'mechToken').next(Tag.OCTET_STRING, 'mechToken').value);
}

/** The optimistic token belongs to the first mechanism (RFC 4178 §4.2.1), which must be Kerberos. */
function checkMechanisms(list: DerReader): void {
  const preferred = list.next(Tag.OID, 'MechType').value;
  if (isKerberos(preferred)) return;
  for (let read = 1; read < MECHANISMS_READ && !list.done; read++) {
    if (isKerberos(list.next(Tag.OID, 'MechType').value))
      throw new SpnegoTokenError('multi-leg', 'Kerberos is not the first mechanism, choosing it takes a second leg');
  }
  if (preferred.equals(NTLMSSP)) throw ntlm();
  throw new SpnegoTokenError('not Kerberos', 'the client offers no Kerberos mechanism');
}

/** RFC 4121 §4.1: framing, token identifier, AP-REQ. */
function readKerberosToken(token: Buffer): TicketService {
  refuseUnframed(token);
  const context = DerReader.of(token, 'KerberosToken', INITIAL_CONTEXT_TOKEN);
  const mechanism = context.next(Tag.OID, 'thisMech');
  if (!isKerberos(mechanism.value)) throw new SpnegoTokenError('not Kerberos', 'the token is for another mechanism');
  const inner = token.subarray(headerLength(token) + mechanism.raw.length);
  if (!inner.subarray(0, 2).equals(AP_REQ_ID)) throw new SpnegoTokenError('malformed', 'the token is not an AP-REQ');
  return readApReq(DerReader.of(inner.subarray(2), 'AP-REQ', AP_REQ).enter(Tag.SEQUENCE, 'AP-REQ'));
}

/** Octets of identifier and length of a definite-length element. */
function headerLength(element: Buffer): number {
  const length = element[1] ?? 0;
  return length < 0x80 ? 2 : 2 + (length & 0x7f);
}

function readApReq(request: DerReader): TicketService {
  expectInteger(request, 0, 5, 'pvno');
  expectInteger(request, 1, 14, 'msg-type');
  request.next(contextConstructed(2), 'ap-options');
  const ticket = request.enter(contextConstructed(3), 'ticket').enter(TICKET, 'Ticket').enter(Tag.SEQUENCE, 'Ticket');
  request.next(contextConstructed(4), 'authenticator');
  request.end();
  expectInteger(ticket, 0, 5, 'tkt-vno');
  const realm = kerberosString(ticket.enter(contextConstructed(1), 'realm'), 'realm');
  const sname = ticket.enter(contextConstructed(2), 'sname').enter(Tag.SEQUENCE, 'PrincipalName');
  ticket.next(contextConstructed(3), 'enc-part');
  ticket.end();
  return { realm, components: nameComponents(sname) };
}

function expectInteger(reader: DerReader, n: number, expected: number, field: string): void {
  const value = readInteger(reader.enter(contextConstructed(n), field).next(Tag.INTEGER, field), field);
  if (value !== expected) throw new DerError(`${field}: not ${expected}`);
}

function nameComponents(sname: DerReader): string[] {
  sname.next(contextConstructed(0), 'name-type');
  const strings = sname.enter(contextConstructed(1), 'name-string').enter(Tag.SEQUENCE, 'name-string');
  const components: string[] = [];
  while (!strings.done) {
    if (components.length === 8) throw new DerError('sname: more than eight components');
    components.push(kerberosString(strings, 'name-string'));
  }
  if (components.length === 0) throw new DerError('sname: no component');
  return components;
}

/** RFC 4120 §5.2.1: GeneralString restricted to ASCII; libraries send UTF-8. */
function kerberosString(reader: DerReader, field: string): string {
  const { value } = reader.next(GENERAL_STRING, field);
  if (value.length > 1024) throw new DerError(`${field}: too long`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(value);
  } catch {
    throw new DerError(`${field}: not UTF-8`);
  }
}
