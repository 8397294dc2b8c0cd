/** `check --fleet` predicts what each device gets when it renews over TLS under another configuration. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { checkFleet, type FleetReport } from '../../src/main/fleet-check/fleet-check.ts';
import { openConfiguredStoreForReading } from '../../src/main/open-store.ts';
import { parseCertificate, parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import type { HeldCertificate, HolderRow } from '../../src/store/held-certificates.ts';
import { makeClient } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr, type KeyKind } from '../support/csr.ts';
import { caSection, certificatePem, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { Random } from '../support/random.ts';
import { certify, newKey, rollIssuing } from '../support/rollover.ts';

interface Device {
  readonly name: string;
  readonly label: 'devices' | 'lab';
  readonly namesLabel: boolean;
  readonly dns: readonly string[];
  readonly key: KeyKind;
  readonly tls: 'TLSv1.2' | 'TLSv1.3';
  readonly expired?: boolean;
}

const plain = { label: 'devices', namesLabel: true, dns: [], key: 'P-256', tls: 'TLSv1.3' } as const;
const FLEET: readonly Device[] = [
  { ...plain, name: 'plain' },
  { ...plain, name: 'old-tls', tls: 'TLSv1.2' },
  { ...plain, name: 'host', dns: ['host.plant.example'] },
  { ...plain, name: 'stray', dns: ['stray.other.example'] },
  { ...plain, name: 'strong', key: 'P-384' },
  { ...plain, name: 'short-path', namesLabel: false },
  { ...plain, name: 'drawer', expired: true },
  { ...plain, name: 'lab-1', label: 'lab' },
  { ...plain, name: 'lab-2', label: 'lab', key: 'P-384', tls: 'TLSv1.2' },
];
const ALL = FLEET.map(({ name }) => name);
const AT_DEVICES = FLEET.filter(({ label }) => label === 'devices').map(({ name }) => name);

type Change = (config: TomlTable) => void;
const profile = (config: TomlTable, index = 0) => section(caSection(config, index), 'profile');
const newIssuing = (config: TomlTable): void => {
  Object.assign(caSection(config), { certificate: 'ca/next.pem' });
  section(caSection(config), 'file')['private_key'] = 'ca/next.key';
};

/** Each strands these, with this code. */
const BREAKAGES: Readonly<
  Record<string, { readonly change: Change; readonly code: string; readonly who: readonly string[] }>
> = {
  'a higher TLS version': {
    change: (config) => void (section(config, 'tls')['min_version'] = 'TLSv1.3'),
    code: 'TLS_VERSION',
    who: ['old-tls', 'lab-2'],
  },
  'other trust anchors': {
    change: (config) => void (section(config, 'tls', 'client_auth')['trust_anchors'] = 'ca/other.pem'),
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
    who: ALL,
  },
  'no client certificates': {
    change: (config) => void (section(config, 'tls')['client_auth'] = { mode: 'none' }),
    code: 'CLIENT_CERTIFICATE_REQUIRED',
    who: ALL,
  },
  'a handshake that rejects expired certificates': {
    change: (config) => void (section(config, 'tls', 'client_auth')['mode'] = 'required'),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
    who: ['drawer'],
  },
  'a narrower SAN pattern': {
    change: (config) => void (section(profile(config), 'san')['dns'] = ['[a-z]+\\.plant\\.example']),
    code: 'SAN_NOT_ALLOWED',
    who: ['stray'],
  },
  'a key type less': {
    change: (config) => void (profile(config)['key_types'] = ['ec:P-256', 'rsa:2048']),
    code: 'KEY_TYPE_NOT_ALLOWED',
    who: ['strong'],
  },
  'a shorter grace period': {
    change: (config) => void (profile(config)['renewal_grace_days'] = 0),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
    who: ['drawer'],
  },
  'registered devices only': {
    change: (config) => void (caSection(config, 1)['devices'] = 'required'),
    code: 'DEVICE_NOT_REGISTERED',
    who: ['lab-1', 'lab-2'],
  },
  'a new issuing key without renewal_issuers': {
    change: newIssuing,
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
    who: AT_DEVICES,
  },
  'another default label': {
    change: (config) => {
      caSection(config)['default'] = false;
      caSection(config, 1)['default'] = true;
    },
    code: 'NOT_ISSUED_HERE',
    who: ['short-path'],
  },
  'a label less': {
    change: (config) => void (config['ca'] = [caSection(config)]),
    code: 'UNKNOWN_LABEL',
    who: ['lab-1', 'lab-2'],
  },
  'certificates that authenticate no client': {
    change: (config) => void (profile(config)['extended_key_usage'] = ['serverAuth']),
    code: 'CLIENT_CERTIFICATE_PURPOSE',
    who: AT_DEVICES,
  },
};

