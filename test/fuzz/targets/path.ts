/**
 * Certificates that a client presents and CRLs, up to a verdict. An input is SEQUENCE { SEQUENCE OF Certificate (the
 * client's first), SEQUENCE OF CertificateList }. What names an issuer whose key is one of ours is signed anew with it,
 * so that changed contents get past the signature.
 */
import { sign } from 'node:crypto';
import { validateClientCertificate } from '../../../src/auth/mtls/mtls.ts';
import { bitString, children, parseDer, sequence, Tag, unlessMalformed } from '../../../src/pki/der/der.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import {
  aki,
  dns,
  makeCa,
  makeClient,
  makeCrl,
  ski,
  subjectAltName,
  extKeyUsage,
  keyUsage,
} from '../../support/certificates.ts';
import { spkiDer, type KeyPair } from '../../support/keys.ts';
import { ed25519 } from '../fixed-keys.ts';
import { isClientError, isDerError, unlessRefused, type Target } from '../target.ts';
import { hierarchy, nameConstraints } from './certificates.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { clientTrust } from '../../support/client-trust.ts';

const NOW = Date.UTC(2026, 5, 1);
const { root, issuing, client } = await hierarchy();
const trustAnchors = encodePem('CERTIFICATE', root.der);
const KEYS = ['root', 'issuing', 'middle', 'other', 'client', 'crl'].map((name) => {
  const keys = ed25519(name);
  return { keys, spki: spkiDer(keys) };
});

/** Name → key of the certificate in which the name is the subject. */
type Signers = ReadonlyMap<string, KeyPair>;

/** The fields of a TBSCertificate or TBSCertList, behind an explicit version. */
function fieldsOf(element: Buffer): Buffer[] {
  const [tbs] = children(parseDer(element, Tag.SEQUENCE).value);
  if (tbs === undefined) return [];
  const fields = children(tbs.value);
  return (fields[0]?.tag === 0xa0 ? fields.slice(1) : fields).map(({ raw }) => raw);
}

function signersOf(certificates: readonly Buffer[]): Signers {
  const signers = new Map<string, KeyPair>();
  for (const certificate of [...certificates, root.der]) {
    const [, , , , subject, spki] = unlessMalformed(() => fieldsOf(certificate), []);
    const known = KEYS.find((key) => spki !== undefined && key.spki.equals(spki));
    if (subject !== undefined && known !== undefined) signers.set(subject.toString('latin1'), known.keys);
  }
  return signers;
}

/** @param issuerAt the field with the issuer's name */
function signedAnew(element: Buffer, signers: Signers, issuerAt: number): Buffer {
  return unlessMalformed(() => {
    const [tbs, algorithm] = children(parseDer(element).value);
    const issuer = fieldsOf(element)[issuerAt];
    const keys = issuer && signers.get(issuer.toString('latin1'));
    if (tbs === undefined || algorithm === undefined || keys === undefined) return element;
    return sequence(tbs.raw, algorithm.raw, bitString(sign(null, tbs.raw, keys.privateKey)));
  }, element);
}

async function read(input: Buffer): Promise<void> {
  const [first, second] = children(parseDer(input, Tag.SEQUENCE).value);
  const parts = (list: typeof first): Buffer[] =>
    list === undefined ? [] : children(list.value).map(({ raw }) => raw);
  const sent = parts(first).slice(0, 12);
  const signers = signersOf(sent);
  const [leaf = Buffer.alloc(0), ...intermediates] = sent.map((der) => signedAnew(der, signers, 2));
  // version, signature, issuer
  const crls = parts(second)
    .slice(0, 4)
    .map((der, i) => ({ name: `${i}`, der: signedAnew(der, signers, 2) }));
  const known = { trustAnchors, intermediates: [issuing.der] };
  const trust = (await unlessRefused(() => clientTrust({ ...known, crls }), isDerError)) ?? (await clientTrust(known));
  const { path } = await validateClientCertificate(trust, leaf, intermediates, NOW, { expiredGraceSeconds: 86_400 });
  const anchor = path.at(-1);
  if (anchor === undefined || !trust.isAnchor(anchor)) throw new Error('a path that ends at no trust anchor');
}

async function seeds(): Promise<Buffer[]> {
  const fixed = (name: string) => ({ kind: 'ed25519', keys: ed25519(name), serial: '02' }) as const;
  const middle = await makeCa('CN=Middle', {
    ...fixed('middle'),
    issuer: root,
    pathLength: 1,
    extensions: [ski(ed25519('middle')), nameConstraints],
  });
  const below = await makeCa('CN=Below', { ...fixed('other'), issuer: middle, extensions: [aki(ed25519('middle'))] });
  const rolled = await makeCa('CN=Middle', { ...fixed('crl'), issuer: middle });
  const device = await makeClient('CN=b', below, {
    ...fixed('client'),
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth), subjectAltName(dns('b.example'))],
  });
  const revoking = await makeCrl(issuing, { revoked: ['01', '05', 'ff'] });
  const other = await makeCrl(root, { revoked: ['7f'] });
  const input = (certificates: readonly Buffer[], crls: readonly Buffer[]): Buffer =>
    sequence(sequence(...certificates), sequence(...crls));
  return [
    input([client.der], []),
    input([client.der, issuing.der], [other]),
    input([client.der], [revoking]),
    input([device.der, below.der, middle.der, root.der], [await makeCrl(middle)]),
    input([device.der, rolled.der, middle.der, below.der], [await makeCrl(rolled, { issuerName: 'CN=Middle' })]),
    input([root.der], []),
  ];
}

export const target: Target = {
  grammar: 'der',
  seeds,
  read,
  isRefusal: (error) => isClientError(error) || isDerError(error),
};
