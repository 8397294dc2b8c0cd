/** RFC 7030 §4.1.3 and RFC 4210 §4.4: what a CA's chain may contain in addition to the path to its root. */
import { beforeAll, describe, expect, test } from 'vitest';

import { arrangeChain } from '../../../src/pki/x509/ca-chain.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { aki, makeCa, makeClient, ski, type CertificateSpec, type Issuer } from '../../support/certificates.ts';
import { keyPair } from '../../support/keys.ts';

const keysOf = (name: string): ReturnType<typeof keyPair> => keyPair('ec:P-256', name);
const certificates = new Map<string, Issuer>();

/** A CA certificate with a unique name, signed by `by` (default: itself). */
async function make(
  name: string,
  subject: string,
  key: string,
  by?: string,
  spec: Omit<CertificateSpec, 'subject'> & { readonly pathLength?: number; readonly bare?: boolean } = {},
): Promise<void> {
  const issuer = by === undefined ? undefined : get(by);
  const keys = keysOf(key);
  const extensions = spec.bare === true ? [] : [ski(keys), aki(issuer?.keys ?? keys)];
  const options = { keys, extensions, ...spec };
  certificates.set(name, await makeCa(subject, issuer === undefined ? options : { ...options, issuer }));
}

function get(name: string): Issuer {
  const found = certificates.get(name);
  if (found === undefined) throw new Error(`no certificate ${name}`);
  return found;
}

beforeAll(async () => {
  await make('old root', 'CN=Root', 'old root');
  await make('new root', 'CN=Root', 'new root');
  await make('new with old', 'CN=Root', 'new root', 'old root');
  await make('old with new', 'CN=Root', 'old root', 'new root');
  await make('ca below old', 'CN=Issuing', 'issuing', 'old root');
  await make('ca below new', 'CN=Issuing', 'issuing', 'new root');
  await make('old ca', 'CN=Issuing', 'old issuing', 'new root');
  await make('ca new with old', 'CN=Issuing', 'issuing', 'old ca');
  await make('G2', 'CN=Root G2', 'g2');
  await make('G2 by old root', 'CN=Root G2', 'g2', 'old root');
  await make('old root by G2', 'CN=Root', 'old root', 'G2');
  await make('ca below G2', 'CN=Issuing', 'issuing', 'G2');
  await make('stranger', 'CN=Stranger', 'stranger');
  await make('namesake', 'CN=Root', 'namesake');
  await make('below stranger', 'CN=Other', 'other', 'stranger');
  await make('middle', 'CN=Middle', 'middle', 'new root');
  await make('ca below middle', 'CN=Issuing', 'issuing', 'middle');
  await make('bare root', 'CN=Bare', 'bare root', undefined, { bare: true });
  await make('bare new with old', 'CN=Bare', 'bare new', 'bare root', { bare: true });
  await make('ca below bare', 'CN=Issuing', 'issuing', 'bare new with old', { bare: true });
  await make('narrow root', 'CN=Narrow', 'narrow', undefined, { pathLength: 0 });
  await make('ca below narrow', 'CN=Issuing', 'issuing', 'narrow root');
  await make('narrow by old root', 'CN=Root', 'new root', 'old root', { pathLength: 1 });
  await make('ca below ROOT', 'CN=Issuing', 'issuing', 'new root', { issuerName: 'CN=ROOT' });
  certificates.set('a client', await makeClient('CN=device', get('new root')));
});

type Case = readonly [title: string, ca: string, chain: string[], path: string[], rollover: string[]];

async function arranged(ca: string, chain: readonly string[]) {
  const parsed = (name: string) => parseCertificate(get(name).der);
  const { path, rollover, problems, rootMissing } = await arrangeChain(parsed(ca), chain.map(parsed));
  const name = ({ der }: { der: Buffer }) => [...certificates].find(([, one]) => one.der.equals(der))?.[0];
  return { path: path.map(name), rollover: rollover.map(name), problems, rootMissing };
}

const LINKS = ['old root', 'old with new', 'new with old'];

