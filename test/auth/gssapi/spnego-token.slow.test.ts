import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeNegotiateToken, parseSpnegoToken, SpnegoTokenError } from '../../../src/auth/gssapi/spnego-token.ts';
import { defect } from '../../support/ap-req.ts';
import { Kdc, REALM } from '../../support/kdc.ts';
import { FLAG, initialToken } from '../../support/negotiate.ts';
import { requires } from '../../support/requires.ts';

const SERVICE = { realm: REALM, components: ['HTTP', 'localhost'] };

describe.skipIf(!requires('kdc'))('tokens of a real client (MIT)', () => {
  let kdc: Kdc;
  let cache: string;
  beforeAll(async () => {
    kdc = await Kdc.start();
    await kdc.addUser('alice');
    cache = await kdc.login('alice');
  });
  afterAll(async () => await kdc.stop());

  it.each([
    ['SPNEGO', {}],
    ['SPNEGO without mutual authentication', { flags: 0 }],
    ['the bare Kerberos mechanism', { mechanism: 'krb5' }],
  ] as const)('%s: the cleartext service name is read', async (_, options) => {
    const token = decodeNegotiateToken(await initialToken({ env: kdc.env, cache, ...options }));
    expect(parseSpnegoToken(token)).toEqual(SERVICE);
  });

  it('no truncation and no changed octet of it makes the parser do anything but answer or refuse', async () => {
    const token = decodeNegotiateToken(await initialToken({ env: kdc.env, cache }));
    for (let length = 0; length < token.length; length++)
      expect(() => parseSpnegoToken(token.subarray(0, length))).toThrow(SpnegoTokenError);
    for (let at = 0; at < token.length; at++) {
      const changed = Buffer.from(token);
      changed.writeUInt8(token.readUInt8(at) ^ (1 << (at % 8)), at);
      expect(defect(changed)).toMatch(/./);
    }
  });

  it('a DCE-style token, whose negotiation has three legs, is refused', async () => {
    const flags = FLAG.DCE_STYLE | FLAG.MUTUAL;
    for (const mechanism of ['spnego', 'krb5'] as const)
      expect(defect(decodeNegotiateToken(await initialToken({ env: kdc.env, cache, flags, mechanism })))).toBe(
        'multi-leg',
      );
  });
});