const HARMLESS: Readonly<Record<string, Change>> = {
  'another log level': (config) => void (section(config, 'log')['level'] = 'debug'),
  'a shorter validity': (config) => void (profile(config)['validity_days'] = 30),
  'a longer grace period': (config) => void (profile(config)['renewal_grace_days'] = 30),
  'further key types': (config) =>
    void (profile(config)['key_types'] = ['ec:P-256', 'ec:P-384', 'ec:P-521', 'rsa:2048', 'ed25519']),
  'a SAN pattern that fits': (config) => void (section(profile(config), 'san')['dns'] = ['.*\\.example']),
  'a new issuing key with renewal_issuers': (config) => {
    newIssuing(config);
    profile(config)['renewal_issuers'] = 'ca/issuing.pem';
  },
  'a certificate that is required at renewals': (config) =>
    void (section(config, 'tls', 'client_auth')['mode'] = 'required_for_reenroll'),
  'no one-time passwords': (config) => void (section(config, 'otp')['enabled'] = false),
  'manual approval': (config) => void (caSection(config, 1)['approval'] = 'manual'),
  'a second trust anchor': (config) => void (section(config, 'tls', 'client_auth')['trust_anchors'] = 'ca/anchors.pem'),
};

let estuary: Estuary;
const identities = new Map<string, ClientIdentity>();
const file = (name: string) => join(estuary.dir, name);

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      profile(config)['renewal_grace_days'] = 10;
    },
  });
  rollIssuing(estuary.dir, 'ca/next');
  newKey(estuary.dir, 'ca/other');
  certify(estuary.dir, 'ca/other', {
    subject: '/CN=Other root',
    key: 'ca/other',
    extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'],
  });
  const both = ['tls/client-anchors.pem', 'ca/other.pem'].map((name) => readFileSync(file(name), 'latin1'));
  writeFileSync(file('ca/anchors.pem'), both.join(''));
  for (const device of FLEET)
    identities.set(device.name, device.expired === true ? await expired(device) : await enrolled(device));
  copyFileSync(file('est.toml'), file('old.toml'));
});
afterAll(() => estuary.stop());

const enrolled = ({ name, dns, key, label }: Device) =>
  estuary.enrolled(makeKey(key), name, dns, `${label}/simpleenroll`);

async function expired({ name }: Device): Promise<ClientIdentity> {
  const [issuing] = parsePemCertificates(readFileSync(file('ca/issuing.pem'), 'latin1'));
  if (issuing === undefined) throw new Error('no CA');
  const keys = (pem: string) => ({ privateKey: createPrivateKey(pem), publicKey: createPublicKey(pem) });
  const subject = new X509Certificate(issuing.der).subject.split('\n').toReversed().join(',');
  const issuer = {
    subject,
    kind: 'ec:P-256',
    keys: keys(readFileSync(file('ca/issuing.key'), 'latin1')),
    der: issuing.der,
  } as const;
  const own = makeKey();
  // The CA must have been valid then.
  const notBefore = issuing.notBefore.getTime();
  const times = { notBefore, notAfter: notBefore + 1000 };
  const { der } = await makeClient(`CN=${name}`, issuer, { keys: keys(own.pem), ...times });
  const cert = encodePem('CERTIFICATE', der);
  expect((await estuary.admin('POST', '/admin/certificates', { ca: 'devices', pem: cert })).status).toBe(201);
  return { cert, key: own.pem };
}

