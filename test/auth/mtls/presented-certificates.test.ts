import { describe, expect, test, vi } from 'vitest';

import { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import { validatePresented } from '../../../src/auth/mtls/mtls.ts';
import { PresentedCertificates } from '../../../src/auth/mtls/presented-certificates.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeCa, makeClient, type Issuer } from '../../support/certificates.ts';
import { NOW, UNKNOWN } from '../chain.ts';
import { clientTrust } from '../../support/client-trust.ts';

const DAY = 86_400_000;
const root = await makeCa('CN=Root');
const stranger = await makeClient('CN=stranger', await makeCa('CN=Stranger'));

const trustIn = (...anchors: readonly Issuer[]): Promise<ClientTrust> =>
  clientTrust({ trustAnchors: anchors.map(({ der }) => encodePem('CERTIFICATE', der)).join('') });

const shown = (leaf: Issuer, ...further: readonly Issuer[]): PresentedCertificates =>
  new PresentedCertificates(
    leaf.der,
    further.map(({ der }) => der),
  );

const outcome = async (trust: ClientTrust, presented: PresentedCertificates, now = NOW): Promise<string> =>
  validatePresented(trust, presented, now).then(
    () => 'accepted',
    (error: unknown) => (error instanceof EstuaryError ? error.message : String(error)),
  );

describe('a certificate is judged once per connection', () => {
  test('300 requests that come together or one after the other cost one search', async () => {
    const trust = await trustIn(root);
    const searches = vi.spyOn(trust, 'issuers');
    const presented = shown(stranger);
    const together = await Promise.all(Array.from({ length: 300 }, () => outcome(trust, presented)));
    for (let n = 0; n < 10; n++) together.push(await outcome(trust, presented));
    expect(new Set(together)).toEqual(new Set([UNKNOWN]));
    expect(searches).toHaveBeenCalledTimes(1);
    expect(await outcome(trust, shown(stranger))).toBe(UNKNOWN);
    expect(searches, 'another connection').toHaveBeenCalledTimes(2);
  });

  test('again when trust changes', async () => {
    const ca = await makeCa('CN=New Root');
    const presented = shown(await makeClient('CN=a', ca));
    expect(await outcome(await trustIn(root), presented)).toBe(UNKNOWN);
    expect(await outcome(await trustIn(root, ca), presented)).toBe('accepted');
    expect(await outcome(await trustIn(root), presented)).toBe(UNKNOWN);
  });

  test('again when an issuer begins or ends to be valid', async () => {
    const [from, until] = [NOW + DAY, NOW + 2 * DAY];
    const issuer = await makeCa('CN=Later', { issuer: root, notBefore: from, notAfter: until });
    const presented = shown(await makeClient('CN=a', issuer), issuer);
    const trust = await trustIn(root);
    const searches = vi.spyOn(trust, 'issuers');
    const untimely = 'client certificate issuer expired or not yet valid';
    for (const now of [NOW, from - 1]) expect(await outcome(trust, presented, now)).toBe(untimely);
    expect(searches).toHaveBeenCalledTimes(1);
    for (const now of [from, until + 999]) expect(await outcome(trust, presented, now)).toBe('accepted');
    for (const now of [until + 1000, until + DAY]) expect(await outcome(trust, presented, now)).toBe(untimely);
    expect(searches).toHaveBeenCalledTimes(3);
  });

  test('a rejection does not count for an earlier time, which a renewal after the expiry asks about', async () => {
    const issuer = await makeCa('CN=Earlier', { issuer: root, notAfter: NOW });
    const presented = shown(await makeClient('CN=a', issuer), issuer);
    const trust = await trustIn(root);
    const searches = vi.spyOn(trust, 'issuers');
    const untimely = 'client certificate issuer expired or not yet valid';
    for (const now of [NOW + 1000, NOW + 1000]) expect(await outcome(trust, presented, now)).toBe(untimely);
    expect(searches).toHaveBeenCalledTimes(1);
    expect(await outcome(trust, presented, NOW + 999)).toBe('accepted');
  });

  test("again when the client's own certificate begins or ends to be valid", async () => {
    const leaf = await makeClient('CN=a', root, { notBefore: NOW, notAfter: NOW + DAY });
    const trust = await trustIn(root);
    const presented = shown(leaf);
    expect(await outcome(trust, presented, NOW - 1)).toBe('client certificate not yet valid');
    expect(await outcome(trust, presented, NOW)).toBe('accepted');
    expect(await outcome(trust, presented, NOW + DAY + 1000)).toBe('client certificate expired');
  });

  test('a failure that is not a refusal is not kept', async () => {
    const trust = await trustIn(root);
    vi.spyOn(trust, 'issuers').mockImplementationOnce(() => {
      throw new Error('broken');
    });
    const presented = shown(await makeClient('CN=a', root));
    expect(await outcome(trust, presented)).toBe('Error: broken');
    expect(await outcome(trust, presented)).toBe('accepted');
  });
});

describe('certificates beyond the bounds are not walked', () => {
  const long = Array.from({ length: 500 }, (_, n) => `CN=${n}`).join(',');

  test("the client's own is refused before anything else is looked at", async () => {
    const trust = await trustIn(root);
    const searches = vi.spyOn(trust, 'issuers');
    expect(await outcome(trust, shown(await makeClient(long, root)))).toBe('client certificate too large');
    expect(searches).not.toHaveBeenCalled();
  });

  test('intermediates are passed over; of those that are not, eight are looked at', async () => {
    const many = await Promise.all(Array.from({ length: 9 }, (_, n) => makeCa(`CN=CA ${n}`, { issuer: root })));
    const large = await makeCa(long, { issuer: root });
    const subjects = shown(stranger, large, ...many)
      .intermediates()
      .map(({ subject }) => subject.rdns[0]?.[0]?.text);
    expect(subjects).toEqual(['CA 0', 'CA 1', 'CA 2', 'CA 3', 'CA 4', 'CA 5', 'CA 6']);
  });

  test('what the log says of an issuer that is not known is short', async () => {
    const name = `CN=${'a'.repeat(4000)}`;
    const leaf = await makeClient('CN=a', await makeCa(name));
    const refusal = await validatePresented(await trustIn(root), shown(leaf), NOW).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(EstuaryError);
    expect(refusal instanceof EstuaryError ? refusal.detail?.length : undefined).toBeLessThan(400);
  });
});
