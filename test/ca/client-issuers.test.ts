/** Whose certificates authenticate at a CA's label. */
import { describe, expect, test } from 'vitest';
import { ClientIssuers } from '../../src/ca/router.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';

const parsed = ({ der }: Issuer) => parseCertificate(der);

const root = await makeCa('CN=Root');
const devices = await makeCa('CN=Devices', { issuer: root });
const lab = await makeCa('CN=Lab', { issuer: root });
/** What devices was before: another key. */
const former = await makeCa('CN=Devices', { issuer: root, slot: 'former' });
/** The key of devices with another name. */
const renamed = await makeCa('CN=Renamed', { issuer: root, slot: 'CN=Devices' });
const sibling = await makeCa('CN=Sibling', { issuer: root });
const maker = await makeCa('CN=Maker');
const upper = await makeCa('CN=Upper', { issuer: maker });
const lower = await makeCa('CN=Lower', { issuer: upper });
/** A foreign CA that has certified ours as well. */
const bridge = await makeCa('CN=Bridge');
const bridged = await makeCa('CN=Lab', { issuer: bridge, slot: 'CN=Lab' });
const leaf = await makeClient('CN=device-1', devices);
const selfSigned = await makeClient('CN=plant', maker);

/** A path of a device's certificate by name; the leaf's own signature says nothing here. */
const PATHS: Readonly<Record<string, readonly Issuer[]>> = {
  devices: [leaf, devices, root],
  'devices, which is the anchor': [leaf, devices],
  former: [leaf, former, root],
  renamed: [leaf, renamed, root],
  lab: [leaf, lab, root],
  'lab, which is the anchor': [leaf, lab],
  'lab, by a foreign anchor': [leaf, bridged, bridge],
  sibling: [leaf, sibling, root],
  'sibling, which is the anchor': [leaf, sibling],
  root: [leaf, root],
  maker: [leaf, lower, upper, maker],
  'another key of the maker’s name': [leaf, await makeCa('CN=Maker', { slot: 'other' })],
  itself: [selfSigned],
};

const OWN = ['devices', 'devices, which is the anchor'];
const FOREIGN = ['sibling, which is the anchor', 'maker', 'another key of the maker’s name', 'itself'];

function issuersWith(list: readonly string[], files: readonly Issuer[] = [], renewal: readonly Issuer[] = []) {
  const ours = { knownCertificates: [devices, root].map(parsed), renewalIssuers: renewal.map(parsed), unconfirmed: [] };
  const theirs = { knownCertificates: [lab, root].map(parsed), renewalIssuers: [], unconfirmed: [] };
  return new ClientIssuers(
    {
      certificate: parsed(devices),
      renewalIssuers: ours.renewalIssuers,
      ownIsRecorded: false,
      counts: () => Promise.resolve(true),
    },
    { list, certificates: files.map(parsed), all: () => [ours, theirs] },
  );
}

async function accepted(...of: Parameters<typeof issuersWith>) {
  const issuers = issuersWith(...of);
  const names: string[] = [];
  for (const [name, path] of Object.entries(PATHS)) if (await issuers.accept(path.map(parsed))) names.push(name);
  return names;
}

