import { describe, expect, test, vi } from 'vitest';

import { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import { IntermediateMemory } from '../../../src/auth/mtls/intermediate-memory.ts';
import { validatePresented } from '../../../src/auth/mtls/mtls.ts';
import { PresentedCertificates } from '../../../src/auth/mtls/presented-certificates.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import type { Store } from '../../../src/store/store.ts';
import { opened, temporaryPaths } from '../../store/support.ts';
import { makeCa, makeClient, type Issuer } from '../../support/certificates.ts';
import { NOW, UNKNOWN } from '../chain.ts';
import { clientTrust } from '../../support/client-trust.ts';

const DAY = 86_400_000;
const root = await makeCa('CN=Manufacturer Root');
const upper = await makeCa('CN=Upper', { issuer: root });
const lower = await makeCa('CN=Lower', { issuer: upper, notAfter: NOW + 2 * DAY });
const device = await makeClient('CN=device', lower);

const trustIn = (anchor: Issuer, intermediates: readonly Buffer[] = []): Promise<ClientTrust> =>
  clientTrust({ trustAnchors: encodePem('CERTIFICATE', anchor.der), intermediates });

/** Another process on the store: the outcome of a connection with these certificates. */
async function processOn(store: Store, anchor = root) {
  const trust = await trustIn(anchor);
  const memory = new IntermediateMemory(store);
  return async (leaf: Issuer, further: readonly Issuer[] = [], now = NOW): Promise<string> => {
    const ders = further.map(({ der }) => der);
    try {
      await validatePresented(trust, new PresentedCertificates(leaf.der, ders), now, { memory });
      return 'accepted';
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      return error.message;
    }
  };
}

const remembered = async (store: Store, leaf: Issuer): Promise<number> =>
  (await store.recallIntermediates(parseCertificate(leaf.der).fingerprint)).length;

describe('intermediates that a client sent are remembered for its resumed sessions', () => {
  test('another process finds the path, in any order of the intermediates, but not without them', async () => {
    const store = await opened(temporaryPaths());
    const [one, other] = [await processOn(store), await processOn(store)];
    expect(await other(device)).toBe(UNKNOWN);
    expect(await one(device, [upper, lower])).toBe('accepted');
    expect(await other(device)).toBe('accepted');
    expect(await other(await makeClient('CN=another', lower)), 'of another client').toBe(UNKNOWN);
  });

  test('they are candidates and not trusted: another anchor, and time, decide anew', async () => {
    const store = await opened(temporaryPaths());
    expect(await (await processOn(store))(device, [lower, upper])).toBe('accepted');
    expect(await (await processOn(store, await makeCa('CN=Other Root')))(device)).toBe(UNKNOWN);
    const later = await processOn(store);
    expect(await later(device, [], NOW + 3 * DAY)).toBe('client certificate issuer expired or not yet valid');
    expect(await later(device)).toBe('accepted');
  });

  test('a path that was never validated leaves nothing behind', async () => {
    const store = await opened(temporaryPaths());
    const foreign = await makeCa('CN=Foreign', { issuer: await makeCa('CN=Foreign Root') });
    const stranger = await makeClient('CN=stranger', foreign);
    expect(await (await processOn(store))(stranger, [foreign])).toBe(UNKNOWN);
    expect(await remembered(store, stranger)).toBe(0);
  });

  test('what the store holds is verified like what a client sends', async () => {
    const store = await opened(temporaryPaths());
    const impostor = await makeCa('CN=Lower', { slot: 'impostor', issuer: root });
    const { fingerprint } = parseCertificate(device.der);
    const row = { fingerprint: parseCertificate(impostor.der).fingerprint, der: impostor.der };
    await store.rememberIntermediates({ leaf: fingerprint, intermediates: [row] }, NOW);
    expect(await (await processOn(store))(device)).toBe(UNKNOWN);
  });

  test('what is known here anyway is not kept', async () => {
    const store = await opened(temporaryPaths());
    const memory = new IntermediateMemory(store);
    const trust = await trustIn(root, [upper.der]);
    const presented = new PresentedCertificates(device.der, [lower.der, upper.der, root.der]);
    await validatePresented(trust, presented, NOW, { memory });
    const kept = await store.recallIntermediates(parseCertificate(device.der).fingerprint);
    expect(kept.map(({ der }) => der)).toEqual([lower.der]);
  });

  test('the store is told once a day, and asked once per connection', async () => {
    const store = await opened(temporaryPaths());
    const [recall, remember] = [vi.spyOn(store, 'recallIntermediates'), vi.spyOn(store, 'rememberIntermediates')];
    const memory = new IntermediateMemory(store);
    for (const now of [NOW, NOW + 1000, NOW + DAY, NOW + DAY + 1])
      await validatePresented(await trustIn(root), new PresentedCertificates(device.der, [lower.der, upper.der]), now, {
        memory,
      });
    expect(remember).toHaveBeenCalledTimes(2);
    expect(recall).not.toHaveBeenCalled();
    const direct = new PresentedCertificates((await makeClient('CN=direct', root)).der, []);
    await validatePresented(await trustIn(root), direct, NOW, { memory });
    expect(remember, 'nothing to remember').toHaveBeenCalledTimes(2);
    const trust = await trustIn(root);
    const stranger = new PresentedCertificates((await makeClient('CN=a', await makeCa('CN=Nobody'))).der, []);
    const refusals = Array.from({ length: 20 }, () => validatePresented(trust, stranger, NOW, { memory }));
    expect((await Promise.allSettled(refusals)).every(({ status }) => status === 'rejected')).toBe(true);
    expect(recall).toHaveBeenCalledTimes(1);
  });
});