const identityOf = (device: Device): ClientIdentity => identities.get(device.name) ?? expect.fail(device.name);

/** The holder, as the server sees it. */
function holder(device: Device, chains: readonly number[] = [1]): HolderRow {
  const { raw } = new X509Certificate(identityOf(device).cert);
  const { serialNumber: serial, notAfter } = parseCertificate(raw);
  const held: HeldCertificate = {
    ...{ serial, ca: device.label, not_after: notAfter.getTime(), der: raw, issued_at: 0 },
    ...{ first_used_at: 0, last_used_at: 0, renewal_info_at: null, replaced_at: null },
    tls_version: device.tls,
    names_label: device.namesLabel ? 1 : 0,
  };
  const { name: subject, label, dns } = device;
  return {
    ...{ position: 1, label, device: null, subject, sans: dns.map((one) => `DNS:${one}`), state: 'ok', chains },
    ...{ since: 0, window_end: null, last_code: null, last_message: null, last_failed_at: null },
    certificates: [held],
  };
}

/** The prediction, while the server runs. */
async function predict(against = true, holders = FLEET.map((device) => holder(device))): Promise<FleetReport> {
  const load = (name: string) => loadConfig(file(name), process.env, Date.now());
  const [old, next] = [await load('old.toml'), await load('new.toml')];
  const store = await openConfiguredStoreForReading(old.config, old.material);
  const given = ['ca/issuing.pem', 'ca/root.pem'].flatMap((name) =>
    parsePemCertificates(readFileSync(file(name), 'latin1')).map(({ der }) => der),
  );
  try {
    const fleet = {
      ...store,
      listHeldCertificates: () => Promise.resolve({ holders, next: null }),
      listGivenChains: () => Promise.resolve([{ position: 1, der: Buffer.concat(given) }]),
    };
    return await checkFleet(fleet, next, against ? old : undefined, Date.now());
  } finally {
    await store.close();
  }
}

function write(...changes: readonly Change[]): void {
  const config = parse(readFileSync(file('old.toml'), 'utf8'));
  for (const change of changes) change(config);
  writeFileSync(file('new.toml'), stringify(config));
}

/** Whether a device renews over TLS, and then with the new certificate. */
async function renews(device: Device): Promise<boolean> {
  const { name, dns, key, label, namesLabel, tls } = device;
  const path = namesLabel ? `${label}/simplereenroll` : 'simplereenroll';
  let client = identityOf(device);
  for (let count = 0; count < 2; count++) {
    const fresh = makeKey(key);
    const options = { path, client, tls: { maxVersion: tls } };
    const answer = await estuary.enroll(onTheWire(simpleCsr(fresh, name, dns)), options).catch(() => undefined);
    if (answer?.status !== 200) return answer?.status === 202;
    client = { cert: certificatePem(answer), key: fresh.pem };
  }
  return true;
}

/** Puts the new configuration in force, and lets every device renew. */
async function stranded(): Promise<readonly string[]> {
  await estuary.server.stop();
  copyFileSync(file('new.toml'), file('est.toml'));
  try {
    await estuary.restart();
    const result: string[] = [];
    for (const device of FLEET) if (!(await renews(device))) result.push(device.name);
    return result;
  } finally {
    await estuary.server.stop();
    copyFileSync(file('old.toml'), file('est.toml'));
    await estuary.restart();
  }
}

const names = (entries: FleetReport['stranded']) => entries.map(({ subject }) => subject);

describe('a change that strands devices is found before, and strands exactly these', () => {
  test.each(Object.entries(BREAKAGES))('%s', async (_, { change, code, who }) => {
    write(change);
    const report = await predict();
    expect(names(report.stranded)).toEqual(who);
    expect([...new Set(report.stranded.map((entry) => entry.code))]).toEqual([code]);
    expect(report).toMatchObject({ checked: ALL.length, recovered: [], untrusting: [], unknown: [], not_judged: [] });
  });

  test('two changes at once, drawn at random, and what each device really gets', async () => {
    const random = new Random(20_261_127);
    const all = [...Object.values(BREAKAGES).map(({ change }) => change), ...Object.values(HARMLESS)];
    for (let round = 0; round < 4; round++) {
      write(...random.shuffled(all).slice(0, 2));
      const load = loadConfig(file('new.toml'), process.env, Date.now());
      // Some contradict each other.
      if ((await load.catch(() => undefined)) === undefined) continue;
      expect(names((await predict(false)).stranded), readFileSync(file('new.toml'), 'utf8')).toEqual(await stranded());
    }
  });
});

