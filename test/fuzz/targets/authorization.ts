/** Headers of a request: Authorization of every scheme, the path, and what the head says of the body. */
import { isBasic, parseBasic } from '../../../src/auth/otp/basic.ts';
import { isTokenLike } from '../../../src/auth/otp/token-hasher.ts';
import { parsePrincipal, PrincipalMapping } from '../../../src/auth/gssapi/principal.ts';
import { SpnegoPlugin } from '../../../src/auth/gssapi/gssapi.ts';
import { isClientError, type Target } from '../target.ts';

const principal = parsePrincipal('alice@EXAMPLE.TEST');
const plugin = new SpnegoPlugin(
  { verify: () => Promise.resolve({ principal, replyToken: undefined }) },
  new PrincipalMapping({ default_template: 'CN={principal}' }),
);

async function read(input: Buffer): Promise<void> {
  const authorization = input.toString('latin1');
  if (isBasic(authorization)) {
    const credentials = parseBasic(authorization);
    if (credentials !== undefined) isTokenLike(credentials.password);
  }
  await plugin.authenticate({ authorization, peerCertificate: undefined, peerIntermediates: [], address: '127.0.0.1' });
}

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

export const target: Target = {
  grammar: 'text',
  words: ['Basic ', 'Bearer ', 'Negotiate ', 'basic', 'NEGOTIATE', '=', '==', 'YII'],
  seeds: () =>
    [
      basic('device-1:0123456789abcdefABCD'),
      basic('é:ü:ü'),
      basic(':'),
      'Negotiate YIICAgYGKwYBBQUCoIIB9jCCAfKgDTALBgkqhkiG9xIBAgI=',
      'Negotiate TlRMTVNTUAABAAAA',
      'Bearer abc',
    ].map((text) => Buffer.from(text, 'latin1')),
  read,
  isRefusal: isClientError,
};
