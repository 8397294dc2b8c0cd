/** Server-generated keys are archived before anything is signed, and nothing leaves when that fails. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { prepareAt, type KeyArchive, type PreparedIssuance } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import type { EnrollmentOutcome } from '../../src/enrollment/request.ts';
import { unavailable } from '../../src/errors.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { VerifiedCsr } from '../../src/pki/pkcs10/csr.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { opened, otpRow, T0, temporaryPaths } from '../store/support.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, otpIdentity, received } from './support.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const ADDRESS = 'address:192.0.2.1';
const otp = otpRow();
const csr = simpleCsr(makeKey(), 'device-1', ['device-1.example']);
let store: Store;
let steps: string[];
let sealed: Buffer | undefined;
let offered: VerifiedCsr | undefined;
let archive: () => Promise<string>;

const keyArchive: KeyArchive = {
  seal: (pkcs8) => {
    sealed = Buffer.from(pkcs8);
    return Promise.resolve({ parts: {} });
  },
  archive: () => {
    steps.push('archived');
    return archive();
  },
};

beforeEach(async () => {
  store = await opened(temporaryPaths(), () => T0 + 1000);
  await store.insertOtp(otp, []);
  steps = [];
  sealed = undefined;
  archive = () => Promise.resolve('17');
});

/** A CA of our own with the capabilities of a remote one. */
async function remoteCa(more: {
  readonly escrow?: boolean;
  readonly keyArchive?: KeyArchive;
  readonly approval?: 'manual';
}): Promise<Ca> {
  const local = await fileCa(folder, `ca-${Math.random().toString(36).slice(2)}`, true);
  const { driver } = local;
  const config = {
    ...local.config,
    approval: more.approval ?? local.config.approval,
    profile: { ...local.config.profile, key_escrow: more.escrow ?? false },
  };
  const signing = (prepared: PreparedIssuance): PreparedIssuance => ({
    ...prepared,
    issue: () => {
      steps.push('signed');
      return prepared.issue();
    },
  });
  return new Ca(config, {
    takesCsr: true,
    chain: () => driver.chain(),
    issue: () => Promise.reject(new Error('it was not prepared')),
    prepare: async (request) => {
      offered = request.csr;
      return signing(await prepareAt(driver, request));
    },
    ...(more.keyArchive === undefined ? {} : { keyArchive: more.keyArchive }),
  });
}

async function enrollGenerated(ca: Ca): Promise<EnrollmentOutcome> {
  const who = otpIdentity({ otp_id: otp.id, lockoutKeys: [ADDRESS] });
  const enrollment = pipeline({ store, identity: who });
  const { outcome } = await enrollment.enroll(received(ca, csr, { operation: 'serverkeygen' }));
  return outcome;
}

const archivals = async () => (await store.listAudit({ limit: 100, type: 'key.archived' })).items;

describe('a CA with a key archive', () => {
  test('has the key archived, then signs, and stores the id with the certificate', async () => {
    const outcome = await enrollGenerated(await remoteCa({ keyArchive }));
    expect(steps).toEqual(['archived', 'signed']);
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    expect(sealed).toEqual(outcome.key?.der);
    const { serialNumber } = parseCertificate(outcome.certificate);
    expect((await store.getCertificates(serialNumber))[0]).toMatchObject({ archived_key_id: '17' });
    expect(await archivals()).toEqual([
      expect.objectContaining({ outcome: 'success', request_id: 'request-1', detail: '17' }),
    ]);
  });

  test('that a profile may require', async () => {
    expect((await enrollGenerated(await remoteCa({ keyArchive, escrow: true }))).status).toBe('issued');
  });

  test('gets a PKCS#10 of the generated key with the names of the certificate', async () => {
    const outcome = await enrollGenerated(await remoteCa({ keyArchive }));
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    const certificate = parseCertificate(outcome.certificate);
    expect(offered?.publicKey.spki).toEqual(certificate.publicKey.spki);
    expect(offered && formatName(offered.subject)).toBe('CN=device-1');
    expect(offered?.subjectAltNames.map(formatGeneralName)).toEqual(['DNS:device-1.example']);
  });

  test('and an administrator who approves: queued with a PKCS#10 of a key for nobody, archived after the approval', async () => {
    const ca = await remoteCa({ keyArchive, approval: 'manual' });
    expect(await enrollGenerated(ca)).toMatchObject({ status: 'pending' });
    expect([steps, sealed]).toEqual([[], undefined]);
    expect(offered && formatName(offered.subject)).toBe('CN=device-1');
    const thrownAway = offered?.publicKey.spki;
    await store.decideRequest({ id: 'request-1', status: 'approved', reason: null, decided_at: T0 + 1000 }, []);
    const outcome = await enrollGenerated(ca);
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    expect(steps).toEqual(['archived', 'signed']);
    expect(parseCertificate(outcome.certificate).publicKey.spki).not.toEqual(thrownAway);
  });

  test.each([
    ['is down', () => Promise.reject(unavailable('KEY_ARCHIVE_UNAVAILABLE', 'not now', { retryAfter: 5 })), 503],
    ['breaks', () => Promise.reject(new Error('odd')), 500],
  ])('which %s: nothing is signed, the OTP use goes back, the failure is audited', async (_, fails, status) => {
    archive = fails;
    await expect(enrollGenerated(await remoteCa({ keyArchive }))).rejects.toMatchObject({ status });
    expect(steps).toEqual(['archived']);
    expect((await store.getOtp(otp.id))?.uses).toBe(0);
    expect(await store.openReservations()).toEqual([]);
    expect((await store.listCertificates({ limit: 10 }, T0)).items).toEqual([]);
    expect(await archivals()).toEqual([expect.objectContaining({ outcome: 'failure' })]);
  });

  test('which breaks: the use that goes back clears no lockout count', async () => {
    const fail = () =>
      store.recordFailure([ADDRESS], { max_failures: 1, failure_window: 300, lockout_duration: 900 }, T0, []);
    archive = () => Promise.reject(new Error('odd'));
    await fail();
    await expect(enrollGenerated(await remoteCa({ keyArchive }))).rejects.toMatchObject({ status: 500 });
    await fail();
    expect(await store.lockedUntil([ADDRESS], T0)).toBe(T0 + 900_000);
  });

  test('whose archived key could not be audited signs nothing', async () => {
    store.audit = () => Promise.reject(unavailable('AUDIT_UNAVAILABLE', 'no audit log'));
    await expect(enrollGenerated(await remoteCa({ keyArchive }))).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' });
    expect(steps).toEqual(['archived']);
  });
});

describe('a CA without a key archive', () => {
  test('that requires escrow refuses before anything is taken', async () => {
    await expect(enrollGenerated(await remoteCa({ escrow: true }))).rejects.toMatchObject({
      status: 500,
      code: 'KEY_ARCHIVE_MISSING',
    });
    expect(steps).toEqual([]);
    expect((await store.getOtp(otp.id))?.uses).toBe(0);
  });

  test('that does not require it signs, and no id is kept', async () => {
    const outcome = await enrollGenerated(await remoteCa({}));
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    const { serialNumber } = parseCertificate(outcome.certificate);
    expect((await store.getCertificates(serialNumber))[0]).toMatchObject({ archived_key_id: null });
    expect(await archivals()).toEqual([]);
  });
});
