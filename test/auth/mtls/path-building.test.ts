/** What a path search tries, and when it gives up (RFC 5280 §6.1). */
import { sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { findPath, type IssuerSource } from '../../../src/auth/mtls/path-building.ts';
import { contextConstructed, contextPrimitive, oid, sequence, Tag, tlv } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { foldedName } from '../../../src/pki/x509/name.ts';
import {
  aki,
  dns,
  extension,
  makeCa,
  makeClient,
  ski,
  subjectAltName,
  type Issuer,
} from '../../support/certificates.ts';
import { keyPair } from '../../support/keys.ts';
import { NOW } from '../chain.ts';

const MAX_PATH = 10;
const MAX_SIGNATURES = 32;
const parsed = ({ der }: Issuer): Certificate => parseCertificate(der);
const root = await makeCa('CN=Root');

function source(anchor: Issuer, others: readonly Certificate[], knownLinks = false): IssuerSource {
  const top = parsed(anchor);
  return {
    isAnchor: ({ fingerprint }) => fingerprint === top.fingerprint,
    bySubject: (name) => [...others, top].filter(({ subject }) => foldedName(subject) === name),
    isKnownLink: () => knownLinks,
  };
}

/** The length of the path, or why there is no path. */
async function found(leaf: Issuer, of: IssuerSource): Promise<number | string> {
  const result = await findPath(parsed(leaf), of, NOW);
  return 'path' in result ? result.path.length : result.problem;
}

test(`a path has up to ${MAX_PATH} certificates`, async () => {
  const cas: Issuer[] = [];
  for (let n = 1; n < MAX_PATH; n++) cas.push(await makeCa(`CN=CA ${n}`, { issuer: cas.at(-1) ?? root }));
  for (const [length, expected] of [
    [MAX_PATH, MAX_PATH],
    [MAX_PATH + 1, expect.stringContaining(`more than ${MAX_PATH} certificates`) as string],
  ] as const) {
    const leaf = await makeClient('CN=a', cas[length - 3] ?? root);
    expect(await found(leaf, source(root, cas.map(parsed)))).toEqual(expected);
  }
});

test('a rejected signature algorithm is named with its certificate, in the chain and at its end', async () => {
  const sha1 = (issuer: Issuer) => ({
    issuer,
    algorithmDer: sequence(oid(OID.sha1WithRSAEncryption), tlv(Tag.NULL)),
    sign: (tbs: Buffer) => sign('sha1', tbs, issuer.keys.privateKey),
  });
  const rsa = await makeCa('CN=RSA root', { kind: 'rsa:2048' });
  const weak = await makeCa('CN=Weak', sha1(rsa));
  const named = (subject: string): unknown =>
    expect.stringMatching(`^[0-9a-f]+: ${subject} is signed with sha1WithRSAEncryption, which is not accepted$`);
  expect(await found(await makeClient('CN=a', weak), source(rsa, [parsed(weak)]))).toEqual(named('CN=Weak'));
  expect(await found(await makeClient('CN=a', rsa, sha1(rsa)), source(rsa, []))).toEqual(named('CN=a'));
});

test(`up to ${MAX_SIGNATURES} signatures are verified`, async () => {
  const genuine = await makeCa('CN=CA', { issuer: root });
  const impostor = parsed(await makeCa('CN=CA', { issuer: root, slot: 'impostor' }));
  const leaf = await makeClient('CN=a', genuine);
  // The genuine one and the anchor need one signature each.
  const among = (impostors: number, knownLinks = false): IssuerSource =>
    source(root, [...Array<Certificate>(impostors).fill(impostor), parsed(genuine)], knownLinks);
  expect(await found(leaf, among(MAX_SIGNATURES - 2))).toBe(3);
  expect(await found(leaf, among(MAX_SIGNATURES - 1))).toContain(`the limit is ${MAX_SIGNATURES} signatures`);
  // Links that were verified before are not verified again.
  expect(await found(leaf, among(MAX_SIGNATURES, true))).toBe(3);
});

test('CAs that have certified each other are no endless path', async () => {
  const one = await makeCa('CN=One');
  const two = await makeCa('CN=Two');
  const crossed = [
    await makeCa('CN=One', { issuer: two, slot: 'CN=One' }),
    await makeCa('CN=Two', { issuer: one, slot: 'CN=Two' }),
  ].map(parsed);
  expect(await found(await makeClient('CN=a', one), source(root, crossed))).toEqual(expect.any(String));
  expect(await found(await makeClient('CN=a', one), source(two, crossed))).toBe(3);
});

test('the log shows which name constraints a path violates', async () => {
  const permitted = sequence(tlv(contextConstructed(0), sequence(tlv(contextPrimitive(2), Buffer.from('a.example')))));
  const constrained = await makeCa('CN=CA', {
    issuer: root,
    extensions: [extension(OID.nameConstraints, true, permitted)],
  });
  const leaf = await makeClient('CN=a', constrained, { extensions: [subjectAltName(dns('b.example'))] });
  expect(await found(leaf, source(root, [parsed(constrained)]))).toBe(
    `${parsed(root).fingerprint}: "DNS:b.example" is outside the CA's name constraints`,
  );
});

test('the log learns which issuer is missing', async () => {
  const missing = await makeCa('CN=Missing');
  const leaf = await makeClient('CN=a', missing);
  expect(await found(leaf, source(root, []))).toBe(`${parsed(leaf).fingerprint}: its issuer CN=Missing is unknown`);
  const impostor = await makeCa('CN=Missing', { slot: 'impostor' });
  expect(await found(leaf, source(impostor, []))).toBe(
    `${parsed(impostor).fingerprint}: did not sign the certificate below it`,
  );
});

test('RFC 5280 §4.2.1.1: key identifiers count where the certificate and its issuer both have one', async () => {
  const [without, keys] = [await makeCa('CN=CA', { issuer: root }), keyPair('ec:P-256', 'CN=CA')];
  const leaf = await makeClient('CN=a', without, { extensions: [aki(keys)] });
  expect(await found(leaf, source(root, [parsed(without)]))).toBe(3);
  const fitting = await makeCa('CN=CA', { issuer: root, extensions: [ski(keys)] });
  expect(await found(leaf, source(root, [parsed(fitting)]))).toBe(3);
  expect(await found(await makeClient('CN=a', fitting), source(root, [parsed(fitting)]))).toBe(3);
  const other = await makeCa('CN=CA', { issuer: root, extensions: [ski(root.keys)] });
  expect(await found(leaf, source(root, [parsed(other)]))).toBe('none of its issuers has its authorityKeyIdentifier');
});
