/**
 * Issue 13: who gets which names. Every combination of requester, label, `[ca.auth] methods`, binding and device mode, and requests at random,
 * each held against an oracle that states the rules in a few lines.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createEstAuthenticator, type EstAuthenticator } from '../../src/auth/est-authenticator.ts';
import { FailureRecords } from '../../src/auth/failure-records.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { NotAccepted, type AuthPlugin } from '../../src/auth/plugin.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import type { ClientIdBinding } from '../../src/enrollment/names.ts';
import { EstuaryError } from '../../src/errors.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { deviceMatchKey } from '../../src/store/device-match.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../http/admin/support.ts';
import { deviceRow, otpRow, T0 } from '../store/rows.ts';
import { dns as dnsName, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { buildCsr, commonName, dns, email, extensionRequest, makeKey, san } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { corridor, mtlsIdentity, otpIdentity, received } from './support.ts';

const OWN = 'a.example';
const OTHER = 'b.example';
const PRINCIPAL = 'a@EXAMPLE';

const REQUESTERS = ['certificate of devices', 'certificate of lab', 'certificate of a maker', 'otp', 'gssapi'] as const;
type Requester = (typeof REQUESTERS)[number];
const LABELS = ['devices', 'lab'] as const;
type Label = (typeof LABELS)[number];

interface Row {
  readonly requester: Requester;
  readonly label: Label;
  readonly methods: 'all' | 'otp';
  readonly binding: ClientIdBinding;
  readonly mtlsSubject: 'any' | 'same';
  readonly devices: 'off' | 'registered' | 'not registered';
  readonly asked: string;
}

const isByCertificate = (requester: Requester): boolean => requester.startsWith('certificate');

/** The rules of contract §8 for this requester, whose names are a.example's. */
function oracle({ requester, label, methods, binding, mtlsSubject, devices, asked }: Row): string {
  const byCertificate = isByCertificate(requester);
  if (methods === 'otp' && requester !== 'otp') return '401';
  if (byCertificate && requester !== `certificate of ${label}` && requester !== 'certificate of a maker') return '403';
  if (devices === 'not registered') return '403';
  if (byCertificate && mtlsSubject === 'same' && asked !== OWN) return '403';
  if (requester === 'otp' && binding !== 'off' && asked !== OWN) return '403';
  return requester === 'gssapi' ? `200 CN=${OWN} []` : `200 CN=${asked} [DNS:${asked}]`;
}

const folder = temporaryFolder();
const key = makeKey();
let store: Store;
let failures: FailureRecords;
let cas: Readonly<Record<Label, Ca>>;
/** Path of each requester's certificate, its own first. */
let paths: ReadonlyMap<Requester, readonly Certificate[]>;

