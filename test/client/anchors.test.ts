/** RFC 7030 §4.1: which CAs a client trusts, from the first contact through their rollovers. */
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { firstAnchors, followAnchors } from '../../src/client/trust/anchors.ts';
import { findPath, readFingerprint } from '../../src/client/trust/path.ts';
import { NULL, oid, printableString, sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import {
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  NOT_AFTER,
  NOT_BEFORE,
  type Issuer,
} from '../support/certificates.ts';

const NOW = Date.UTC(2026, 10, 22);
const ROOT = 'CN=Root';
const read = ({ der }: Issuer): Certificate => parseCertificate(der);
const shown = (list: readonly Certificate[]): string[] => list.map(({ fingerprint }) => fingerprint).sort();

let old: Issuer, fresh: Issuer, newWithOld: Issuer, oldWithNew: Issuer, issuing: Issuer, stranger: Issuer;
let oldRoot: Certificate, newRoot: Certificate;

beforeAll(async () => {
  old = await makeCa(ROOT, { slot: 'old' });
  fresh = await makeCa(ROOT, { slot: 'new' });
  newWithOld = await makeCa(ROOT, { slot: 'new', issuer: old });
  oldWithNew = await makeCa(ROOT, { slot: 'old', issuer: fresh });
  issuing = await makeCa('CN=Issuing', { issuer: old });
  stranger = await makeCa('CN=Stranger');
  [oldRoot, newRoot] = [read(old), read(fresh)];
});

describe('RFC 7030 §4.1.1: the first contact', () => {
  test.each(['sha256', 'sha512'])(
    'the CA with the %s fingerprint is believed, and what leads to it',
    async (algorithm) => {
      const hex = createHash(algorithm).update(old.der).digest('hex');
      const written = `${algorithm.toUpperCase()}:${hex.toUpperCase().replace(/..(?=.)/g, '$&:')}`;
      expect(readFingerprint(written)).toBe(hex);
      const { anchors, intermediates } = await firstAnchors([read(issuing), oldRoot, read(stranger)], hex, NOW);
      expect(shown(anchors)).toEqual(shown([oldRoot]));
      expect(shown(intermediates)).toEqual(shown([read(issuing)]));
    },
  );

  test('RFC 7030 §4.1.3: other listed certificates are validated by a path before use', async () => {
    const forged = await makeCertificate({ subject: 'CN=Forged', issuer: stranger, issuerName: ROOT });
    const { intermediates } = await firstAnchors([oldRoot, read(forged)], oldRoot.fingerprint, NOW);
    expect(intermediates).toEqual([]);
  });

  test('that of an issuing CA makes an anchor of it, and of nothing above', async () => {
    const { anchors } = await firstAnchors([read(issuing), oldRoot], read(issuing).fingerprint, NOW);
    expect(shown(anchors)).toEqual(shown([read(issuing)]));
  });

  test('none that is listed, or one that is over, is refused', async () => {
    await expect(firstAnchors([oldRoot], newRoot.fingerprint, NOW)).rejects.toThrow('has the fingerprint');
    await expect(firstAnchors([oldRoot], oldRoot.fingerprint, NOT_AFTER + 1000)).rejects.toThrow(
      'expired or not valid yet',
    );
  });

  test.each(['', 'ab', 'zz'.repeat(32), 'ab'.repeat(31), 'ab'.repeat(33)])('%j is no fingerprint', (text) => {
    expect(readFingerprint(text)).toBeUndefined();
  });
});

describe('RFC 7030 §4.1.3: rollovers', () => {
  const current = (...anchors: Certificate[]) => ({ anchors, intermediates: [] });

  test('a new root is believed with its NewWithOld, and the old one while its OldWithNew is of use', async () => {
    const listed = [newRoot, oldRoot, read(newWithOld), read(oldWithNew)];
    const { certificates, added, refused } = await followAnchors(current(oldRoot), listed, NOW);
    expect(shown(certificates.anchors)).toEqual(shown([oldRoot, newRoot]));
    expect([shown(added), refused]).toEqual([shown([newRoot]), []]);
  });

  test('an unlinked root is not believed because a server lists it', async () => {
    const { certificates, refused } = await followAnchors(current(oldRoot), [newRoot, oldRoot, read(stranger)], NOW);
    expect(shown(certificates.anchors)).toEqual(shown([oldRoot]));
    expect(refused.map(({ subject }) => formatName(subject))).toEqual([ROOT, 'CN=Stranger']);
  });

  test('OldWithNew alone, which any holder of the new key can create, does not make the new root trusted', async () => {
    const { certificates } = await followAnchors(current(oldRoot), [newRoot, oldRoot, read(oldWithNew)], NOW);
    expect(shown(certificates.anchors)).toEqual(shown([oldRoot]));
  });

  test('several rollovers at once are followed link by link', async () => {
    const third = await makeCa(ROOT, { slot: 'third' });
    const thirdWithNew = await makeCa(ROOT, { slot: 'third', issuer: fresh });
    const listed = [read(third), read(thirdWithNew), newRoot, read(newWithOld)];
    const { certificates } = await followAnchors(current(oldRoot), listed, NOW);
    expect(shown(certificates.anchors)).toContain(parseCertificate(third.der).fingerprint);
  });

  test('a root that the server has given up goes when nothing in use needs it', async () => {
    const own = read(await makeClient('CN=own', fresh));
    const listed = [newRoot, read(newWithOld)];
    const both = current(oldRoot, newRoot);
    const gone = await followAnchors(both, listed, NOW, { needed: [own] });
    expect([shown(gone.certificates.anchors), shown(gone.dropped)]).toEqual([shown([newRoot]), shown([oldRoot])]);
    const older = read(await makeClient('CN=own', old));
    const stays = await followAnchors(both, listed, NOW, { needed: [older] });
    expect(shown(stays.certificates.anchors)).toEqual(shown([oldRoot, newRoot]));
    const given = await followAnchors(both, listed, NOW, { kept: [oldRoot] });
    expect(shown(given.certificates.anchors)).toEqual(shown([oldRoot, newRoot]));
  });

  test('a root whose time is over goes', async () => {
    const short = read(await makeCa(ROOT, { slot: 'short', notAfter: NOW - 1000, notBefore: NOT_BEFORE }));
    const { certificates } = await followAnchors(current(short, oldRoot), [oldRoot], NOW);
    expect(shown(certificates.anchors)).toEqual(shown([oldRoot]));
  });
});

describe('RFC 5280 §6.1: paths', () => {
  test('names, signatures, validity and the constraints of CAs count', async () => {
    const leaf = read(await makeClient('CN=leaf', issuing));
    const others = [read(issuing)];
    expect((await findPath(leaf, [oldRoot], others, NOW))?.length).toBe(3);
    expect(await findPath(leaf, [newRoot], others, NOW)).toBeUndefined();
    expect(await findPath(leaf, [oldRoot], others, NOT_AFTER + 1000)).toBeUndefined();
    const noCa = await makeClient('CN=Issuing', old, { slot: 'no-ca' });
    const below = read(await makeClient('CN=leaf', noCa));
    expect(await findPath(below, [oldRoot], [read(noCa)], NOW)).toBeUndefined();
    const narrow = await makeCa('CN=Narrow', { issuer: old, pathLength: 0 });
    const deep = await makeCa('CN=Deep', { issuer: narrow });
    const tooDeep = read(await makeClient('CN=leaf', deep));
    expect(await findPath(tooDeep, [oldRoot], [read(narrow), read(deep)], NOW)).toBeUndefined();
  });

  test('§6.1, §7.1: anchors of version 1, other string types, and NULL in algorithms count', async () => {
    const printable = `CN=#${printableString('Smith & Sons').toString('hex')}`;
    const algorithmDer = sequence(oid(OID.ecdsaWithSHA256), NULL);
    for (const version of [1, 3] as const) {
      const extensions = version === 1 ? [] : [keyUsage('keyCertSign')];
      const ca = await makeCertificate({ subject: printable, slot: 'smith', version, extensions, algorithmDer });
      const between = await makeCa('CN=Between', { issuer: ca, issuerName: 'CN=SMITH & Sons', algorithmDer });
      const leaf = read(await makeClient('CN=leaf', between, { algorithmDer }));
      expect(await findPath(leaf, [read(ca)], [read(between)], NOW)).toHaveLength(3);
    }
  });
});
