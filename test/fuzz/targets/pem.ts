/** PEM files: certificates, CRLs and whatever else stands in them. */
import { parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { encodePem, parsePem } from '../../../src/pki/der/pem.ts';
import { isDerError, type Target } from '../target.ts';
import { hierarchy } from './certificates.ts';
import { InputError } from '../../../src/pki/input-error.ts';

function read(input: Buffer): void {
  const text = input.toString('utf8');
  for (const { label, der } of parsePem(text)) {
    const [again] = parsePem(encodePem(label, der));
    if (again === undefined || again.label !== label || !again.der.equals(der))
      throw new Error('a block that is read otherwise than it was written');
  }
  parsePemCertificates(text);
}

async function seeds(): Promise<Buffer[]> {
  const { root, issuing, client } = await hierarchy();
  const one = encodePem('CERTIFICATE', client.der);
  return [
    one,
    [client, issuing, root].map(({ der }) => encodePem('CERTIFICATE', der)).join(''),
    one.replaceAll('\n', '\r\n'),
    `Bag Attributes\n    friendlyName: x\n${one}\n${encodePem('EC PRIVATE KEY', Buffer.alloc(9))}`,
    encodePem('X509 CRL', Buffer.of(0x30, 0)),
  ].map((text) => Buffer.from(text));
}

export const target: Target = {
  grammar: 'text',
  words: ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----', '-----BEGIN ', '-----END ', '='],
  seeds,
  read,
  isRefusal: (error) => isDerError(error) || error instanceof InputError,
};
