import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { prepareAt, type CaDriver } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import { certificateRow } from '../../src/enrollment/certificate-row.ts';
import { ServerCertificate } from '../../src/enrollment/server-certificate.ts';
import { createLogger } from '../../src/log.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parsePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { FairLimiter } from '../../src/process/fair-limiter.ts';
import type { Store } from '../../src/store/store.ts';
import { makeCa } from '../support/ca.ts';
import { makeCa as makeIssuer } from '../support/certificates.ts';
import { fileCaConfig } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { openFileCa } from '../support/own-ca.ts';
import { auditTypes, opened, reservation, temporaryPaths, type Paths } from '../store/support.ts';

const DAY = 86_400_000;
const folder = temporaryFolder();
afterAll(() => folder.remove());
const files = makeCa(folder.file, 'own', { kind: 'ec:P-256' });
const other = makeCa(folder.file, 'other', { kind: 'ec:P-256' });

interface Case {
  readonly paths: Paths;
  readonly store: Store;
  readonly folder: string;
  /** Lets time pass. */
  readonly later: (days: number) => void;
  readonly at: (time: number) => void;
  readonly logged: readonly string[];
  /** A process of the service. */
  readonly process: (
    names?: readonly string[],
    over?: Partial<CaDriver>,
    ca?: typeof files,
  ) => Promise<ServerCertificate>;
}

async function newCase(): Promise<Case> {
  const paths = temporaryPaths();
  const store = await opened(paths);
  const own = join(paths.folder, 'server-certificate');
  const mutex = new FairLimiter({ concurrency: 1, queue: 9 });
  let time = Date.now();
  const now = (): number => time;
  const logged: string[] = [];
  return {
    paths,
    store,
    folder: own,
    later: (days) => (time += days * DAY),
    at: (to) => (time = to),
    logged,
    async process(names = ['est.example', '192.0.2.7'], over = {}, ca = files) {
      // The profile is for devices only and does not apply to the server's certificate.
      const config = fileCaConfig('devices', true, { certificate: ca.certificate, chain: ca.root, key: ca.privateKey });
      const profile = { validity_days: 1, max_validity_days: 1, key_usage: [], extended_key_usage: ['clientAuth'] };
      const driver = await openFileCa(
        {
          label: 'devices',
          certificate: ca.certificate,
          chain: ca.root,
          profile,
          file: { private_key: ca.privateKey },
        },
        { now },
      );
      const signing: CaDriver = {
        chain: () => driver.chain(),
        issue: () => Promise.reject(new Error('it was not prepared')),
        prepare: (request) => prepareAt(driver, request),
        prepareServerCertificate: (request) => driver.prepareServerCertificate(request),
        ...over,
      };
      return new ServerCertificate({
        ca: () => new Ca(config, signing),
        names,
        folder: own,
        store,
        instance: 'this',
        log: createLogger('error', { write: (line: string) => void logged.push(line) }),
        now,
        mutex,
      });
    },
  };
}

const serial = (own: ServerCertificate): string => own.current.certificates[0].serialNumber;

test('it is for TLS servers and id-kp-cmcRA, outside of the profile, recorded like any other, its key in a separate folder', async () => {
  const here = await newCase();
  const own = await here.process();
  expect(() => own.current).toThrow(expect.objectContaining({ code: 'SERVER_CERTIFICATE_MISSING' }));
  await own.refresh();
  const [leaf, issuing, ...more] = own.current.certificates;
  expect(formatName(leaf.subject)).toBe('CN=est.example');
  expect(leaf.subjectAltNames.map(formatGeneralName)).toEqual(['DNS:est.example', 'IP:192.0.2.7']);
  expect(leaf.extKeyUsage).toEqual([OID.serverAuth, OID.cmcRA]);
  expect((leaf.notAfter.getTime() - leaf.notBefore.getTime()) / DAY).toBeGreaterThan(80);
  expect([issuing && formatName(issuing.subject), more], 'without the root').toEqual(['CN=own,O=Estuary', []]);
  const [row] = await here.store.getCertificates(leaf.serialNumber);
  expect(row).toMatchObject({ ca: 'devices', method: 'automatic', requester: 'the server itself' });
  expect(await auditTypes(here.store)).toEqual(['request.received', 'ca.signature', 'certificate.issued']);
  expect(statSync(here.folder).mode & 0o777).toBe(0o700);
  const file = join(here.folder, 'server.pem');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const key = readFileSync(file, 'latin1').split('\n')[2] ?? '';
  expect(key.length).toBeGreaterThan(20);
  expect(readFileSync(here.paths.path).includes(key)).toBe(false);
  expect(here.logged).toEqual([]);
});

test('all processes have the same one, also those that start later, and it stays until two thirds of its life are over', async () => {
  const here = await newCase();
  const [one, two] = [await here.process(), await here.process()];
  await Promise.all([one.refresh(), two.refresh()]);
  expect(serial(two)).toBe(serial(one));
  here.later(59);
  await one.refresh();
  expect(serial(one)).toBe(serial(two));
  here.later(2);
  await one.refresh();
  expect(serial(one)).not.toBe(serial(two));
  await two.refresh();
  expect(serial(two)).toBe(serial(one));
  const restarted = await here.process();
  await restarted.refresh();
  expect(serial(restarted)).toBe(serial(one));
  expect((await auditTypes(here.store)).filter((type) => type === 'certificate.issued')).toHaveLength(2);
});

