/**
 * `check --fleet` predicts what each holder gets when it renews over TLS under another configuration, and whether it still trusts the server.
 * `ESTUARY_FLEET=1000` and `ESTUARY_RUNS=6` are the nightly size, `ESTUARY_SEED` another fleet and other configurations.
 */
import { readFileSync } from 'node:fs';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetReport } from '../../src/main/fleet-check/fleet-check.ts';
import type { GeneralName } from '../../src/pki/x509/general-name.ts';
import {
  type Change,
  clientAuth,
  DrawnFleet,
  found,
  issuingWith,
  type Member,
  nameOf,
  type Outcome,
  plant,
  profile,
  type State,
  UNLISTED,
} from '../support/drawn-fleet.ts';
import { caSection, section } from '../support/estuary.ts';
import { Random } from '../support/random.ts';

const SIZE = Number(process.env['ESTUARY_FLEET'] ?? 38);
/** Configurations, each of which is compared with each. */
const CONFIGURATIONS = Number(process.env['ESTUARY_RUNS'] ?? 3);
const SEED = Number(process.env['ESTUARY_SEED'] ?? 57);
/** Enough for the nightly size. */
const TIMEOUT = 7_200_000;
const random = new Random(SEED);

let fleet: DrawnFleet;
beforeAll(async () => {
  fleet = await DrawnFleet.start(SIZE, random);
}, TIMEOUT);
afterAll(() => fleet.stop());

// --- changes -------------------------------------------------------------------------------------------------------

const isAble = ({ state, held }: Member): boolean => held.length > 0 && state !== 'attic' && !UNLISTED.includes(state);
const set =
  (where: (config: TomlTable) => TomlTable, values: TomlTable): Change =>
  (config) =>
    void Object.assign(where(config), values);
const atDevices = ({ label }: Member): boolean => label === 'devices';
const isIn =
  (...states: readonly State[]) =>
  ({ state }: Member): boolean =>
    states.includes(state);
const has =
  (isMeant: (name: GeneralName) => boolean) =>
  ({ label, sans }: Member): boolean =>
    label === 'devices' && sans.some(isMeant);
const tls = (config: TomlTable) => section(config, 'tls');
const subject = (config: TomlTable) => section(profile(config), 'subject');
const san = (config: TomlTable) => section(profile(config), 'san');

interface Breakage {
  readonly change: Change;
  /** Of the members that could renew. */
  readonly who: (member: Member) => boolean;
  readonly code: string;
  readonly list?: 'untrusting';
  readonly before?: Change;
}