test.each(Object.entries(HARMLESS))('a harmless change strands nobody: %s', async (_, change) => {
  write(change);
  expect(await predict()).toMatchObject({ stranded: [], recovered: [], untrusting: [], unknown: [], not_judged: [] });
});

test('without the configuration in force, all that cannot renew are stranded; a change back recovers them', async () => {
  write(BREAKAGES['a key type less']?.change ?? expect.fail());
  expect(names((await predict(false)).stranded)).toEqual(['strong']);
  copyFileSync(file('old.toml'), file('kept.toml'));
  copyFileSync(file('new.toml'), file('old.toml'));
  copyFileSync(file('kept.toml'), file('new.toml'));
  try {
    expect(await predict()).toMatchObject({ stranded: [], recovered: [{ subject: 'strong' }] });
  } finally {
    copyFileSync(file('kept.toml'), file('old.toml'));
  }
});

test('a server certificate under a new root is untrusted, and unknown to a device that was given no CA certificates', async () => {
  newKey(estuary.dir, 'tls/next');
  const extensions = [
    'basicConstraints=critical,CA:FALSE',
    'extendedKeyUsage=serverAuth',
    'subjectAltName=DNS:localhost',
  ];
  certify(estuary.dir, 'tls/next', { subject: '/CN=localhost', key: 'tls/next', by: 'ca/other', extensions });
  write((config) =>
    Object.assign(section(config, 'tls'), { certificate: 'tls/next.pem', private_key: 'tls/next.key' }),
  );
  const [first, second] = FLEET;
  if (first === undefined || second === undefined) throw new Error('two');
  const report = await predict(true, [holder(first), holder(second, [])]);
  expect(report).toMatchObject({
    stranded: [],
    untrusting: [{ subject: 'plain', code: 'SERVER_CERTIFICATE_UNTRUSTED' }],
    unknown: [{ subject: 'old-tls', code: 'CACERTS_NOT_GIVEN' }],
  });
});

test('what the server cannot know is unknown, and changed keys that are not judged are named', async () => {
  const [first] = FLEET;
  if (first === undefined) throw new Error('one');
  const unseen = holder(first);
  const [held] = unseen.certificates;
  write(
    (config) => void (section(config, 'tls')['min_version'] = 'TLSv1.3'),
    (config) => void (section(config, 'tls')['groups'] = ['X25519']),
    (config) => void (section(config, 'est')['require_pop_linking'] = true),
  );
  const report = await predict(true, [{ ...unseen, certificates: [{ ...held, tls_version: null }] }]);
  expect(report).toMatchObject({ stranded: [], unknown: [{ code: 'TLS_VERSION_UNKNOWN' }] });
  expect(report.not_judged).toEqual(['est.require_pop_linking', 'tls.groups']);
});

test('the keys of CAs may be missing', async () => {
  write((config) => {
    section(caSection(config), 'file')['private_key'] = 'ca/none.key';
    profile(config)['key_types'] = ['ec:P-256'];
  });
  expect(names((await predict()).stranded)).toEqual(['strong']);
});

test('of two certificates, an older one counts if it authenticated after its replacement', async () => {
  const [first, , , , strong] = FLEET;
  if (first === undefined || strong === undefined) throw new Error('five');
  const [newest] = holder(first).certificates;
  const [older] = holder(strong).certificates;
  const both = (last_used_at: number): HolderRow => ({
    ...holder(first),
    certificates: [newest, { ...older, replaced_at: 5, last_used_at }],
  });
  write(BREAKAGES['a key type less']?.change ?? expect.fail());
  expect((await predict(true, [both(4)])).stranded).toEqual([]);
  expect((await predict(true, [both(6)])).stranded).toMatchObject([{ serial: older.serial }]);
});