test.each<[string, (here: Case, own: ServerCertificate) => Promise<ServerCertificate | undefined>]>([
  ['other names', (here) => here.process(['est2.example'])],
  ['another CA', (here) => here.process(undefined, {}, other)],
  [
    'it was revoked',
    async ({ store }, own) => {
      const revocation = { ca: 'devices', serial: serial(own), revoked_at: Date.now(), invalidity_date: null };
      await store.revokeCertificate({ ...revocation, reason: 'keyCompromise' }, []);
      return undefined;
    },
  ],
  [
    'its file has another key',
    async ({ folder: own }) => {
      const file = join(own, 'server.pem');
      const stranger = await newCase();
      await (await stranger.process()).refresh();
      const [key = ''] = readFileSync(join(stranger.folder, 'server.pem'), 'utf8').split(/(?=-----BEGIN CERT)/);
      writeFileSync(file, key + readFileSync(file, 'utf8').replace(/^[^]*?(?=-----BEGIN CERT)/, ''));
      return undefined;
    },
  ],
  [
    'its file is damaged',
    ({ folder: own }) => {
      writeFileSync(join(own, 'server.pem'), 'x');
      return Promise.resolve(undefined);
    },
  ],
])('it is issued anew where %s', async (_name, change) => {
  const here = await newCase();
  const own = await here.process();
  await own.refresh();
  const before = serial(own);
  const after = (await change(here, own)) ?? own;
  await after.refresh();
  expect(serial(after)).not.toBe(before);
});

test('it is renewed at two thirds of its validity, not before, and while it is not valid', async () => {
  const here = await newCase();
  const first = await here.process();
  await first.refresh();
  const { notBefore, notAfter } = first.current.certificates[0];
  const [from, until] = [notBefore.getTime(), notAfter.getTime()];
  const unable = { prepareServerCertificate: () => Promise.reject(new Error('asked')) };
  const started = async (time: number): Promise<string> => {
    here.at(time);
    const own = await here.process(undefined, unable);
    await own.refresh();
    return serial(own);
  };
  const asked = () => here.logged.filter((line) => line.includes('asked')).length;
  const due = from + ((until - from) * 2) / 3;
  for (const [time, times] of [
    [from, 0],
    [due - 1, 0],
    [due, 1],
    [until - 1, 2],
    [until, 3],
    [from - 1, 4],
  ] as const)
    expect([await started(time), asked()]).toEqual([serial(first), times]);
});

test('a revoked certificate of another CA with its serial number does not matter', async () => {
  const here = await newCase();
  const own = await here.process();
  await own.refresh();
  const before = serial(own);
  const stranger = await makeIssuer('CN=Another', { serial: before });
  const row = certificateRow(stranger.der, { ca: 'another', requester: 'x', method: 'otp', request_id: 'x' });
  const reserved = reservation({ ca: 'another', serial: row.serial, request_id: 'x' });
  expect(row.serial).toBe(before);
  await here.store.reserve(reserved, []);
  await here.store.recordCertificate(row, []);
  const revocation = { ca: 'another', serial: before, revoked_at: Date.now(), invalidity_date: null };
  await here.store.revokeCertificate({ ...revocation, reason: 'keyCompromise' }, []);
  await own.refresh();
  expect(serial(own)).toBe(before);
});

test('nothing is signed without a reservation', async () => {
  const here = await newCase();
  const signed = {
    prepareServerCertificate: () =>
      Promise.resolve({ serial: 'no number', issue: () => Promise.reject(new Error('signed')) }),
  };
  const own = await here.process(undefined, signed);
  here.store.reserve = () => Promise.resolve('serial-taken');
  await expect(own.refresh()).rejects.toMatchObject({ code: 'CA_SIGNING_FAILED', detail: 'serial-taken' });
});

test('a chain without a root is sent whole', async () => {
  const here = await newCase();
  const issuing = parseCertificate(parsePem(readFileSync(files.certificate, 'utf8'))[0]?.der ?? Buffer.alloc(0));
  const own = await here.process(undefined, { chain: () => [issuing.der] });
  await own.refresh();
  expect(own.current.certificates.slice(1).map(({ subject }) => formatName(subject))).toEqual(['CN=own,O=Estuary']);
});

test('while the CA cannot sign, the former one goes on, also after it has expired; nothing is left open', async () => {
  const here = await newCase();
  await (await here.process()).refresh();
  const failing = (): Promise<never> => Promise.reject(new Error('no token'));
  const own = await here.process(undefined, {
    prepareServerCertificate: () => Promise.resolve({ serial: '0a', issue: failing }),
  });
  here.later(70);
  await own.refresh();
  const before = serial(own);
  await own.refresh();
  expect(serial(own)).toBe(before);
  expect(await here.store.openReservations()).toEqual([]);
  here.later(30);
  const started = await here.process(undefined, {
    prepareServerCertificate: () => Promise.resolve({ serial: '0b', issue: failing }),
  });
  for (const one of [own, started]) {
    await one.refresh();
    expect(serial(one)).toBe(before);
  }
  const without = await newCase();
  const first = await without.process(undefined, {
    prepareServerCertificate: () => Promise.resolve({ serial: '0a', issue: failing }),
  });
  await expect(first.refresh()).rejects.toThrow('no token');
});

test('a certificate whose subject is that of a CA is not issued', async () => {
  const here = await newCase();
  const { der } = await makeIssuer('CN=EST.example');
  const own = await here.process(['est.example', '192.0.2.7'], { chain: () => [der] });
  await expect(own.refresh()).rejects.toThrow('tls.automatic: CN=est.example is the subject of a CA of this server.');
  expect(await auditTypes(here.store)).toEqual([]);
});