describe('client_issuers', () => {
  test('own: this CA, by its name and key', async () => {
    expect(await accepted(['own'])).toEqual(OWN);
  });
  test('an issuer with the same key but another name does not count, nor one with the same name but another key', async () => {
    for (const list of [['own'], ['anchors'], ['own', 'anchors']])
      for (const name of ['renamed', 'former']) expect(await accepted(list)).not.toContain(name);
    expect(await accepted(['issuers.pem'], [devices])).toEqual(OWN);
    expect(await accepted(['own'], [], [renamed])).toEqual([...OWN, 'renamed']);
  });
  test('own: its renewal_issuers', async () => {
    expect(await accepted(['own'], [], [former, maker])).toEqual(['devices', 'devices, which is the anchor', 'former']);
  });
  test('anchors: what is under an anchor that is not a CA of this server and not above one', async () => {
    expect(await accepted(['anchors'])).toEqual(FOREIGN);
  });
  test('anchors: not what belongs to the renewal_issuers of another label', async () => {
    expect(await accepted(['anchors'], [], [maker])).not.toContain('maker');
  });
  test('own: not what the label of this CA does not count', async () => {
    const issuers = new ClientIssuers(
      { certificate: parsed(devices), renewalIssuers: [], ownIsRecorded: false, counts: () => Promise.resolve(false) },
      { list: ['own'], certificates: [], all: () => [] },
    );
    expect(await issuers.accept([leaf, devices, root].map(parsed))).toBe(false);
  });
  test('own, where the store decides: by whatever signer, and only what it counts', async () => {
    for (const counts of [true, false]) {
      const issuers = new ClientIssuers(
        {
          certificate: parsed(devices),
          renewalIssuers: [],
          ownIsRecorded: true,
          counts: () => Promise.resolve(counts),
        },
        { list: ['own'], certificates: [], all: () => [] },
      );
      expect(await issuers.accept([leaf, former, root].map(parsed))).toBe(counts);
      expect(await issuers.accept([leaf].map(parsed))).toBe(false);
    }
  });
  test('anchors: not what is under an anchor above a CA of this server that its chain does not name', async () => {
    const withoutRoot = new ClientIssuers(
      { certificate: parsed(devices), renewalIssuers: [], ownIsRecorded: false, counts: () => Promise.resolve(true) },
      {
        list: ['anchors'],
        certificates: [],
        all: () => [{ knownCertificates: [devices].map(parsed), renewalIssuers: [], unconfirmed: [] }],
      },
    );
    const [sibl, manufacturer] = [[leaf, sibling, root].map(parsed), [leaf, lower, upper, maker].map(parsed)];
    // Twice: the result for an anchor is cached.
    for (let n = 0; n < 2; n++) {
      expect(await withoutRoot.accept(sibl)).toBe(false);
      expect(await withoutRoot.accept(manufacturer)).toBe(true);
    }
  });
  test('anchors: not what may be below an upstream CA that is unknown, until it is known', async () => {
    const upstream = { knownCertificates: [], renewalIssuers: [], unconfirmed: [parsed(maker)] };
    let all: readonly (typeof upstream)[] = [upstream];
    const issuers = new ClientIssuers(
      { certificate: parsed(devices), renewalIssuers: [], ownIsRecorded: false, counts: () => Promise.resolve(true) },
      { list: ['anchors'], certificates: [], all: () => all },
    );
    const belowAnchor = [leaf, lower, upper].map(parsed);
    expect(await issuers.accept([...belowAnchor, parsed(maker)])).toBe(false);
    expect(await issuers.accept(belowAnchor)).toBe(false);
    expect(await issuers.accept([leaf, devices, root].map(parsed))).toBe(true);
    all = [{ ...upstream, unconfirmed: [] }];
    expect(await issuers.accept(belowAnchor)).toBe(true);
  });
  test('the default lets a manufacturer in and keeps another label out', async () => {
    expect(await accepted(['own', 'anchors'])).toEqual([...OWN, ...FOREIGN]);
  });
  test('any', async () => {
    expect(await accepted(['any'])).toEqual(Object.keys(PATHS));
  });
  test.each<[string, Issuer, readonly string[]]>([
    ['a direct issuer', lower, ['maker']],
    ['an indirect issuer', upper, ['maker']],
    ['the anchor', maker, ['maker']],
    ['the root', root, ['devices', 'former', 'renamed', 'lab', 'sibling', 'root']],
    ['another CA of this server', lab, ['lab', 'lab, which is the anchor', 'lab, by a foreign anchor']],
  ])('a file: %s', async (_, file, expected) => {
    expect(await accepted(['issuers.pem'], [file])).toEqual(expected);
  });
  test('nothing', async () => {
    expect(await accepted([])).toEqual([]);
  });
});

describe('certificates under a CA of this server', () => {
  const own = (...of: Parameters<typeof issuersWith>) =>
    Object.entries(PATHS).flatMap(([name, path]) =>
      issuersWith(...of).isOfThisServer(path.map(parsed)) ? [name] : [],
    );
  const OURS = [...OWN, 'lab', 'lab, which is the anchor', 'lab, by a foreign anchor'];

  test('are those of any of its CAs, but not those of a CA above them or of a sibling', () => {
    expect(own([]).toSorted()).toEqual(OURS.toSorted());
  });
  test('are not any while its only CA is not known', () => {
    const issuers = new ClientIssuers(
      { certificate: parsed(devices), renewalIssuers: [], ownIsRecorded: false, counts: () => Promise.resolve(true) },
      {
        list: [],
        certificates: [],
        all: () => [{ knownCertificates: [], renewalIssuers: [parsed(maker)], unconfirmed: [] }],
      },
    );
    expect(issuers.isOfThisServer([leaf, devices, root].map(parsed))).toBe(false);
  });
  test('include those of renewal_issuers', () => {
    expect(own([], [], [former]).toSorted()).toEqual([...OURS, 'former'].toSorted());
  });
  test('include those of an earlier key in the chain of a CA', () => {
    const chain = { knownCertificates: [devices, former, root].map(parsed), renewalIssuers: [], unconfirmed: [] };
    const issuers = new ClientIssuers(
      { certificate: parsed(devices), renewalIssuers: [], ownIsRecorded: false, counts: () => Promise.resolve(true) },
      { list: [], certificates: [], all: () => [chain] },
    );
    expect(issuers.isOfThisServer([leaf, former, root].map(parsed))).toBe(true);
    expect(issuers.isOfThisServer([leaf, root].map(parsed))).toBe(false);
  });
});
