/** Which requests are attempts to authenticate with Negotiate, and what comes of them, with a stand-in for the Kerberos library. */
import { describe, expect, it } from 'vitest';
import { checkGssapi, createGssapi, SpnegoPlugin, type GssapiOptions } from '../../../src/auth/gssapi/gssapi.ts';
import { PrincipalMapping } from '../../../src/auth/gssapi/principal.ts';
import { type TicketVerifier, UnverifiedTickets } from '../../../src/auth/gssapi/kerberos-verifier.ts';
import { oid, tlv } from '../../../src/pki/der/der.ts';
import { apReq } from '../../support/ap-req.ts';
import { KeptLog } from '../../support/kept-log.ts';
import { presenting } from '../../support/spnego.ts';

const TOKEN = tlv(0x60, oid('1.2.840.113554.1.2.2'), Buffer.from([1, 0]), apReq()).toString('base64');
const PRINCIPAL = 'HTTP/localhost@EXAMPLE.TEST';
const mapping = new PrincipalMapping({ default_template: 'CN={principal}' });
const unverified = new UnverifiedTickets();
const plugin = new SpnegoPlugin(unverified, mapping);
const VERIFIED: TicketVerifier = { verify: () => expect.fail('not called') };

describe('the Authorization header', () => {
  it('RFC 9110 §11.1: the scheme is recognized in any case and as a whole word', async () => {
    for (const scheme of ['Negotiate', 'nEGOTIATE '])
      expect(await plugin.authenticate(presenting(`${scheme} ${TOKEN}`))).toMatchObject({ principal: PRINCIPAL });
    for (const other of [undefined, '', `Negotiated ${TOKEN}`, `x-negotiate ${TOKEN}`, 'Basic YTpi'])
      expect(await plugin.authenticate(presenting(other))).toBeUndefined();
  });

  it('a token that is malformed is rejected with the reason in the detail only', async () => {
    for (const malformed of ['Negotiate', 'negotiate !'])
      await expect(plugin.authenticate(presenting(malformed))).rejects.toMatchObject({
        code: 'GSSAPI_FAILED',
        message: 'GSSAPI authentication failed',
        detail: 'malformed: token is not base64',
      });
  });
});

it('a principal that is not mapped is rejected', async () => {
  const unmapped = new SpnegoPlugin(unverified, new PrincipalMapping({}));
  await expect(unmapped.authenticate(presenting(`Negotiate ${TOKEN}`))).rejects.toMatchObject({
    code: 'GSSAPI_PRINCIPAL_NOT_MAPPED',
    detail: `${PRINCIPAL}: no entry in principal_mapping, and no default_template`,
  });
});

describe('the hint for the audit log', () => {
  it('is the claim of an unverified ticket, if there is one', () => {
    expect(plugin.hint(presenting(`Negotiate ${TOKEN}`))).toBe(`Kerberos hint, NOT verified: ${PRINCIPAL}`);
    for (const other of [undefined, 'Basic YTpi', 'Negotiate !'])
      expect(plugin.hint(presenting(other))).toBeUndefined();
  });

  it('is absent where tickets are verified', () => {
    expect(new SpnegoPlugin(VERIFIED, mapping).hint(presenting(`Negotiate ${TOKEN}`))).toBeUndefined();
  });

  it('does not hide an internal failure', () => {
    const broken: TicketVerifier = { ...VERIFIED, hint: () => expect.fail('a failure') };
    expect(() => new SpnegoPlugin(broken, mapping).hint(presenting(`Negotiate ${TOKEN}`))).toThrow('a failure');
  });
});

describe('the configuration', () => {
  const config: GssapiOptions['config'] = {
    enabled: true,
    gssproxy: false,
    fold_case: false,
    principal_mapping: {},
    default_template: '{principal}',
    require_crypto_verification: false,
  };

  it('is checked if GSSAPI is on', async () => {
    const keys = async (changes: Partial<typeof config>): Promise<string[]> =>
      (await checkGssapi({ config: { ...config, ...changes }, environment: {} })).mistakes.map(({ key }) => key);
    expect(await keys({})).toEqual(['gssapi.default_template']);
    expect(await keys({ default_template: 'CN={principal}' })).toEqual([]);
    expect(await keys({ enabled: false })).toEqual([]);
  });

  it('verification needs a service principal, and a keytab or gssproxy', () => {
    const create = (changes: Partial<typeof config>) => () =>
      createGssapi({ config: { ...config, ...changes }, environment: {}, log: new KeptLog() });
    const verified = { default_template: 'CN={principal}', require_crypto_verification: true };
    expect(create(verified)).toThrow('gssapi.service_principal is missing');
    const { service_principal = PRINCIPAL } = config;
    expect(create({ ...verified, service_principal })).toThrow('neither keytab nor gssproxy');
    expect(create({ ...verified, service_principal, gssproxy: true })().missingCredentials).toBeDefined();
    expect(create({ default_template: 'CN={principal}' })().missingCredentials).toBeUndefined();
  });
});
