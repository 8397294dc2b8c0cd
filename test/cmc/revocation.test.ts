/** RFC 5272 §6.11 and §6.14: who may revoke a certificate, or accept it (docs/guides/revocation.md). */
import { beforeEach, expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { unauthenticated } from '../../src/cmc/refusal.ts';
import { CertificateActions, type CertificateActionsOptions } from '../../src/cmc/revocation.ts';
import { certificateIdentity, secretIdentity, type Sender } from '../../src/cmc/sender.ts';
import type { RequestBase } from '../../src/enrollment/request.ts';
import type { SharedSecret } from '../../src/pki/cmc/identity-proof.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { certificateRow, reservation, T0 } from '../store/rows.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { outcome, senderOf } from './support.ts';

const issuing = await makeCa('CN=Issuing');
const device = await makeClient('CN=device-1', issuing);
const certificate = parseCertificate(device.der);
const issuer = parseCertificate(issuing.der);
const rowOf = (of: Issuer, more: Partial<CertificateRow> = {}): CertificateRow =>
  certificateRow(reservation(), { ca: 'devices', serial: certificate.serialNumber, der: of.der, ...more });

let rows: readonly CertificateRow[];
let hasIssued: boolean;
let done: unknown[];
const SECRET = Buffer.from('secret');
const CHALLENGE = 'challenge';

const known: SharedSecret = { secret: SECRET, identification: 'device 7' };
const wrong = unauthenticated(3, 'wrong');
const actions = new CertificateActions({
  store: {
    getCertificates: () => Promise.resolve(rows),
    revokeCertificate: (_: unknown, [event]: readonly [{ readonly subject?: string }]) => {
      done.push(event.subject);
      return Promise.resolve('revoked');
    },
    audit: (events: readonly { readonly type: string }[]) => Promise.resolve(void done.push(events[0]?.type)),
  },
  secrets: {
    verify: async (identification: string | undefined, _: unknown, check: (shared: SharedSecret) => boolean) => {
      if (identification !== known.identification || !check(known)) throw wrong;
      return Promise.resolve(known);
    },
    guard: async (_name: string, _attempt: unknown, _detail: string, check: () => Promise<boolean>) => {
      if (!(await check())) throw wrong;
    },
  },
  otp: {
    verifySecret: (hash: string, shown: string) =>
      Promise.resolve(hash === `hash of ${CHALLENGE}` && shown === CHALLENGE),
  },
  cas: { issuers: [] },
  log: { warn: () => undefined },
  now: () => T0,
} as unknown as CertificateActionsOptions);

function baseAt(methods?: readonly string[]): RequestBase {
  const ca = {
    label: 'devices',
    issuer: { label: 'devices' },
    hasIssued: () => hasIssued,
    config: { auth: { methods } },
  };
  return {
    requestId: 'request-1',
    operation: 'fullcmc',
    ca: ca as unknown as Ca,
    address: '192.0.2.1',
    identity: senderOf().identity,
    events: [],
  };
}

interface Shown {
  readonly sharedSecret?: Buffer;
  readonly identification?: string;
  readonly methods?: readonly string[];
}
const id = { issuer: certificate.issuer, serialNumber: certificate.serialNumber };
const revoke = (sender: Sender, { sharedSecret, identification, methods }: Shown = {}): Promise<string> =>
  outcome(() => {
    const request = { ...id, reason: 'superseded' as const, ...(sharedSecret !== undefined && { sharedSecret }) };
    return actions.revoke(3, request, identification, sender, baseAt(methods));
  });
const confirm = (sender: Sender): Promise<string> => outcome(() => actions.confirm(3, id, sender, baseAt()));

beforeEach(() => {
  [rows, hasIssued, done] = [[rowOf(device)], true, []];
});

const NOT_ALLOWED = '403 badIdentity [3]';
const holder = senderOf('subscriber', { certificate, issuer, identity: certificateIdentity(certificate, issuer) });
const bySecret = senderOf('subscriber', { secret: known, identity: secretIdentity('device 7') });
const ofSecret = { method: 'cmc', requester: 'identification:device 7' } as const;

test('the holder of the certificate, or a registration authority, revokes it; only the holder accepts it', async () => {
  expect(await revoke(holder)).toBe('ok');
  expect(await confirm(holder)).toBe('ok');
  expect(await revoke(senderOf('ra'))).toBe('ok');
  expect(done).toEqual(['CN=device-1', 'certificate.accepted', 'CN=sender']);
  expect(await confirm(senderOf('ra'))).toBe(NOT_ALLOWED);
  const other = parseCertificate((await makeClient('CN=device-2', issuing)).der);
  for (const stranger of [senderOf(), { ...holder, certificate: other }, bySecret]) {
    expect(await revoke(stranger)).toBe(NOT_ALLOWED);
    expect(await confirm(stranger)).toBe(NOT_ALLOWED);
  }
});

test('a sender that proved only a queued key, or nothing, is no holder', async () => {
  for (const limitedTo of ['shared-secret revocation', { queuedRequest: 'request-1' }] as const) {
    expect(await revoke({ ...holder, limitedTo })).toBe('401 badIdentity [3]');
    expect(await confirm({ ...holder, limitedTo })).toBe(NOT_ALLOWED);
  }
});

test('a certificate that was issued with a secret belongs to its identification, by that method only', async () => {
  rows = [rowOf(device, ofSecret)];
  expect(await revoke(bySecret)).toBe('ok');
  expect(await confirm(bySecret)).toBe('ok');
  expect(await revoke({ ...bySecret, secret: undefined })).toBe(NOT_ALLOWED);
  rows = [rowOf(device, { ...ofSecret, method: 'otp' })];
  expect(await revoke(bySecret)).toBe(NOT_ALLOWED);
  rows = [rowOf(device, { ...ofSecret, requester: 'identification:device 8' })];
  expect(await revoke(bySecret)).toBe(NOT_ALLOWED);
});

test('the secret in the control revokes what was issued with it, and nothing else', async () => {
  const nobody = senderOf('subscriber', { limitedTo: 'shared-secret revocation' });
  const shown = { sharedSecret: SECRET };
  rows = [rowOf(device, ofSecret)];
  expect(await revoke(nobody, shown)).toBe('ok');
  expect(await revoke(nobody, { ...shown, identification: 'device 7' })).toBe('ok');
  expect(done).toEqual(['identification:device 7', 'identification:device 7']);
  expect(await revoke(nobody, { sharedSecret: Buffer.from('guess') })).toBe('401 badIdentity [3]');
  expect(await revoke(nobody, { ...shown, methods: ['mtls'] }), 'the label ignores secrets').toBe(
    '401 badIdentity [3]',
  );
  for (const row of [
    { ...ofSecret, requester: 'identification:device 8' },
    { ...ofSecret, method: 'otp' },
  ] as const) {
    rows = [rowOf(device, row)];
    expect(await revoke(nobody, { ...shown, identification: 'device 7' })).toBe(NOT_ALLOWED);
  }
  rows = [];
  expect(await revoke(nobody, { ...shown, identification: 'device 7' })).toBe('400 badCertId [3]');
});

test('RFC 7894 §3.2: a revocation challenge revokes its certificate, if the message names no identification', async () => {
  const nobody = senderOf('subscriber', { limitedTo: 'shared-secret revocation' });
  const shown = { sharedSecret: Buffer.from(CHALLENGE) };
  const revocation_challenge = `hash of ${CHALLENGE}`;
  for (const more of [{}, { method: 'cmc', requester: 'CN=device-1, of a long name' }] as const) {
    rows = [rowOf(device, { ...more, revocation_challenge })];
    expect(await revoke(nobody, shown)).toBe('ok');
    expect(await revoke(nobody, { sharedSecret: SECRET })).toBe('401 badIdentity [3]');
    expect(await revoke(nobody, { ...shown, identification: 'device 7' })).toBe('401 badIdentity [3]');
  }
  rows = [rowOf(device)];
  expect(await revoke(nobody, shown)).toBe('401 badIdentity [3]');
});

test('the certificate is one that this label has issued, by issuer and serial number', async () => {
  rows = [];
  for (const work of [revoke, confirm]) expect(await work(holder)).toBe('400 badCertId [3]');
  rows = [rowOf(await makeClient('CN=device-1', await makeCa('CN=Elsewhere')))];
  expect(await revoke(senderOf('ra'))).toBe('400 badCertId [3]');
  [rows, hasIssued] = [[rowOf(device)], false];
  expect(await revoke(senderOf('ra'))).toBe('400 badCertId [3]');
});

test('a restored row without its certificate has no holder by its certificate', async () => {
  rows = [rowOf(device, { der: Buffer.alloc(0) })];
  expect(await revoke(holder)).toBe(NOT_ALLOWED);
  expect(await revoke(senderOf('ra'))).toBe('ok');
});
