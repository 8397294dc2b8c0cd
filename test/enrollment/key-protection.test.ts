/** A generated key never leaves in a weaker form than configured: every kind of requester, with and without a pre-shared secret. */
import { describe, expect, test } from 'vitest';
import type { Identity } from '../../src/auth/identity.ts';
import { chooseProtection, type KeyProtectionSettings } from '../../src/enrollment/key-protection.ts';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsrWithoutProof } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import { buildCsr, commonName, csrAttribute, makeKey } from '../support/csr.ts';
import { mtlsIdentity, otpIdentity } from './support.ts';

const certificate = parseCertificate((await makeClient('CN=device-1', await makeCa('CN=Maker'))).der);
const TOKEN = Buffer.from('a one-time password');
const SECRET = Buffer.from('the pre-shared secret');
const key = makeKey();

const base = { requester: 'x', display: 'x' };
const IDENTITIES: readonly (readonly [string, Identity])[] = [
  ['one-time password', otpIdentity({ password: TOKEN })],
  ['client certificate', mtlsIdentity(certificate)],
  [
    'Kerberos ticket',
    { ...base, method: 'gssapi', principal: 'x@EXAMPLE.COM', subject: certificate.subject, replyToken: undefined },
  ],
  ['CMC shared secret', { ...base, method: 'cmc', certificate: undefined, issuer: undefined }],
];

function choose(
  identity: Identity,
  settings: Pick<KeyProtectionSettings, 'encryption'> & { readonly password?: Buffer },
  attributes: readonly Buffer[] = [],
): unknown {
  const csr = parseCsrWithoutProof(buildCsr(key, { subject: commonName('device-1'), attributes }));
  const none = { password: undefined, symmetricKeys: new Map<string, Buffer>(), certificates: new Map() };
  try {
    return chooseProtection({ ...none, ...settings }, csr, identity, Date.now());
  } catch (error) {
    return error;
  }
}

describe.each(IDENTITIES)('a requester with a %s', (_, identity) => {
  const byToken = identity.method === 'otp';

  test('"password": the one-time password of the request, otherwise the pre-shared secret', () => {
    expect(choose(identity, { encryption: 'password', password: SECRET })).toEqual({
      form: 'password',
      password: byToken ? TOKEN : SECRET,
    });
  });

  test('"password" without a pre-shared secret: only a one-time password gets a key', () => {
    const chosen = choose(identity, { encryption: 'password' });
    if (byToken) expect(chosen).toEqual({ form: 'password', password: TOKEN });
    else expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_PASSWORD_MISSING' });
  });

  test('"required": refused, whatever passwords there are', () => {
    const chosen = choose(identity, { encryption: 'required', password: SECRET });
    expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_ENCRYPTION_REQUIRED' });
  });

  test('"optional": TLS alone', () => {
    expect(choose(identity, { encryption: 'optional', password: SECRET })).toEqual({ form: 'tls' });
  });

  test.each(['password', 'required', 'optional'] as const)(
    '"%s": an unknown key identifier is an error',
    (encryption) => {
      for (const type of [OID.decryptKeyIdentifier, OID.asymmetricDecryptKeyIdentifier]) {
        const attributes = [csrAttribute(type, octetString(Buffer.from('ff', 'hex')))];
        const chosen = choose(identity, { encryption, password: SECRET }, attributes);
        expect(chosen).toMatchObject({ kind: 'bad-request', code: 'KEY_IDENTIFIER_UNKNOWN' });
      }
    },
  );
});
