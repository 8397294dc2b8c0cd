/**
 * Every way in to labels of every kind of CA, during faults that begin while the server runs, and before a reload and a
 * start. What is expected follows from what each way needs, not from what the server does today.
 */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { makeCa } from '../support/certificates.ts';
import { postCmc, requestBy, tcr } from '../support/cmc.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { requires } from '../support/requires.ts';
import { PIN, softHsm, SOFTHSM_MODULE } from '../support/softhsm.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { atEst, enrollAt, startFront } from '../support/upstream.ts';
import { until } from '../support/until.ts';

/** By the driver of each label: two files, a token, and an upstream CA. */
const LABELS = ['devices', 'lab', 'token', 'edge'] as const;
type Label = (typeof LABELS)[number];

/** What a way needs of its label, in addition to the certificate of a client, which needs no CA that works. */
const NEEDS = {
  otp: 'signature',
  certificate: 'signature',
  simplereenroll: 'signature',
  fullcmc: 'signature',
  // A response may have been signed before.
  ocsp: 'signature since the start',
  csrattrs: 'nothing',
  cacerts: 'nothing',
  crl: 'nothing',
  admin: 'nothing',
} as const;
type Way = keyof typeof NEEDS;
const WAYS = Object.keys(NEEDS) as readonly Way[];

const PHASES = ['while the server runs', 'before a reload', 'before a start'] as const;

interface Fault {
  readonly label: Label;
  readonly begin: () => void | Promise<void>;
  readonly end: () => void | Promise<void>;
  /** A file is read at the start; at a reload, the label keeps its key. */
  readonly startOnly?: true;
}

const hsm = softHsm();
const key = makeKey();
let upstream: Estuary;
let relay: TcpRelay;
let front: Estuary;
let labKey: string;
const holders = new Map<Label, ClientIdentity>();
const file = (name: string): string => join(front.dir, name);

