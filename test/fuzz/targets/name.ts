/** Names as text: distinguished names of RFC 4514 and Kerberos principals. */
import { makePrincipal, parsePrincipal } from '../../../src/auth/gssapi/principal.ts';
import {
  foldedName,
  comparableName,
  formatName,
  parseDistinguishedName,
  parseName,
} from '../../../src/pki/x509/name.ts';
import { unlessRefused, type Target } from '../target.ts';
import { InputError } from '../../../src/pki/input-error.ts';

const isRefusal = (error: unknown): boolean => error instanceof InputError;

async function read(input: Buffer): Promise<void> {
  const text = input.toString('utf8');
  const principal = await unlessRefused(() => parsePrincipal(text), isRefusal);
  if (principal !== undefined) {
    const again = parsePrincipal(makePrincipal(principal.components, principal.realm).text);
    if (JSON.stringify(again.components) !== JSON.stringify(principal.components) || again.realm !== principal.realm)
      throw new Error('a principal that is another one when it is written and read');
  }
  const name = parseDistinguishedName(text);
  foldedName(name);
  if (comparableName(parseName(name.der)) !== comparableName(name))
    throw new Error('a name that its DER does not hold');
  const written = formatName(name);
  if (formatName(parseDistinguishedName(written)) !== written)
    throw new Error('a name that is another one when it is written and read');
}

export const target: Target = {
  grammar: 'text',
  // A principal's parts are bounded, and all other texts are the operator's.
  maxLength: 8192,
  words: ['CN=', 'O=', 'C=', 'DC=', 'emailAddress=', 'serialNumber=', '2.5.4.3=', '+', '\\2C', '\\ ', '#0c0161', '@'],
  seeds: () =>
    [
      'CN=device-1,O=Example,C=DE',
      'serialNumber=7+CN=a\\, b\\#,OU= x ',
      '1.2.3.4=#0c0161,CN=\\c3\\a9\\ ,DC=example',
      'host/a.example.com@EXAMPLE.COM',
      'a\\/b\\@c\\n@REALM',
    ].map((text) => Buffer.from(text)),
  read,
  isRefusal,
};
