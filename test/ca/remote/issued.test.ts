/** What a remote CA issued, its path, and its chain that is published. */
import { describe, expect, test } from 'vitest';
import { issuedProblem, issuerFirst, pathToAnchor, verifiedChain } from '../../../src/ca/remote/issued.ts';
import { NULL, oid, printableString, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { type Certificate, parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import {
  type Issuer,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  NOT_AFTER,
  NOT_BEFORE,
} from '../../support/certificates.ts';
import { spkiDer } from '../../support/keys.ts';
import { NOW } from '../../auth/chain.ts';

const parsed = ({ der }: Issuer): Certificate => parseCertificate(der);
const root = await makeCa('CN=Root');
const issuing = await makeCa('CN=Issuing', { issuer: root, pathLength: 0 });
const issued = await makeClient('CN=Device', issuing);
const path = (certificate: Issuer, others: readonly Issuer[], anchors: readonly Issuer[], now = NOW) =>
  pathToAnchor(parsed(certificate), others.map(parsed), anchors.map(parsed), now);
const chain = async (own: Issuer, others: readonly Issuer[], ...anchors: readonly Issuer[]) =>
  (await verifiedChain([own, ...others].map(parsed), anchors.map(parsed), NOW))?.map(({ der }) => der);

describe('issued', () => {
  const problem = (now: number, one = issued, subject = 'CN=Device') => {
    const profile = { key_usage: [], extended_key_usage: ['clientAuth'] };
    const subjectAltNames = [{ kind: 'dns', value: 'a.test' } as const];
    const asked = { spki: spkiDer(one.keys), subject: parseDistinguishedName(subject), subjectAltNames };
    return issuedProblem(parsed(one), asked, profile, now);
  };

  test('RFC 5280 §4.1.2.5: the last second of the validity counts', () => {
    expect(problem(NOT_AFTER)).toBeUndefined();
    expect(problem(NOT_AFTER + 1)).toBe('it has already expired');
  });

  test('a common name may be a host of the request, and nothing in the same RDN', async () => {
    expect(problem(NOW, await makeClient('CN=A.test', issuing))).toBeUndefined();
    expect(problem(NOW, await makeClient('CN=a.test+OU=Somebody else', issuing))).toContain('its subject is');
  });
});

describe('the path to an anchor', () => {
  test.each([
    [NOT_BEFORE - 1, false],
    [NOT_BEFORE, true],
    [NOT_AFTER, true],
    [NOT_AFTER + 1, false],
  ])('RFC 5280 §6.1.3: at %d', async (now, isPath) => {
    expect((await path(issued, [issuing], [root], now)) !== undefined).toBe(isPath);
  });

  test('has eight CAs at most', async () => {
    const cas = [root];
    for (let n = 1; n <= 8; n++) cas.push(await makeCa(`CN=CA ${n}`, { issuer: cas.at(-1) ?? root }));
    const [eighth = root, ninth = root] = cas.slice(7);
    expect(await path(await makeClient('CN=Device', eighth), cas, [root])).toHaveLength(8);
    expect(await path(await makeClient('CN=Device', ninth), cas, [root])).toBeUndefined();
  });

  test('an anchor may be of version 1 (RFC 5280 §6.1.1), and no other CA lacks basicConstraints', async () => {
    const old = await makeCertificate({ subject: 'CN=Old', version: 1 });
    expect(await path(await makeClient('CN=Device', old), [], [old])).toHaveLength(1);
    const lax = await makeCertificate({ subject: 'CN=Lax', issuer: root, extensions: [keyUsage('keyCertSign')] });
    expect(await path(await makeClient('CN=Device', lax), [lax], [root])).toBeUndefined();
  });
});

test('RFC 5280 §7.1: what an upstream CA issued may have other string types than asked, and NULL in algorithms', async () => {
  const printable = `CN=#${printableString('Smith & Sons_').toString('hex')}`;
  const algorithmDer = sequence(oid(OID.ecdsaWithSHA256), NULL);
  const top = await makeCa(printable, { slot: 'smith', algorithmDer });
  const made = { issuer: top, issuerName: 'CN=Smith & Sons_', algorithmDer };
  const below = await makeCa('CN=Below', made);
  const leaf = await makeClient(printable, below, { slot: 'leaf', algorithmDer });
  expect(await path(leaf, [below], [top])).toHaveLength(2);
  expect(await chain(below, [top], top)).toEqual([below.der, top.der]);
  const asked = { spki: spkiDer(leaf.keys), subject: parseDistinguishedName('CN=Smith & Sons_'), subjectAltNames: [] };
  expect(
    issuedProblem(parsed(leaf), asked, { key_usage: [], extended_key_usage: ['clientAuth'] }, NOW),
  ).toBeUndefined();
});

describe('the chain', () => {
  test('a self-signed upstream CA is listed once, and so is each CA above another', async () => {
    expect(await chain(root, [], root)).toEqual([root.der]);
    expect(await chain(root, [root], root)).toEqual([root.der]);
    expect(await chain(issuing, [root, issuing], root)).toEqual([issuing.der, root.der]);
    expect(await chain(issuing, [], root)).toEqual([issuing.der, root.der]);
  });

  test('an anchor needs nothing above it', async () => {
    const other = await makeCa('CN=Other');
    expect(await chain(issuing, [], other, issuing)).toEqual([issuing.der]);
    expect(await chain(issuing, [], other)).toBeUndefined();
  });

  test('RFC 4210 §4.4: a rollover is published, and nothing that no anchor certifies', async () => {
    const old = await makeCa('CN=Root', { pathLength: 1 });
    const next = await makeCa('CN=Root', { slot: 'next', pathLength: 1 });
    const nextByOld = await makeCa('CN=Root', { slot: 'next', pathLength: 1, issuer: old });
    const oldByNext = await makeCa('CN=Root', { pathLength: 1, issuer: next });
    const rollover = [next, nextByOld, oldByNext].map(({ der }) => der);
    const foreign = await makeCa('CN=Foreign');
    const found = await chain(issuing, [next, nextByOld, oldByNext, foreign], old);
    expect(found).toEqual([issuing.der, old.der, ...rollover]);
  });

  test('RFC 7030 §4.1.3: the issuing CA is found in any order, also behind a root that issued nothing', async () => {
    const next = await makeCa('CN=Next');
    const ordered = async (...all: Issuer[]) => (await issuerFirst(all.map(parsed))).map(({ der }) => der);
    expect(await ordered(root, issuing)).toEqual([issuing.der, root.der]);
    expect(await ordered(root, next, issuing)).toEqual([issuing.der, root.der, next.der]);
    expect(await ordered(root, next)).toEqual([root.der, next.der]);
  });
});
