/** The tokens of `Authorization: Negotiate`, and the principals that come of them. */
import { makePrincipal, parsePrincipal, PrincipalMapping } from '../../../src/auth/gssapi/principal.ts';
import { decodeNegotiateToken, parseSpnegoToken, SpnegoTokenError } from '../../../src/auth/gssapi/spnego-token.ts';
import { bitString, explicit, integer, octetString, oid, sequence, tlv } from '../../../src/pki/der/der.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import type { Target } from '../target.ts';

const KRB5 = '1.2.840.113554.1.2.2';
const mapping = new PrincipalMapping({
  principal_mapping: { 'alice@EXAMPLE.TEST': 'CN=Alice,O=Example' },
  default_template: 'CN={principal},OU={realm}',
  service_principal: 'HTTP/est.example@EXAMPLE.TEST',
});

function read(input: Buffer): void {
  if (!decodeNegotiateToken(input.toString('base64')).equals(input)) throw new Error('base64 that changes its octets');
  const { components, realm } = parseSpnegoToken(input);
  const principal = makePrincipal(components, realm);
  const mapped = mapping.map(principal);
  if ('subject' in mapped) formatName(mapped.subject);
  if (components.includes('') || realm === '') return;
  const again = parsePrincipal(principal.text);
  if (again.text !== makePrincipal(again.components, again.realm).text)
    throw new Error('a principal that is written otherwise');
}

const text = (value: string): Buffer => tlv(0x1b, Buffer.from(value));
const encrypted = sequence(explicit(0, integer(18)), explicit(2, octetString(Buffer.alloc(40, 1))));

function token(mechanism = KRB5): Buffer {
  const service = sequence(explicit(0, integer(3)), explicit(1, sequence(text('HTTP'), text('est.example'))));
  const ticket = sequence(
    explicit(0, integer(5)),
    explicit(1, text('EXAMPLE.TEST')),
    explicit(2, service),
    explicit(3, encrypted),
  );
  const request = sequence(
    explicit(0, integer(5)),
    explicit(1, integer(14)),
    explicit(2, bitString(Buffer.alloc(4))),
    explicit(3, tlv(0x61, ticket)),
    explicit(4, encrypted),
  );
  return tlv(0x60, oid(mechanism), Buffer.from([1, 0]), tlv(0x6e, request));
}

function negotiation(mechanisms: readonly string[], ...more: readonly Buffer[]): Buffer {
  const init = sequence(explicit(0, sequence(...mechanisms.map(oid))), ...more);
  return tlv(0x60, oid('1.3.6.1.5.5.2'), explicit(0, init));
}

function seeds(): Buffer[] {
  const microsoft = '1.2.840.48018.1.2.2';
  const ntlm = '1.3.6.1.4.1.311.2.2.10';
  const flags = explicit(1, bitString(Buffer.of(0x40), 1));
  return [
    token(),
    negotiation([KRB5, microsoft, ntlm], flags, explicit(2, octetString(token()))),
    negotiation([microsoft], explicit(2, octetString(token(microsoft)))),
    negotiation([ntlm, KRB5], explicit(2, octetString(Buffer.from('NTLMSSP\0')))),
    explicit(1, sequence(explicit(0, tlv(0x0a, Buffer.of(1))))),
    Buffer.from('NTLMSSP\0\x01\0\0\0'),
  ];
}

export const target: Target = {
  grammar: 'der',
  seeds,
  read,
  isRefusal: (error) => error instanceof SpnegoTokenError,
};
