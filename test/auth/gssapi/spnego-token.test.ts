/** What the form of a token decides before any Kerberos library sees it, with tokens made by hand. */
import { describe, expect, it } from 'vitest';
import {
  MAX_TOKEN_BYTES,
  decodeNegotiateToken,
  parseSpnegoToken,
  SpnegoTokenError,
} from '../../../src/auth/gssapi/spnego-token.ts';
import { explicit, octetString, oid, sequence, tlv } from '../../../src/pki/der/der.ts';
import { apReq, defect, text, type Parts } from '../../support/ap-req.ts';

const SPNEGO = '1.3.6.1.5.5.2';
const KRB5 = '1.2.840.113554.1.2.2';
const MS_KRB5 = '1.2.840.48018.1.2.2';
const NEGOEX = '1.3.6.1.4.1.311.2.2.30';
const NTLMSSP = '1.3.6.1.4.1.311.2.2.10';

/** A type-1 NTLM message (MS-NLMP §2.2.1.1). */
const NTLM_MESSAGE = Buffer.from('4e544c4d535350000100000007820880000000000000000000000000', 'hex');

const krb5Token = (parts: Parts = {}, mechanism = KRB5): Buffer =>
  tlv(0x60, oid(mechanism), Buffer.from([1, 0]), apReq(parts));

function negTokenInit(parts: Parts = {}): Buffer {
  const { mechanisms = [KRB5], mechToken = krb5Token(parts) } = parts;
  const token = mechToken === null ? [] : [explicit(2, octetString(mechToken))];
  return tlv(0x60, oid(SPNEGO), explicit(0, sequence(explicit(0, sequence(...mechanisms.map(oid))), ...token)));
}

const SERVICE = { realm: 'EXAMPLE.TEST', components: ['HTTP', 'localhost'] };

