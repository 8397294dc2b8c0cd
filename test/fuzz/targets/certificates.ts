/** Certificates with every extension and every kind of key that is read here, for several targets to begin with. */
import { integer, NULL, octetString, oid, sequence, tlv, utf8String } from '../../../src/pki/der/der.ts';
import {
  encodeAuthorityInfoAccess,
  encodeCrlDistributionPoints,
  type Extension,
} from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { SIGNATURE_ALGORITHMS } from '../../../src/pki/x509/signature-algorithms.ts';
import {
  aki,
  basicConstraints,
  dns,
  email,
  extKeyUsage,
  extension,
  ip,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  ski,
  subjectAltName,
  uri,
  type Issuer,
} from '../../support/certificates.ts';
import { keyPair } from '../../support/keys.ts';
import { commonName } from '../../support/csr.ts';
import { ed25519 } from '../fixed-keys.ts';

const subtree = (tag: number, text: string): Buffer => sequence(tlv(tag, Buffer.from(text, 'latin1')));

/** Permitted and excluded names of every kind. */
export const nameConstraints: Extension = extension(
  OID.nameConstraints,
  true,
  sequence(
    tlv(
      0xa0,
      subtree(0x82, 'example'),
      subtree(0x81, 'b.example'),
      sequence(tlv(0x87, Buffer.from('0a000000ff000000', 'hex'))),
    ),
    tlv(0xa1, subtree(0x86, '.bad.example'), subtree(0x82, 'bad.example'), sequence(tlv(0xa4, commonName('bad')))),
  ),
);

const policies: readonly Extension[] = [
  extension(OID.certificatePolicies, false, sequence(sequence(oid('2.5.29.32.0')))),
  extension(OID.policyConstraints, false, sequence(tlv(0x80, Buffer.of(0)))),
  extension(OID.inhibitAnyPolicy, true, integer(0)),
];

export const altNames = subjectAltName(
  dns('a.example'),
  dns('*.b.example'),
  email('a@b.example'),
  uri('urn:x:y'),
  uri('https://user@c.example:8443/path?query'),
  ip('10.0.0.1'),
  ip('2001:db8::1'),
  { kind: 'other', tag: 0xa0, der: tlv(0xa0, oid('1.3.6.1.4.1.311.20.2.3'), tlv(0xa0, utf8String('a@b'))) },
);

const published: readonly Extension[] = [
  extension(OID.cRLDistributionPoints, false, encodeCrlDistributionPoints(['http://a.example/ca.crl'])),
  extension(
    OID.authorityInfoAccess,
    false,
    encodeAuthorityInfoAccess({ ocsp: ['http://a.example/ocsp'], caIssuers: ['http://a.example/ca.cer'] }),
  ),
];

/** A root, an issuing CA below it and a client, with keys that are the same in every run. */
export async function hierarchy(): Promise<{ root: Issuer; issuing: Issuer; client: Issuer }> {
  const fixed = (name: string) => ({ kind: 'ed25519', keys: ed25519(name), serial: '01' }) as const;
  const root = await makeCa('CN=Root,O=Fuzz', { ...fixed('root'), extensions: [ski(ed25519('root'))] });
  const issuing = await makeCa('CN=Issuing,O=Fuzz', {
    ...fixed('issuing'),
    issuer: root,
    extensions: [ski(ed25519('issuing')), aki(ed25519('root')), nameConstraints, ...published],
  });
  const client = await makeClient('serialNumber=7+CN=device-1,O=Fuzz', issuing, {
    ...fixed('client'),
    extensions: [
      basicConstraints(false),
      keyUsage('digitalSignature'),
      extKeyUsage(OID.clientAuth),
      subjectAltName(dns('a.example'), email('a@b.example'), ip('10.0.0.10')),
      aki(ed25519('issuing')),
      ...published,
    ],
  });
  return { root, issuing, client };
}

export async function certificateSeeds(): Promise<Buffer[]> {
  const { root, issuing, client } = await hierarchy();
  const all = await makeClient('CN=a\\, b,emailAddress=a@b.example,OU=x+OU=y,DC=c,2.5.4.45=#03020780,C=DE', issuing, {
    extensions: [altNames, nameConstraints, ...policies, ...published],
  });
  const rsa = await makeCa('CN=RSA', { kind: 'rsa:2048', serial: `00${'ff'.repeat(19)}` });
  const pss = await makeCertificate({
    subject: 'CN=PSS',
    issuer: rsa,
    kind: 'ec:P-384',
    algorithm: SIGNATURE_ALGORITHMS.rsassaPssSha256,
  });
  const odd = await makeCertificate({
    subject: 'CN=odd',
    keys: keyPair('ec:P-521', 'odd'),
    kind: 'ec:P-521',
    version: 1,
    notBefore: 0,
    notAfter: Date.UTC(2060, 0, 1),
    extensions: [extension('1.2.3.4', true, NULL), extension(OID.subjectKeyIdentifier, false, octetString(NULL))],
  });
  return [root, issuing, client, all, rsa, pss, odd].map(({ der }) => der);
}