const FAULTS: Readonly<Record<string, Fault>> = {
  'another key in the file': {
    label: 'lab',
    begin: () => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      writeFileSync(file('ca/lab.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    },
    end: () => writeFileSync(file('ca/lab.key'), labKey),
    startOnly: true,
  },
  'the token is away': { label: 'token', begin: () => hsm.moveAway(), end: () => hsm.moveBack() },
  'the upstream CA is away': { label: 'edge', begin: () => relay.die(), end: () => relay.revive() },
};

beforeAll(async () => {
  upstream = await Estuary.start();
  relay = await TcpRelay.start(upstream.server.port('est'));
  const { token } = await upstream.otp({ client_id: 'front', max_uses: 1000 });
  const ca = await makeCa('CN=Token', { slot: 'token' });
  writeFileSync(hsm.file('token.key'), ca.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  hsm.addToken('est');
  hsm.importKey('est', hsm.file('token.key'), 'issuing', '01');
  front = await startFront({
    env: { ...hsm.env, TEST_HSM_PIN: PIN },
    listeners: ['est', 'admin', 'publication'],
    anchors: join(upstream.dir, 'ca/root.pem'),
    ca: atEst(relay.port, token),
    configure: (config, dir) => {
      const anchor = encodePem('CERTIFICATE', ca.der);
      writeFileSync(join(dir, 'ca/token.pem'), anchor);
      writeFileSync(
        join(dir, 'tls/client-anchors.pem'),
        readFileSync(join(dir, 'tls/client-anchors.pem'), 'utf8') + anchor,
      );
      if (!Array.isArray(config['ca'])) throw new TypeError('no [[ca]]');
      config['ca'].push({
        label: 'token',
        driver: 'pkcs11',
        certificate: 'ca/token.pem',
        pkcs11: { module: SOFTHSM_MODULE, token_label: 'est', pin_env: 'TEST_HSM_PIN', key_label: 'issuing' },
      });
      config['cmc'] = { certificate: 'tls/server.pem', private_key: 'tls/server.key' };
      const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test/' };
      Object.assign(section(config, 'publication'), publication);
    },
  });
  labKey = readFileSync(file('ca/lab.key'), 'utf8');
  for (const label of LABELS) {
    const answer = await enrollAt(front, key, 'device-1', { path: `${label}/simpleenroll`, names: [] });
    holders.set(label, { cert: certificatePem(answer), key: key.pem });
  }
}, 120_000);
afterAll(async () => {
  await front.stop();
  await relay.die();
  await upstream.stop();
  hsm.remove();
});

const published = async (path: string, body?: Buffer): Promise<Response> =>
  fetch(`http://127.0.0.1:${front.server.port('publication')}/${path}`, {
    signal: AbortSignal.timeout(20_000),
    ...(body === undefined
      ? {}
      : { method: 'POST', body: new Uint8Array(body), headers: { 'Content-Type': 'application/ocsp-request' } }),
  });

/** Whether a way answers (true), or has a 503 or what is one in its protocol. Anything else fails the test. */
async function answers(way: Way, label: Label): Promise<boolean> {
  const status = await statusOf(way, label);
  expect([200, 204, 503], `${way} at ${label}`).toContain(status);
  return status !== 503;
}

async function statusOf(way: Way, label: Label): Promise<number> {
  const client = holders.get(label);
  if (client === undefined) throw new Error('no certificate');
  const csr = onTheWire(simpleCsr(key, 'device-1'));
  const enroll = async (credential: object, operation = 'simpleenroll') =>
    (await front.enroll(csr, { ...credential, path: `${label}/${operation}` })).status;
  switch (way) {
    case 'otp':
      return (await enrollAt(front, key, 'device-1', { path: `${label}/simpleenroll`, names: [] })).status;
    case 'certificate':
      return enroll({ client });
    case 'simplereenroll':
      return enroll({ client }, 'simplereenroll');
    case 'fullcmc': {
      const message = await requestBy(client, { reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] });
      return (await postCmc(front, message, client, `${label}/fullcmc`)).status;
    }
    case 'csrattrs':
    case 'cacerts':
      return (await front.est(`${label}/${way}`)).status;
    case 'crl':
      return (await published(`crl/${label}.crl`)).status;
    case 'ocsp': {
      const [certificate] = parsePemCertificates(readFileSync(file(OWN_CA[label]), 'utf8'));
      if (certificate === undefined) throw new Error('no certificate');
      const serial = new X509Certificate(client.cert).serialNumber.toLowerCase();
      const response = await published(`ocsp/${label}`, ocspRequest({ certificate }, [serial]));
      // RFC 6960 §4.2.1: a response without responseBytes reports an error.
      return response.ok && (await response.arrayBuffer()).byteLength > 5 ? 200 : 503;
    }
    case 'admin':
      return (await front.admin('GET', `/admin/certificates?ca=${label}&limit=1`)).status;
  }
}

const OWN_CA: Readonly<Record<Label, string>> = {
  devices: 'ca/issuing.pem',
  lab: 'ca/lab.pem',
  token: 'ca/token.pem',
  edge: 'upstream-roots.pem',
};

/** The upstream CA publishes CRLs and OCSP responses itself. */
const CELLS = LABELS.flatMap((label) =>
  WAYS.filter((way) => label !== 'edge' || !['crl', 'ocsp'].includes(way)).map((way) => [way, label] as const),
);

async function found(): Promise<string[]> {
  const failed: string[] = [];
  for (const [way, label] of CELLS) if (!(await answers(way, label))) failed.push(`${way} at ${label}`);
  return failed;
}

describe.skipIf(!requires('softhsm'))('only what needs the part that fails gets 503', () => {
  test('nothing without a fault', async () => {
    expect(await found()).toEqual([]);
  });

  describe.each(Object.entries(FAULTS))('%s', (_, { label: affected, begin, end, startOnly }) => {
    test.each(PHASES)('%s', { timeout: 120_000 }, async (phase) => {
      if (phase === 'before a start') await front.server.stop();
      await begin();
      try {
        if (phase === 'before a start') await front.restart();
        if (phase === 'before a reload') expect((await front.admin('POST', '/admin/reload')).status).toBe(200);
        const isAffected = startOnly !== true || phase === 'before a start';
        // Requests in flight when a token is lost get 500.
        if (isAffected) await until('the fault is noticed', async () => (await statusOf('otp', affected)) === 503);
        expect(await found()).toEqual(
          CELLS.filter(([, label]) => isAffected && label === affected)
            .filter(([way]) => NEEDS[way] === 'signature' || (way === 'ocsp' && phase === 'before a start'))
            .map(([way, label]) => `${way} at ${label}`),
        );
        const parts = Object.fromEntries(LABELS.map((label) => [`ca:${label}`, 'ok']));
        if (isAffected) parts[`ca:${affected}`] = 'down';
        // Each part is tried at most once a second.
        await vi.waitFor(
          async () => expect(await front.admin('GET', '/readyz')).toMatchObject({ status: 200, json: { parts } }),
          { timeout: 10_000, interval: 200 },
        );
      } finally {
        await end();
        if (startOnly === true) await front.admin('POST', '/admin/reload');
      }
      await until('the label issues again', async () => (await statusOf('otp', affected)) === 200);
      expect(await found()).toEqual([]);
    });
  });
});