test.each<Case>([
  ['nothing above a root', 'new root', [], ['new root'], []],
  ["the root's name in other case", 'ca below ROOT', ['new root'], ['ca below ROOT', 'new root'], []],
  ['after a root rollover', 'ca below new', ['new root', ...LINKS], ['ca below new', 'new root'], LINKS],
  ['the links before the root', 'ca below new', [...LINKS, 'new root'], ['ca below new', 'new root'], LINKS],
  [
    'ahead of a root rollover',
    'ca below old',
    ['old root', 'new root', 'new with old', 'old with new'],
    ['ca below old', 'old root'],
    ['new root', 'new with old', 'old with new'],
  ],
  ['a root that is the CA itself', 'new root', LINKS, ['new root'], LINKS],
  ['OldWithNew alone', 'ca below new', ['new root', 'old with new'], ['ca below new', 'new root'], ['old with new']],
  [
    'the path by way of NewWithOld, where the new root is not there',
    'ca below new',
    ['new with old', 'old root'],
    ['ca below new', 'new with old', 'old root'],
    [],
  ],
  [
    'a root rollover with another name',
    'ca below G2',
    ['G2', 'G2 by old root', 'old root by G2', 'old root'],
    ['ca below G2', 'G2'],
    ['G2 by old root', 'old root by G2', 'old root'],
  ],
  [
    "the issuing CA's own rollover",
    'ca below new',
    ['new root', 'old ca', 'ca new with old'],
    ['ca below new', 'new root'],
    ['old ca', 'ca new with old'],
  ],
  [
    "the issuing CA's certificate from the old root",
    'ca below new',
    ['new root', 'ca below old', ...LINKS],
    ['ca below new', 'new root'],
    ['ca below old', ...LINKS],
  ],
  [
    'certificates without key identifiers',
    'ca below bare',
    ['bare new with old', 'bare root'],
    ['ca below bare', 'bare new with old', 'bare root'],
    [],
  ],
  ['repetitions', 'ca below new', ['ca below new', 'new root', 'new root'], ['ca below new', 'new root'], []],
])('accepted: %s', async (_, ca, chain, path, rollover) => {
  expect(await arranged(ca, chain)).toEqual({ path, rollover, problems: [], rootMissing: false });
});

describe('RFC 7030 §4.1.3: clients take a root from cacerts for a trust anchor, so one that nothing links is refused', () => {
  const unlinked = (name: string) => `"CN=${name}" is neither above the CA nor linked to it by rollover certificates`;

  test.each<[string, string, string[], string]>([
    ['a root of another name', 'ca below new', ['new root', 'stranger'], unlinked('Stranger')],
    ['a root of the same name', 'ca below new', ['new root', 'namesake'], unlinked('Root')],
    ['the old root without a link', 'ca below new', ['new root', 'old root'], unlinked('Root')],
    ['NewWithOld without the old key', 'ca below new', ['new root', 'new with old'], unlinked('Root')],
    ['a CA below another root', 'ca below new', ['new root', 'below stranger', 'stranger'], unlinked('Other')],
    ['no CA', 'ca below new', ['new root', 'a client'], '"CN=device" is not a CA certificate (basicConstraints)'],
    [
      'a foreign root instead of the right one',
      'ca below new',
      ['stranger'],
      '"CN=Issuing" was issued by "CN=Root", not by the next certificate of the chain',
    ],
    [
      'a namesake in place of its root',
      'ca below new',
      ['namesake'],
      'the signature of "CN=Issuing" does not verify with the next certificate of the chain',
    ],
    [
      'a path out of order',
      'ca below middle',
      ['new root', 'middle'],
      '"CN=Root" comes before "CN=Middle", which it issued',
    ],
    [
      'a root that allows no CA below it',
      'ca below narrow',
      ['narrow root'],
      '"CN=Narrow" allows 0 CAs below it, not 1',
    ],
  ])('%s', async (_, ca, chain, problem) => {
    expect((await arranged(ca, chain)).problems).toContain(problem);
  });
});

test('RFC 5280 §4.2.1.9: a self-issued certificate does not count against a path length', async () => {
  const { problems } = await arranged('ca below new', ['narrow by old root', 'old root']);
  expect(problems).toEqual([]);
});

test.each([
  ['no certificate above the CA', 'ca below new', []],
  ['a link whose issuer is not there', 'ca below new', ['new with old']],
])('the root is missing: %s', async (_, ca, chain) => {
  expect(await arranged(ca, chain)).toMatchObject({ rootMissing: true, problems: [] });
});
