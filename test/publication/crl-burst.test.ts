/** Revocations within `crl_after_revocation` share a CRL, in virtual time. */
import { expect, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { parseCertificateList, revokedCount } from '../../src/pki/x509/crl.ts';
import { CrlPublisher } from '../../src/publication/crl-publisher.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { certificateRow, opened, reservation, temporaryPaths } from '../store/support.ts';

const [SECOND, MINUTE] = [1000, 60_000];
const [COUNT, DELAY] = [2000, 10];

test(`${COUNT} revocations in a minute cost a CRL in ${DELAY} seconds, and the last one has them all`, async () => {
  const folder = temporaryFolder();
  const clock = { now: Math.floor(Date.now() / SECOND) * SECOND };
  const store = await opened(temporaryPaths(), () => clock.now);
  const ca = await fileCa(folder, 'devices', true);
  const signer = ca.driver.statusSigner;
  if (signer === undefined) throw new Error('the CA signs no CRLs');
  const issue = async (): Promise<string> => {
    const intent = reservation({ ca: 'devices', created_at: clock.now });
    await store.reserve(intent, []);
    const times = { not_before: clock.now, not_after: clock.now + 3_600_000, der: Buffer.alloc(1) };
    await store.recordCertificate(certificateRow(intent, times), []);
    return intent.serial ?? '';
  };
  const serials = await Promise.all(Array.from({ length: COUNT }, issue));
  const log = createLogger('silent');
  const publisher = new CrlPublisher({
    store,
    cas: () => [ca],
    interval: 3600,
    afterRevocation: DELAY,
    log,
    now: () => clock.now,
  });
  const first = await publisher.current(ca, signer);
  let last = first;
  const numbers = new Set<number>();
  const look = async (): Promise<void> => {
    clock.now += SECOND;
    last = await publisher.current(ca, signer);
    if (last.number > first.number) numbers.add(last.number);
  };
  const each = Math.ceil(COUNT / (MINUTE / SECOND));
  for (let done = 0; done < COUNT; done += each) {
    await Promise.all(
      serials
        .slice(done, done + each)
        .map((serial) =>
          store.revokeCertificate(
            { ca: 'devices', serial, reason: 'superseded', revoked_at: clock.now, invalidity_date: null },
            [],
          ),
        ),
    );
    await look();
  }
  for (let after = 0; after <= DELAY; after++) await look();
  expect(numbers.size).toBeLessThanOrEqual(MINUTE / SECOND / DELAY + 1);
  expect(revokedCount(parseCertificateList(last.der))).toBe(COUNT);
  folder.remove();
});