describe('RFC 4178 tokens by hand', () => {
  it.each([
    ['krb5 alone', {}],
    ["Windows' list", { mechanisms: [MS_KRB5, KRB5, NEGOEX, NTLMSSP] }],
    ['the MS OID inside too', { mechanisms: [MS_KRB5], mechToken: krb5Token({}, MS_KRB5) }],
    ['eight name components', { sname: Array.from({ length: 8 }, () => text('a')) }, Array(8).fill('a')],
    ['a name of 1024 octets', { sname: [text('a'.repeat(1024))] }, ['a'.repeat(1024)]],
    ['five thousand mechanisms', { mechanisms: [KRB5, ...Array.from({ length: 5000 }, () => NTLMSSP)] }],
  ])('%s', (_, parts: Parts, components: string[] = SERVICE.components) => {
    expect(parseSpnegoToken(negTokenInit(parts))).toEqual({ ...SERVICE, components });
  });

  it('a token shorter than 128 octets is read', () => {
    const short = krb5Token({ encrypted: octetString(Buffer.alloc(1)) });
    expect(short.length).toBeLessThan(128);
    expect(parseSpnegoToken(short)).toEqual(SERVICE);
  });

  it.each([
    ['nothing', Buffer.alloc(0), 'malformed'],
    ['noise', Buffer.from('some noise'), 'malformed'],
    ['a raw NTLM message', NTLM_MESSAGE, 'NTLM'],
    ['the NTLM mechanism without a token', negTokenInit({ mechanisms: [NTLMSSP], mechToken: null }), 'NTLM'],
    ['NTLM inside SPNEGO', negTokenInit({ mechanisms: [NTLMSSP], mechToken: NTLM_MESSAGE }), 'NTLM'],
    ['NTLM under the name of Kerberos', negTokenInit({ mechToken: NTLM_MESSAGE }), 'NTLM'],
    [
      'NTLM first, Kerberos second',
      negTokenInit({ mechanisms: [NTLMSSP, KRB5], mechToken: NTLM_MESSAGE }),
      'multi-leg',
    ],
    ['Kerberos 32nd', negTokenInit({ mechanisms: [...Array<string>(31).fill(NEGOEX), KRB5] }), 'multi-leg'],
    ['Kerberos 33rd', negTokenInit({ mechanisms: [...Array<string>(32).fill(NEGOEX), KRB5] }), 'not Kerberos'],
    ['a bare AP-REQ', apReq(), 'multi-leg'],
    ['a bare AP-REQ inside SPNEGO', negTokenInit({ mechToken: apReq() }), 'multi-leg'],
    ['another version', krb5Token({ version: 4 }), 'malformed'],
    ['no optimistic token', negTokenInit({ mechToken: null }), 'multi-leg'],
    ['a NegTokenResp', explicit(1, sequence(explicit(0, tlv(0x0a, Buffer.from([1]))))), 'multi-leg'],
    ['another mechanism alone', negTokenInit({ mechanisms: [NEGOEX] }), 'not Kerberos'],
    ['another framing', tlv(0x60, oid(NEGOEX), Buffer.from([1])), 'not Kerberos'],
    ['no mechanisms', negTokenInit({ mechanisms: [] }), 'malformed'],
    ['an empty mechToken', negTokenInit({ mechToken: Buffer.alloc(0) }), 'malformed'],
    ['another mechanism inside', negTokenInit({ mechToken: tlv(0x60, oid(NEGOEX), apReq()) }), 'not Kerberos'],
    ['an AP-REP', negTokenInit({ mechToken: tlv(0x60, oid(KRB5), Buffer.from([2, 0]), apReq()) }), 'malformed'],
    ['trailing bytes', Buffer.concat([negTokenInit(), Buffer.from([0])]), 'malformed'],
    ['a malformed ticket', krb5Token({ ticket: tlv(0x61, octetString(Buffer.alloc(3))) }), 'malformed'],
    ['no sname', krb5Token({ sname: [] }), 'malformed'],
    ['nine name components', krb5Token({ sname: Array.from({ length: 9 }, () => text('a')) }), 'malformed'],
    ['a name that is not UTF-8', krb5Token({ sname: [tlv(0x1b, Buffer.from([0xff, 0xfe]))] }), 'malformed'],
    ['a realm of another type', krb5Token({ realm: octetString(Buffer.from('R')) }), 'malformed'],
    ['a giant realm', krb5Token({ realm: text('R'.repeat(2000)) }), 'malformed'],
    ['an indefinite length', Buffer.from('6080', 'hex'), 'malformed'],
    ['a length beyond the end', Buffer.from('6084ffffffff0606', 'hex'), 'malformed'],
    ['unbounded nesting', Buffer.alloc(60_000, 0x60), 'malformed'],
  ])('%s is refused', (_, token, expected) => {
    expect(defect(token)).toBe(expected);
  });
});

describe('the base64 of the header', () => {
  it('a token of exactly 64 KiB is decoded', () => {
    const token = Buffer.alloc(MAX_TOKEN_BYTES, 0x60);
    expect(decodeNegotiateToken(token.toString('base64')).equals(token)).toBe(true);
  });

  it.each([
    ['one byte more', Buffer.alloc(MAX_TOKEN_BYTES + 1).toString('base64'), 'too large'],
    ['a megabyte', 'A'.repeat(1_000_000), 'too large'],
    ['a megabyte that is not base64', '!'.repeat(1_000_000), 'too large'],
    ['nothing', '', 'malformed'],
    ['no base64', '!!!!', 'malformed'],
    ['missing padding', 'YWJjZA', 'malformed'],
    ['padding inside', 'YW=jZA==', 'malformed'],
    ['the URL alphabet', '-_-_', 'malformed'],
    ['white space', 'YW Jj ZA==', 'malformed'],
  ])('%s is refused', (_, base64, expected) => {
    const attempt = (): unknown => decodeNegotiateToken(base64);
    expect(attempt).toThrow(SpnegoTokenError);
    expect(attempt).toThrow(expect.objectContaining({ defect: expected }) as Error);
  });
});
