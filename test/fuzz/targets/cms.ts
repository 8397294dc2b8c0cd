/** The cryptographic messages around CMC and certs-only: whatever stands in them, each certificate and signature too. */
import { parseAuthenticatedData, verifyAuthenticatedData } from '../../../src/pki/cms/authenticated-data.ts';
import { berElements, berToDer } from '../../../src/pki/der/ber.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import {
  digestMatches,
  parseContentInfo,
  parseSignedData,
  verifySignerInfo,
  buildSignedData,
  certsOnly,
  crlsOnly,
  issuerAndSerialNumber,
  keySigner,
  parseCertsOnly,
} from '../../../src/pki/cms/cms.ts';
import { parseCertificateList } from '../../../src/pki/x509/crl.ts';
import { explicit, integer, octetString, oid, sequence, setOf, unlessMalformed } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { makeCrl } from '../../support/certificates.ts';
import { isDerError, type Target } from '../target.ts';
import { certificateSeeds, hierarchy } from './certificates.ts';

const { root, issuing, client } = await hierarchy();
const known = [root, issuing, client].map(({ der }) => parseCertificate(der));
/** Deriving a key takes as long as the message says, up to a bound that is tested elsewhere. */
const QUICK_ITERATIONS = 50;

async function read(input: Buffer): Promise<void> {
  const der = berToDer(input);
  if (!berToDer(der).equals(der)) throw new Error('what was made DER is not DER');
  unlessMalformed(() => berElements(input), []);
  unlessMalformed(() => parseCertsOnly(der).map(parseCertificate), []);
  const { contentType } = parseContentInfo(der);
  if (contentType === OID.authenticatedData) {
    const data = parseAuthenticatedData(der);
    if (data.recipient.iterations <= QUICK_ITERATIONS) await verifyAuthenticatedData(data, Buffer.from('secret'));
    return;
  }
  const signed = parseSignedData(der);
  const certificates = signed.certificates.flatMap((certificate) =>
    unlessMalformed(() => [parseCertificate(certificate)], []),
  );
  for (const crl of signed.crls) unlessMalformed(() => parseCertificateList(crl), undefined);
  for (const signer of signed.signerInfos.slice(0, 2)) {
    digestMatches(signed, signer);
    for (const { publicKey } of [...certificates.slice(0, 4), ...known.slice(2)])
      await verifySignerInfo(signed, signer, publicKey);
  }
}

async function seeds(): Promise<Buffer[]> {
  const leaf = parseCertificate(client.der);
  const signers = [keySigner(client.keys.privateKey, leaf.publicKey, issuerAndSerialNumber(leaf))];
  const signed = { contentType: OID.data, content: Buffer.from('content'), signers, signingTime: new Date(0) };
  return [
    certsOnly(await certificateSeeds()),
    crlsOnly([await makeCrl(root, { revoked: ['01'] })]),
    await buildSignedData({ ...signed, certificates: [client.der] }),
    await buildSignedData({ ...signed, certificates: [] }),
    sequence(oid(OID.data), explicit(0, octetString(sequence(integer(1))))),
    sequence(oid(OID.signedData), explicit(0, sequence(integer(3), setOf(), sequence(oid(OID.pkiData)), setOf()))),
    // indefinite lengths and a string in pieces, as Bouncy Castle writes
    Buffer.from('308006092a864886f70d010701a080248004026162040163000000000000', 'hex'),
  ];
}

export const target: Target = { grammar: 'der', seeds, read, isRefusal: isDerError };