const BREAKAGES: Readonly<Record<string, Breakage>> = {
  'a higher TLS version': {
    change: set(tls, { min_version: 'TLSv1.3' }),
    who: ({ tls }) => tls === 'TLSv1.2',
    code: 'TLS_VERSION',
  },
  'a removed trust anchor': {
    change: set(clientAuth, { trust_anchors: 'ca/f-root.pem' }),
    who: ({ label }) => label === 'lab',
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'other trust anchors': {
    change: set(clientAuth, { trust_anchors: 'ca/f-vendor.pem' }),
    who: () => true,
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'no client certificates': {
    change: (config) => void (section(config, 'tls')['client_auth'] = { mode: 'none' }),
    who: () => true,
    code: 'CLIENT_CERTIFICATE_REQUIRED',
  },
  'a handshake that rejects expired certificates': {
    change: set(clientAuth, { mode: 'required' }),
    who: isIn('drawer', 'rescued'),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
  },
  'a narrower SAN pattern': {
    change: set(san, { dns: ['[a-z0-9-]+\\.plant\\.example'] }),
    who: has((name) => name.kind === 'dns' && !/^[a-z0-9-]+\.plant\./.test(name.value)),
    code: 'SAN_NOT_ALLOWED',
  },
  'kinds of names less': {
    change: set(san, { allowed: ['dns', 'ip'] }),
    who: has(({ kind }) => kind !== 'dns' && kind !== 'ip'),
    code: 'SAN_NOT_ALLOWED',
  },
  'other address blocks': {
    change: set(san, { ip: ['192.0.2.0/24'] }),
    who: has(({ kind }) => kind === 'ip'),
    code: 'SAN_NOT_ALLOWED',
  },
  'a key type less': {
    change: set(profile, { key_types: ['ec:P-256', 'ed25519', 'rsa:2048'] }),
    who: ({ label, kind }) => label === 'devices' && kind === 'P-384',
    code: 'KEY_TYPE_NOT_ALLOWED',
  },
  'subjects without an organization': {
    change: set(subject, { allowed: ['CN', 'serialNumber'] }),
    who: ({ label, subject }) => label === 'devices' && subject.includes('O='),
    code: 'SUBJECT_NOT_ALLOWED',
  },
  'a shorter grace period': {
    change: set(profile, { renewal_grace_days: 1 }),
    who: isIn('drawer'),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
  },
  'registered devices only': {
    change: set(caSection, { devices: 'required' }),
    who: atDevices,
    code: 'DEVICE_NOT_REGISTERED',
  },
  'registered devices only, some of which are disabled, expired or deleted': {
    before: set(plant, { devices: 'off' }),
    change: () => undefined,
    who: isIn('disabled', 'sold', 'deleted'),
    code: 'DEVICE_NOT_REGISTERED',
  },
  'no renewal_issuers': {
    change: (config) => {
      delete profile(config)['renewal_issuers'];
    },
    who: isIn('former'),
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'a new issuing key without renewal_issuers': {
    change: issuingWith('next'),
    who: ({ label, state }) => label !== 'lab' && state !== 'former',
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'another default label': {
    change: (config) => {
      caSection(config)['default'] = false;
      caSection(config, 1)['default'] = true;
    },
    who: ({ named }) => !named,
    code: 'NOT_ISSUED_HERE',
  },
  'a label less': {
    change: (config) => {
      delete config['label'];
    },
    who: ({ label }) => label === 'plant',
    code: 'UNKNOWN_LABEL',
  },
  'a CA less': {
    change: (config) => void (config['ca'] = [caSection(config)]),
    who: ({ label }) => label === 'lab',
    code: 'UNKNOWN_LABEL',
  },
  'certificates that authenticate no client': {
    change: set(profile, { extended_key_usage: ['serverAuth'] }),
    who: atDevices,
    code: 'CLIENT_CERTIFICATE_PURPOSE',
  },
  'a server certificate under a new root': {
    change: set(tls, { certificate: 'tls/server-d.pem', private_key: 'tls/server-d.key' }),
    who: ({ label, given }) => label !== 'lab' && given.length > 0,
    code: 'SERVER_CERTIFICATE_UNTRUSTED',
    list: 'untrusting',
  },
  'a server certificate without its intermediate': {
    before: set(tls, { certificate: 'tls/server-e.pem', private_key: 'tls/server-e.key' }),
    change: set(tls, { certificate: 'tls/server-e-alone.pem', private_key: 'tls/server-e.key' }),
    who: (member) => isAble(member) && member.label !== 'lab' && member.given.length > 0,
    code: 'SERVER_CERTIFICATE_UNTRUSTED',
    list: 'untrusting',
  },
};

const HARMLESS: Readonly<Record<string, Change>> = {
  'another log level': set((config) => section(config, 'log'), { level: 'debug' }),
  'a shorter validity': set(profile, { validity_days: 30 }),
  'a longer grace period': set(profile, { renewal_grace_days: 12 }),
  'further key types': set(profile, { key_types: ['ec:P-256', 'ec:P-384', 'ec:P-521', 'rsa:2048', 'ed25519'] }),
  'a SAN pattern that fits': set(san, { dns: ['.*\\.example'] }),
  'a new issuing key with renewal_issuers': (config) => {
    issuingWith('next')(config);
    for (const table of [profile(config), section(plant(config), 'profile')])
      table['renewal_issuers'] = 'ca/f-both.pem';
  },
  'a certificate that is required at renewals': set(clientAuth, { mode: 'required_for_reenroll' }),
  'no one-time passwords': set((config) => section(config, 'otp'), { enabled: false }),
  'manual approval': set((config) => caSection(config, 1), { approval: 'manual' }),
  'a template for new subjects': set(subject, { template: 'CN={id},O=New' }),
  'other methods': set((config) => section(caSection(config), 'auth'), { methods: ['otp'] }),
};

/** What they do is known from what happens. */
const FURTHER: readonly Change[] = [
  set(subject, { patterns: { CN: 'unit-[0-4]*' } }),
  set(subject, { patterns: { CN: '{id}' } }),
  set(subject, { required: ['serialNumber'] }),
  set(san, { required: ['dns'] }),
  set(san, { max: 1 }),
  set(san, { wildcards: false }),
  set(san, { dns_underscore: false }),
  set(san, { allowed: ['dns', 'upn', 'srv'], upn: ['.*@example\\.org'] }),
  set(san, { registered_id: ['1.2.3.1'], permanent_identifier: ['1.2.3:{cert.CN}'] }),
  set(san, { dns: ['{cert.CN}\\.plant\\.example'] }),
  set(san, { add: ['dns:{id}.added.example'] }),
  set(profile, { key_usage: ['keyEncipherment'] }),
  set(profile, { key_usage: [] }),
  set(profile, { extended_key_usage: [] }),
  set(profile, { mtls_subject: 'any', allow_subject_change: true }),
  set(profile, { validity_seconds: 120 }),
  set(profile, { renewal_labels: ['plant'] }),
  set(plant, { ca: 'lab' }),
  set(plant, { profile: { renewal_grace_days: 30, renewal_labels: ['devices'] } }),
  set(caSection, { client_issuers: ['anchors'] }),
  set(caSection, { renewal: { expected: false } }),
  set(clientAuth, { crl: 'ca/f-root.crl' }),
  set(caSection, { certificate: 'ca/f-short.pem' }),
  (config) => {
    plant(config)['default'] = true;
    caSection(config)['default'] = false;
  },
];

describe(`in a fleet of ${SIZE} holders`, () => {
  test.each(Object.entries(BREAKAGES))('%s is found at those that it concerns', async (_, breakage) => {
    const { change, who, code, list = 'stranded', before = () => undefined } = breakage;
    expect(await fleet.write('old', before)).toBe(true);
    expect(await fleet.write('new', change)).toBe(true);
    const report = await fleet.predict('new', 'old');
    const planted = fleet.members.filter((member) => who(member) && (isAble(member) || breakage.before !== undefined));
    expect(planted.length).toBeGreaterThan(0);
    expect(report[list].map(nameOf).sort()).toEqual(planted.map(({ name }) => name).sort());
    expect([...new Set(report[list].map((entry) => entry.code))]).toEqual([code]);
    const none = { stranded: [], recovered: [], untrusting: [], not_judged: [] };
    expect(report).toMatchObject({ ...none, [list]: report[list], code: 3 });
  });

  test.each(Object.entries(HARMLESS))('%s concerns nobody', async (_, change) => {
    await fleet.write('old');
    expect(await fleet.write('new', change)).toBe(true);
    const none = { stranded: [], recovered: [], untrusting: [], unknown: [], not_judged: [] };
    expect(await fleet.predict('new', 'old')).toMatchObject({ ...none, code: 0 });
  });

  test('an external authorization and a CA elsewhere are unknown, but not what is rejected before', async () => {
    await fleet.write('old');
    const elsewhere: Change = (config) => {
      const label = 'lab';
      const remote = {
        driver: 'command',
        upstream_trust_anchors: 'ca/f-labroot.pem',
        command: { issue: ['/bin/true'] },
      };
      Object.assign(caSection(config), { authorization: { url: 'https://localhost:1/' } });
      config['ca'] = [caSection(config), { label, auth: section(caSection(config, 1), 'auth'), ...remote }];
    };
    const able = (label: string, tls?: string) =>
      fleet.members
        .filter((member) => isAble(member) && member.label === label && member.tls === (tls ?? member.tls))
        .map(({ name }) => name)
        .sort();
    const namesIn = (entries: FleetReport['unknown'], code: string) =>
      entries
        .filter((entry) => entry.code === code)
        .map(nameOf)
        .sort();
    expect(await fleet.write('new', elsewhere)).toBe(true);
    const report = await fleet.predict('new', 'old');
    expect(report).toMatchObject({ stranded: [], code: 0 });
    expect(namesIn(report.unknown, 'EXTERNAL_AUTHORIZATION')).toEqual(able('devices'));
    expect(namesIn(report.unknown, 'UPSTREAM_CA')).toEqual(able('lab'));
    await fleet.write('new', elsewhere, BREAKAGES['a higher TLS version']?.change ?? expect.fail());
    const { stranded, unknown } = await fleet.predict('new', 'old');
    expect(namesIn(unknown, 'UPSTREAM_CA')).toEqual(able('lab', 'TLSv1.3'));
    expect(namesIn(stranded, 'TLS_VERSION').filter((name) => able('lab').includes(name))).toEqual(
      able('lab', 'TLSv1.2'),
    );
    await fleet.write('new', elsewhere, BREAKAGES['no client certificates']?.change ?? expect.fail());
    expect(namesIn((await fleet.predict('new', 'old')).stranded, 'CLIENT_CERTIFICATE_REQUIRED')).toEqual(
      [...able('devices'), ...able('lab'), ...able('plant')].sort(),
    );
  });

  test('changed keys that are not judged are named, and the keys of CAs may be missing', async () => {
    await fleet.write('old');
    const elsewhere: Change = (config) => {
      section(config, 'tls')['groups'] = ['X25519'];
      section(config, 'est')['require_pop_linking'] = true;
      section(caSection(config), 'file')['private_key'] = 'ca/none.key';
    };
    await fleet.write('new', elsewhere);
    const not_judged = ['est.require_pop_linking', 'tls.groups'];
    expect(await fleet.predict('new', 'old')).toMatchObject({ stranded: [], not_judged, code: 0 });
  });

  test(
    `each change between ${CONFIGURATIONS} random configurations does what is predicted (seed ${SEED})`,
    async () => {
      const all = [...Object.values(BREAKAGES).map(({ change }) => change), ...Object.values(HARMLESS), ...FURTHER];
      const outcomes: Outcome[] = [];
      while (outcomes.length < CONFIGURATIONS) {
        const name = `random-${outcomes.length}`;
        // Some changes contradict each other.
        if (await fleet.write(name, ...random.shuffled(all).slice(0, random.between(0, 5))))
          outcomes.push(await fleet.happens(name));
      }
      for (const [n, next] of outcomes.entries()) {
        const text = readFileSync(fleet.file(`random-${n}.toml`), 'utf8');
        expect(found(await fleet.predict(`random-${n}`)), text).toEqual(fleet.expected(next));
        for (const [m, former] of outcomes.entries())
          expect(found(await fleet.predict(`random-${n}`, `random-${m}`)), `${m}: ${text}`).toEqual(
            fleet.expected(next, former),
          );
      }
    },
    TIMEOUT,
  );
});