beforeAll(async () => {
  const auditFile = folder.file('audit.log');
  store = await openStore({ path: folder.file('est.db'), auditFile, node: 'node-1', now: () => T0 });
  failures = new FailureRecords({ store, log: { error: () => undefined }, now: () => T0 });
  cas = { devices: await fileCa(folder, 'devices', true), lab: await fileCa(folder, 'lab') };
  const maker = await makeCa('CN=Maker,O=Example');
  const foreign = await makeClient(`CN=${OWN}`, maker, { extensions: [subjectAltName(dnsName(OWN))] });
  paths = new Map<Requester, readonly Certificate[]>([
    ['certificate of devices', await issuedBy('devices')],
    ['certificate of lab', await issuedBy('lab')],
    ['certificate of a maker', [foreign.der, maker.der].map(parseCertificate)],
  ]);
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

const request = (cn: string, names: readonly Buffer[]): Buffer =>
  buildCsr(key, { subject: commonName(cn), attributes: names.length === 0 ? [] : [extensionRequest(san(...names))] });

async function token(client_id = OWN): Promise<Identity> {
  const row = otpRow({ client_id });
  await store.insertOtp(row, []);
  return otpIdentity({ otp_id: row.id, requester: `otp:${row.id}`, client_id, display: client_id });
}

async function issuedBy(label: Label): Promise<readonly Certificate[]> {
  const enrollment = corridor({ store, identity: await token() });
  const { outcome } = await enrollment.enroll(
    received(cas[label], request(OWN, [dns(OWN)]), { requestId: randomUUID() }),
  );
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return [parseCertificate(outcome.certificate), ...cas[label].certificates];
}

async function identityOf(requester: Requester): Promise<Identity> {
  if (requester === 'otp') return token();
  const [leaf, issuer] = paths.get(requester) ?? [];
  if (leaf !== undefined) return mtlsIdentity(leaf, issuer);
  const subject = parseDistinguishedName(`CN=${OWN}`);
  return {
    method: 'gssapi',
    requester: `gssapi:${PRINCIPAL}`,
    display: PRINCIPAL,
    principal: PRINCIPAL,
    subject,
    replyToken: undefined,
  };
}

/** The authentication as it is, over credentials that are good. */
function authenticatorOf(requester: Requester, identity: Identity): EstAuthenticator {
  const plugin: AuthPlugin = {
    method: identity.method,
    authenticate: async (_presented, { rules }) => {
      const path = paths.get(requester);
      if (path !== undefined && rules !== undefined && !(await rules.accepts(path))) throw new NotAccepted(identity);
      return identity;
    },
  };
  return createEstAuthenticator({ plugins: [plugin], store, failures });
}

function caOf(label: Label, more: Partial<Pick<CaConfig, 'auth' | 'devices' | 'profile'>>): Ca {
  const { config, driver } = cas[label];
  return new Ca({ ...config, ...more }, driver, { all: () => Object.values(cas) });
}

interface Sending {
  readonly requester: Requester;
  readonly ca: Ca;
  readonly binding: ClientIdBinding;
  readonly body: Buffer;
}

/** The status; with it, of what was issued, its names. */
async function answer({ requester, ca, binding, body }: Sending): Promise<string> {
  const identity = await identityOf(requester);
  const authenticator = authenticatorOf(requester, identity);
  const enrollment = corridor({ store, identity, authenticator, rules: { clientIdBinding: binding } });
  try {
    const { outcome } = await enrollment.enroll(received(ca, body, { requestId: randomUUID() }));
    if (outcome.status !== 'issued') return outcome.status;
    const { subject, subjectAltNames } = parseCertificate(outcome.certificate);
    return `200 ${formatName(subject)} [${subjectAltNames.map(formatGeneralName).join(', ')}]`;
  } catch (error) {
    if (error instanceof EstuaryError) return String(error.status);
    throw error;
  }
}

/** Registers every requester, or nobody. */
async function register(devices: Row['devices']): Promise<void> {
  for (const { key: one } of (await store.listDevices({ limit: 100 })).items) await store.deleteDevice(one, []);
  if (devices !== 'registered') return;
  const matches = [...paths.values()].flatMap(([leaf]) => (leaf ? [{ fingerprint_sha256: leaf.fingerprint }] : []));
  const rows = [
    deviceRow({ id: OWN }),
    deviceRow({ id: PRINCIPAL }),
    ...matches.map((match, i) => deviceRow({ id: `unit-${i}`, match, match_key: deviceMatchKey(match) })),
  ];
  await store.putDevices(
    rows.map((row) => ({ row, events: [] })),
    'create',
  );
}

function* rowsOf(requester: Requester, devices: Row['devices']): Generator<Row> {
  const bindings = requester === 'otp' ? (['off', 'cn', 'san'] as const) : (['off', 'cn'] as const);
  for (const label of LABELS)
    for (const methods of ['all', 'otp'] as const)
      for (const binding of bindings)
        for (const mtlsSubject of ['any', 'same'] as const)
          for (const asked of [OWN, OTHER]) yield { requester, label, methods, binding, mtlsSubject, devices, asked };
}

const inWords = ({ label, methods, binding, mtlsSubject, asked }: Row, outcome: string): string =>
  `${label}, methods ${methods}, bind_client_id ${binding}, mtls_subject ${mtlsSubject}, asks for ${asked}: ${outcome}`;

describe.each(['off', 'registered', 'not registered'] as const)('issue 13: the matrix, devices: %s', (devices) => {
  beforeAll(() => register(devices));

  test.each(REQUESTERS)('%s: each status, and the exact names', async (requester) => {
    const rows = [...rowsOf(requester, devices)];
    const answers: string[] = [];
    for (const row of rows) {
      const { label, methods, binding, mtlsSubject, asked } = row;
      const ca = caOf(label, {
        auth: methods === 'all' ? {} : { methods: ['otp'] },
        devices: devices === 'off' ? 'off' : 'required',
        profile: { ...cas[label].profile, mtls_subject: mtlsSubject },
      });
      const body = request(asked, requester === 'gssapi' ? [] : [dns(asked)]);
      answers.push(inWords(row, await answer({ requester, ca, binding, body })));
    }
    expect(answers).toEqual(rows.map((row) => inWords(row, oracle(row))));
  });
});

describe('issue 13: no request at random is issued names that the rules do not allow', () => {
  const names = fc.constantFrom(OWN, OTHER, 'A.EXAMPLE', 'x.a.example', '*.a.example', 'a', '192.0.2.1');
  const asked = fc.record({
    requester: fc.constantFrom(...REQUESTERS),
    label: fc.constantFrom(...LABELS),
    binding: fc.constantFrom<ClientIdBinding>('off', 'cn', 'san'),
    mtlsSubject: fc.constantFrom<'any' | 'same'>('any', 'same'),
    allowed: fc.constantFrom<CaConfig['profile']['san']['allowed'][]>([], ['dns'], ['email'], ['dns', 'email']),
    wildcards: fc.boolean(),
    cn: names,
    dnsNames: fc.uniqueArray(names, { maxLength: 3 }),
    emails: fc.uniqueArray(fc.constantFrom('a@a.example', 'b@b.example'), { maxLength: 2 }),
  });

  type Asked = typeof asked extends fc.Arbitrary<infer One> ? One : never;

  /** Whether a certificate may hold these names, whatever was asked. */
  function mayHold(
    { requester, label, binding, mtlsSubject, allowed, wildcards }: Asked,
    subject: string,
    sans: readonly string[],
  ): boolean {
    const byCertificate = isByCertificate(requester);
    const isOwn = (name: string): boolean => name.toLowerCase() === `DNS:${OWN}`.toLowerCase();
    return (
      (!byCertificate || requester === `certificate of ${label}` || requester === 'certificate of a maker') &&
      (!byCertificate || mtlsSubject === 'any' || subject === `CN=${OWN}`) &&
      (requester !== 'gssapi' || subject === `CN=${OWN}`) &&
      (requester !== 'otp' || binding !== 'cn' || subject === `CN=${OWN}`) &&
      (requester !== 'otp' || binding !== 'san' || sans.some(isOwn)) &&
      sans.every((name) => (name.startsWith('DNS:') ? allowed.includes('dns') : allowed.includes('email'))) &&
      sans.every((name) => wildcards || !name.startsWith('DNS:*')) &&
      sans.every((name) => !/^DNS:[\d.]+$/.test(name))
    );
  }

  test('300 requests', { timeout: 300_000 }, async () => {
    await register('not registered');
    await fc.assert(
      fc.asyncProperty(asked, async (one) => {
        const { requester, label, binding, mtlsSubject, allowed, wildcards, cn, dnsNames, emails } = one;
        const { profile } = cas[label];
        const ca = caOf(label, {
          profile: { ...profile, mtls_subject: mtlsSubject, san: { ...profile.san, allowed, wildcards } },
        });
        const body = request(cn, [...dnsNames.map(dns), ...emails.map(email)]);
        const outcome = await answer({ requester, ca, binding, body });
        const [, subject, sans] = /^200 (\S+) \[(.*)\]$/.exec(outcome) ?? [];
        if (subject === undefined || sans === undefined) return;
        expect(mayHold(one, subject, sans === '' ? [] : sans.split(', ')), outcome).toBe(true);
      }),
      { numRuns: 300, seed: 13 },
    );
  });
});
