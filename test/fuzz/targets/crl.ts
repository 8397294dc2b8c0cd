/** Certificate revocation lists, as an operator puts them in from elsewhere. */
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import {
  isListSignedBy,
  parseCertificateList,
  parseIssuingDistributionPoint,
  revokedEntries,
} from '../../../src/pki/x509/crl.ts';
import { contextConstructed, contextPrimitive, integer, sequence, tlv } from '../../../src/pki/der/der.ts';
import { findExtension } from '../../../src/pki/x509/extensions.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { extension, makeCrl } from '../../support/certificates.ts';
import { isDerError, type Target } from '../target.ts';
import { hierarchy } from './certificates.ts';
import { clientTrust } from '../../support/client-trust.ts';

const { root, issuing, client } = await hierarchy();
const known = [root, issuing, client].map(({ der }) => parseCertificate(der));
const trusted = { trustAnchors: encodePem('CERTIFICATE', root.der), intermediates: [issuing.der] };

async function read(input: Buffer): Promise<void> {
  const list = parseCertificateList(input);
  formatName(list.issuer);
  const point = findExtension(list.extensions, OID.issuingDistributionPoint);
  if (point !== undefined) parseIssuingDistributionPoint(point.value);
  Array.from(revokedEntries(list));
  for (const { publicKey } of known) await isListSignedBy(list, publicKey);
  const { revocation } = await clientTrust({ ...trusted, crls: [{ name: 'fuzzed', der: input }] });
  for (const certificate of known)
    for (const issuer of known) revocation.status(certificate, issuer, list.thisUpdate.getTime());
}

async function seeds(): Promise<Buffer[]> {
  const uri = tlv(contextPrimitive(6), Buffer.from('http://a.example/ca.crl'));
  const scope = sequence(
    tlv(contextConstructed(0), tlv(contextConstructed(0), uri)),
    tlv(contextPrimitive(1), Buffer.of(0xff)),
  );
  return [
    await makeCrl(root),
    await makeCrl(issuing, { revoked: ['01', '02', 'ff'] }),
    await makeCrl(issuing, { extensions: [extension(OID.issuingDistributionPoint, true, scope)], revoked: ['01'] }),
    await makeCrl(issuing, {
      revoked: ['01'],
      entryExtensions: [extension(OID.cRLReason, false, tlv(0x0a, Buffer.of(1)))],
      extensions: [extension(OID.deltaCRLIndicator, true, integer(1))],
      nextUpdate: null,
    }),
  ];
}

export const target: Target = {
  grammar: 'der',
  seeds,
  read,
  isRefusal: isDerError,
};
