/** A client certificate authenticates its holder; the store's records of it and of the CAs above it count. */
import { expect, test } from 'vitest';
import { MtlsPlugin } from '../../../src/auth/mtls/mtls.ts';
import { checkDeviceCas, isRecorded } from '../../../src/auth/mtls/revocation-lists.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { parseCertificate, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { certificateRow, reservation } from '../../store/rows.ts';
import { opened, temporaryPaths } from '../../store/support.ts';
import { makeCa, makeClient, type Issuer } from '../../support/certificates.ts';
import { clientTrust } from '../../support/client-trust.ts';
import { NOW } from '../chain.ts';
import { pem } from './crl-support.ts';

const parsed = ({ der }: Issuer): Certificate => parseCertificate(der);
const rowOf = (issuer: Issuer) =>
  certificateRow(reservation(), { der: issuer.der, serial: parsed(issuer).serialNumber });

const root = await makeCa('CN=Root');
const ours = await makeCa('CN=Ours', { issuer: root });
const deviceCa = await makeCa('CN=Device CA', { issuer: ours });
const leaf = await makeClient('CN=device', deviceCa);
const namesake = await makeCa('CN=Ours', { slot: 'namesake' });

test('a revoked CA below a CA of this server takes its clients with it, whichever place it has in the path', async () => {
  const outcome = (revoked: readonly Issuer[], path: readonly Issuer[], own: readonly Issuer[]): Promise<unknown> => {
    const rows = revoked.map(rowOf);
    const store = { findRevoked: (serial: string) => Promise.resolve(rows.filter((row) => row.serial === serial)) };
    const isOurs = ([first]: readonly Certificate[]): boolean => own.some(({ der }) => first?.der.equals(der) === true);
    return checkDeviceCas(store, path.map(parsed), isOurs).catch((error: unknown) =>
      error instanceof EstuaryError ? error.code : error,
    );
  };
  const REVOKED = 'CLIENT_CERTIFICATE_ISSUER_REVOKED';
  const path = [leaf, deviceCa, ours, root];
  expect(await outcome([deviceCa], path, [ours])).toBe(REVOKED);
  const lower = await makeCa('CN=Lower', { issuer: deviceCa });
  const deep = [await makeClient('CN=deep', lower), lower, deviceCa, ours];
  for (const revoked of [lower, deviceCa]) expect(await outcome([revoked], deep, [deviceCa, ours])).toBe(REVOKED);
  expect(await outcome([], path, [ours])).toBeUndefined();
  expect(await outcome([deviceCa], path, [root]), 'not below a CA of this server').toBeUndefined();
  const { serialNumber: serial } = parsed(deviceCa);
  const other = await makeCa('CN=Other', { issuer: namesake, serial });
  expect(await outcome([other], path, [ours]), 'the serial number of another issuer').toBeUndefined();
});

test('a certificate is recorded if the store has it of the same issuer, by name and key', async () => {
  const { serialNumber: serial } = parsed(leaf);
  const recorded = (...rows: readonly Issuer[]): Promise<boolean> =>
    isRecorded(
      { getCertificates: () => Promise.resolve(rows.map(rowOf)) },
      { certificate: parsed(leaf), issuer: parsed(deviceCa) },
    );
  const foreign = await makeClient('CN=device', await makeCa('CN=Device CA', { slot: 'foreign' }), { serial });
  expect(await recorded(leaf)).toBe(true);
  expect(await recorded(foreign, leaf)).toBe(true);
  expect(await recorded(foreign)).toBe(false);
  expect(await recorded()).toBe(false);
});

test.each([
  [true, 1],
  [false, 0],
])('remembers intermediates for resumed sessions: %s', async (remembers, count) => {
  const store = await opened(temporaryPaths());
  const trust = await clientTrust({ trustAnchors: pem(root) });
  const plugin = new MtlsPlugin(() => trust, store, remembers);
  const client = await makeClient('CN=a', ours);
  const send = (forwarded: boolean) =>
    plugin.authenticate(
      {
        peerCertificate: client.der,
        peerIntermediates: [ours.der],
        authorization: undefined,
        address: '192.0.2.1',
        forwarded,
      },
      { operation: 'simpleenroll', caLabel: 'devices', certificateOnly: false, expiredGraceSeconds: 0, now: NOW },
    );
  expect((await send(false))?.note).toBeUndefined();
  expect((await send(true))?.note).toBe('certificate forwarded by a proxy');
  expect(await store.recallIntermediates(parsed(client).fingerprint)).toHaveLength(count);
});
