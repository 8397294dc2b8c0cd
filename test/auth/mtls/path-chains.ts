/** Valid and invalid certification paths with the expected verdict; the test compares each with OpenSSL's. */
import { generateKeyPairSync } from 'node:crypto';

import { contextPrimitive, NULL, oid, sequence, tlv, Tag } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { SIGNATURE_ALGORITHMS } from '../../../src/pki/x509/signature-algorithms.ts';
import {
  aki,
  basicConstraints,
  extKeyUsage,
  extension,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  NOT_AFTER,
  NOT_BEFORE,
  ski,
  type Issuer,
} from '../../support/certificates.ts';
import { keyPair, restrictedPssKey } from '../../support/keys.ts';
import { makeNameConstraintChains } from './name-constraint-chains.ts';
import { CLIENT_USAGES as usages, NOW, UNKNOWN, type Chain } from '../chain.ts';

const DAY = 86_400_000;
const PURPOSE = 'client certificate not valid for client authentication';
const ISSUER_TIME = 'client certificate issuer expired or not yet valid';

// --- the table --------------------------------------------------------------------------------------------------

export async function makeChains(): Promise<Chain[]> {
  const root = await makeCa('CN=Root');
  const intermediate = await makeCa('CN=Intermediate', {
    issuer: root,
    extensions: [ski(keyPair('ec:P-256', 'CN=Intermediate'))],
  });
  const chains: Chain[] = [];
  const add = (
    what: string,
    leaf: Issuer,
    intermediates: readonly Issuer[],
    refused?: string,
    more: Partial<Chain> = {},
  ): void => {
    chains.push({ what, anchors: [root], intermediates, leaf, refused, ...more });
  };

  // paths that hold
  add('issued by the anchor', await makeClient('CN=a', root), []);
  add('one intermediate', await makeClient('CN=a', intermediate), [intermediate]);
  add('the anchor is an intermediate, its root unknown', await makeClient('CN=a', intermediate), [], undefined, {
    anchors: [intermediate],
  });
  const pinned = await makeClient('CN=pinned', root);
  add('the leaf is itself the anchor', pinned, [], undefined, { anchors: [pinned] });
  add('no extKeyUsage', await makeClient('CN=a', root, { extensions: [keyUsage('digitalSignature')] }), []);
  add('no keyUsage', await makeClient('CN=a', root, { extensions: [extKeyUsage(OID.clientAuth)] }), []);
  add('no extensions at all', await makeCertificate({ subject: 'CN=v1', issuer: root, version: 1 }), []);
  add(
    'several purposes',
    await makeClient('CN=a', root, { extensions: [extKeyUsage(OID.serverAuth, OID.clientAuth)] }),
    [],
  );
  for (const kind of ['rsa:2048', 'rsa:3072', 'ec:P-384', 'ec:P-521', 'ed25519'] as const) {
    const ca = await makeCa(`CN=Root ${kind}`, { kind });
    add(`a CA key of ${kind}`, await makeClient('CN=a', ca), [], undefined, { anchors: [ca] });
    add(`a client key of ${kind}`, await makeClient('CN=a', root, { kind }), []);
  }
  const rsa = await makeCa('CN=RSA', { kind: 'rsa:2048' });
  add(
    'signed with RSASSA-PSS',
    await makeClient('CN=a', rsa, { algorithm: SIGNATURE_ALGORITHMS.rsassaPssSha256 }),
    [],
    undefined,
    { anchors: [rsa] },
  );
  const pss = await makeCa('CN=PSS', {
    keys: restrictedPssKey(),
    algorithm: SIGNATURE_ALGORITHMS.rsassaPssSha256,
    sign: () => Buffer.alloc(256, 1),
  });
  const pssLeaf = { algorithm: SIGNATURE_ALGORITHMS.rsassaPssSha384, sign: () => Buffer.alloc(256, 1) };
  add("RSASSA-PSS with a hash that the anchor's key forbids", await makeClient('CN=a', pss, pssLeaf), [], UNKNOWN, {
    anchors: [pss],
  });
  const v1Root = await makeCertificate({ subject: 'CN=Old Root', version: 1 });
  add('an anchor of version 1', await makeClient('CN=a', v1Root), [], undefined, { anchors: [v1Root] });
  const usageOnly = await makeCertificate({ subject: 'CN=Usage', extensions: [keyUsage('keyCertSign')] });
  add('an anchor with keyCertSign and without basicConstraints', await makeClient('CN=a', usageOnly), [], undefined, {
    anchors: [usageOnly],
  });
  const folded = await makeClient('CN=a', intermediate, { issuerName: 'CN=intermediate' });
  add('the issuer name in other case', folded, [intermediate]);
  const withIds = await makeCa('CN=Ids', { extensions: [ski(keyPair('ec:P-256', 'CN=Ids'))] });
  add(
    'matching key identifiers',
    await makeClient('CN=a', withIds, { extensions: [...usages, aki(withIds.keys)] }),
    [],
    undefined,
    { anchors: [withIds] },
  );
  const cross = await makeCa('CN=Cross', { slot: 'cross' });
  const crossSigned = await makeCa('CN=Cross', { slot: 'cross', issuer: root });
  add(
    "a cross-certificate next to the CA's own self-signed one",
    await makeClient('CN=a', cross),
    [cross, crossSigned],
    undefined,
    { deviation: 'OpenSSL does not try the other certificate of the CA' },
  );
  const sameName = await makeCa('CN=Intermediate', {
    slot: 'another key',
    issuer: root,
    extensions: [ski(keyPair('ec:P-256', 'another key'))],
  });
  add('two CAs of one name', await makeClient('CN=a', sameName, { extensions: [...usages, aki(sameName.keys)] }), [
    intermediate,
    sameName,
  ]);

  // pathLenConstraint
  const zero = await makeCa('CN=Zero', {
    issuer: root,
    pathLength: 0,
    extensions: [ski(keyPair('ec:P-256', 'CN=Zero'))],
  });
  const belowZero = await makeCa('CN=Below Zero', { issuer: zero });
  const selfIssued = await makeCa('CN=Zero', {
    issuer: zero,
    slot: 'zero, new key',
    extensions: [ski(keyPair('ec:P-256', 'zero, new key')), aki(zero.keys)],
  });
  add('pathLenConstraint 0 and a leaf', await makeClient('CN=a', zero), [zero]);
  add('pathLenConstraint 0 and a CA below', await makeClient('CN=a', belowZero), [zero, belowZero], UNKNOWN);
  add(
    'pathLenConstraint 0 and a self-issued CA below',
    await makeClient('CN=a', selfIssued, { extensions: [...usages, aki(selfIssued.keys)] }),
    [zero, selfIssued],
  );
  const short = await makeCa('CN=Short', { pathLength: 0 });
  const belowShort = await makeCa('CN=Below Short', { issuer: short });
  add(
    'an anchor with pathLenConstraint 0 and a CA below',
    await makeClient('CN=a', belowShort),
    [belowShort],
    UNKNOWN,
    { anchors: [short] },
  );
  const one = await makeCa('CN=One', { issuer: root, pathLength: 1 });
  const two = await makeCa('CN=Two', { issuer: one });
  const three = await makeCa('CN=Three', { issuer: two });
  add('pathLenConstraint 1 and one CA below', await makeClient('CN=a', two), [one, two]);
  add('pathLenConstraint 1 and two CAs below', await makeClient('CN=a', three), [one, two, three], UNKNOWN);

  // no path
  const stranger = await makeCa('CN=Stranger');
  add('an unknown CA', await makeClient('CN=a', stranger), [stranger], UNKNOWN);
  add('self-signed', await makeCertificate({ subject: 'CN=self', extensions: usages }), [], UNKNOWN);
  add('the intermediate is missing', await makeClient('CN=a', intermediate), [], UNKNOWN);
  const impostor = await makeCa('CN=Root', { slot: 'impostor' });
  add('a CA that took the name of the anchor', await makeClient('CN=a', impostor), [impostor], UNKNOWN);
  const broken = await makeClient('CN=a', root, { sign: (tbs) => Buffer.alloc(tbs.length === 0 ? 0 : 70, 1) });
  add('a signature of nonsense', broken, [], UNKNOWN);
  const badIntermediate = await makeCa('CN=Bad', { issuer: { ...impostor, subject: 'CN=Root' } });
  add('an intermediate with a wrong signature', await makeClient('CN=a', badIntermediate), [badIntermediate], UNKNOWN);
  const noCa = await makeClient('CN=No CA', root);
  add('issued by an end entity', await makeClient('CN=a', noCa), [noCa], UNKNOWN);
  const caFalse = await makeCertificate({
    subject: 'CN=Not CA',
    issuer: root,
    extensions: [basicConstraints(false), keyUsage('keyCertSign')],
  });
  add('an issuer with cA FALSE and keyCertSign', await makeClient('CN=a', caFalse), [caFalse], UNKNOWN);
  const v1 = await makeCertificate({ subject: 'CN=V1 CA', issuer: root, version: 1 });
  add('an intermediate of version 1', await makeClient('CN=a', v1), [v1], UNKNOWN);
  const noSign = await makeCertificate({
    subject: 'CN=No Sign',
    issuer: root,
    extensions: [basicConstraints(true), keyUsage('cRLSign')],
  });
  add('an intermediate without keyCertSign', await makeClient('CN=a', noSign), [noSign], UNKNOWN);
  const serverCa = await makeCa('CN=Server CA', { issuer: root, extensions: [extKeyUsage(OID.serverAuth)] });
  add('an intermediate for serverAuth only', await makeClient('CN=a', serverCa), [serverCa], UNKNOWN);
  const endAnchor = await makeCertificate({ subject: 'CN=End', extensions: [basicConstraints(false)] });
  add('an anchor with cA FALSE as issuer', await makeClient('CN=a', endAnchor), [], UNKNOWN, { anchors: [endAnchor] });
  const endWithUsage = [basicConstraints(false), keyUsage('keyCertSign')];
  const endAnchors = [
    ['cA FALSE and keyCertSign', await makeCertificate({ subject: 'CN=End', extensions: endWithUsage })],
    ['version 3 without extensions', await makeCertificate({ subject: 'CN=Plain', extensions: [] })],
    ['version 1 that another CA signed', v1],
  ] as const;
  for (const [what, anchor] of endAnchors)
    add(`an anchor with ${what}, as issuer`, await makeClient('CN=a', anchor), [], UNKNOWN, { anchors: [anchor] });
  const usageAlone = await makeCertificate({
    subject: 'CN=Usage Alone',
    issuer: root,
    extensions: [keyUsage('keyCertSign')],
  });
  add('an intermediate without basicConstraints', await makeClient('CN=a', usageAlone), [usageAlone], UNKNOWN);
  const otherIds = await makeCa('CN=Other Ids', { extensions: [ski(keyPair('ec:P-256', 'CN=Other Ids'))] });
  add(
    'key identifiers that differ',
    await makeClient('CN=a', otherIds, { extensions: [...usages, aki(root.keys)] }),
    [],
    UNKNOWN,
    { anchors: [otherIds] },
  );
  const critical = await makeCa('CN=Critical', { issuer: root, extensions: [extension('1.2.3.4.5', true, NULL)] });
  add('an intermediate with an unknown critical extension', await makeClient('CN=a', critical), [critical], UNKNOWN);
  const policy = await makeCa('CN=Policy', {
    issuer: root,
    extensions: [extension(OID.policyConstraints, true, sequence(tlv(contextPrimitive(0), Buffer.of(0))))],
  });
  add('an intermediate that requires an explicit policy', await makeClient('CN=a', policy), [policy], UNKNOWN, {
    deviation: 'OpenSSL looks at policies only when asked to; we do not process them, so refuse',
  });
  const lax = await makeCa('CN=Lax Policy', {
    issuer: root,
    extensions: [extension(OID.policyConstraints, false, sequence(tlv(contextPrimitive(0), Buffer.of(0))))],
  });
  add('an explicit policy required, not marked critical', await makeClient('CN=a', lax), [lax], UNKNOWN, {
    deviation: 'as above; RFC 5280 §4.2.1.11 has it always critical',
  });

  // weak
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const weakCa = await makeCa('CN=Weak', { issuer: root, kind: 'rsa:2048', keys: small });
  add('an intermediate of RSA with 1024 bits', await makeClient('CN=a', weakCa), [weakCa], UNKNOWN);
  add(
    'a client key of RSA with 1024 bits',
    await makeClient('CN=a', root, { keys: small }),
    [],
    'client certificate key too weak or not supported',
  );
  add('signed with SHA-1', await sha1Signed(rsa), [], UNKNOWN, { anchors: [rsa] });

  // time
  const past = { notBefore: NOW - 20 * DAY, notAfter: NOW - DAY };
  const future = { notBefore: NOW + DAY, notAfter: NOT_AFTER };
  add('expired', await makeClient('CN=a', root, past), [], 'client certificate expired');
  add('not yet valid', await makeClient('CN=a', root, future), [], 'client certificate not yet valid');
  add('valid until this second', await makeClient('CN=a', root, { notAfter: NOW }), [], undefined, {
    deviation: 'RFC 5280 §4.1.2.5 includes the second that notAfter names',
  });
  add(
    'expired a second ago',
    await makeClient('CN=a', root, { notAfter: NOW - 1000 }),
    [],
    'client certificate expired',
  );
  add('valid from this second', await makeClient('CN=a', root, { notBefore: NOW }), []);
  const oldCa = await makeCa('CN=Old', { issuer: root, ...past });
  add('an expired intermediate', await makeClient('CN=a', oldCa), [oldCa], ISSUER_TIME);
  const oldRoot = await makeCa('CN=Old Anchor', past);
  add('an expired anchor', await makeClient('CN=a', oldRoot), [], ISSUER_TIME, { anchors: [oldRoot] });
  const oldForeign = await makeCa('CN=Old Foreign', { issuer: impostor, ...past });
  add('an expired intermediate of a stranger', await makeClient('CN=a', oldForeign), [oldForeign], UNKNOWN);
  const renewed = await makeCa('CN=Old', { issuer: root, notBefore: NOT_BEFORE });
  add('an expired and a renewed certificate of one CA', await makeClient('CN=a', oldCa), [oldCa, renewed]);

  // purpose
  add('serverAuth only', await makeClient('CN=a', root, { extensions: [extKeyUsage(OID.serverAuth)] }), [], PURPOSE);
  add(
    'keyEncipherment only',
    await makeClient('CN=a', root, { extensions: [keyUsage('keyEncipherment')] }),
    [],
    PURPOSE,
  );
  add('keyAgreement only', await makeClient('CN=a', root, { extensions: [keyUsage('keyAgreement')] }), [], PURPOSE, {
    deviation: 'OpenSSL thinks of fixed Diffie-Hellman; a TLS 1.3 client signs (RFC 8446 §4.4.2.2)',
  });
  add(
    'anyExtendedKeyUsage',
    await makeClient('CN=a', root, { extensions: [extKeyUsage(OID.anyExtendedKeyUsage)] }),
    [],
    undefined,
    {
      deviation: 'RFC 5280 §4.2.1.12 allows it, OpenSSL does not',
    },
  );
  add('the CA certificate itself', root, [], PURPOSE);
  add(
    'an unknown critical extension',
    await makeClient('CN=a', root, { extensions: [...usages, extension('1.2.3.4.5', true, NULL)] }),
    [],
    'client certificate has a critical extension that is not supported: 1.2.3.4.5',
  );
  add(
    'an unknown extension',
    await makeClient('CN=a', root, { extensions: [...usages, extension('1.2.3.4.5', false, NULL)] }),
    [],
  );

  chains.push(...(await makeNameConstraintChains(root)));
  return chains;
}

async function sha1Signed(issuer: Issuer): Promise<Issuer> {
  const { sign } = await import('node:crypto');
  return makeClient('CN=a', issuer, {
    algorithmDer: sequence(oid(OID.sha1WithRSAEncryption), tlv(Tag.NULL)),
    sign: (tbs) => sign('sha1', tbs, issuer.keys.privateKey),
  });
}
