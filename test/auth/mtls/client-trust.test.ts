import { describe, expect, test } from 'vitest';

import { validateClientCertificate } from '../../../src/auth/mtls/mtls.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { ecdsaTwin, makeCa, makeClient, NOT_AFTER } from '../../support/certificates.ts';
import { NOW, UNKNOWN } from '../chain.ts';
import { clientTrust } from '../../support/client-trust.ts';
import { crl, DAY, good, intermediate, pem, refusal, root } from './crl-support.ts';

describe('ClientTrust: what is given to TLS', () => {
  test('the anchors and the intermediates that chain to one, not the others', async () => {
    const stranger = await makeCa('CN=Stranger');
    const below = await makeCa('CN=Below', { issuer: stranger });
    const trust = await clientTrust({
      trustAnchors: pem(root),
      intermediates: [intermediate.der, stranger.der, below.der, root.der],
    });
    expect(trust.tlsCertificates).toEqual([pem(root), pem(intermediate)]);
  });

  test('a helping intermediate is trusted only through an anchor', async () => {
    const leaf = await makeClient('CN=a', intermediate);
    const other = await makeCa('CN=Other Root');
    const with_ = await clientTrust({ trustAnchors: pem(root), intermediates: [intermediate.der] });
    const without = await clientTrust({ trustAnchors: pem(other), intermediates: [intermediate.der] });
    expect(await refusal(with_, leaf)).toBeUndefined();
    expect(await refusal(without, leaf)).toBe(UNKNOWN);
  });

  test('of a chain of helping intermediates, an impostor with the same name and key identifier gains nothing', async () => {
    const lower = await makeCa('CN=Lower', { issuer: intermediate });
    const trust = await clientTrust({ trustAnchors: pem(root), intermediates: [lower.der, intermediate.der] });
    const leaf = await makeClient('CN=a', lower);
    const { path } = await validateClientCertificate(trust, leaf.der, [], NOW);
    expect(path.map(({ der }) => der)).toEqual([leaf.der, lower.der, intermediate.der, root.der]);
    const impostor = await makeCa('CN=Lower', { slot: 'impostor', issuer: { ...lower, subject: 'CN=Intermediate' } });
    const forged = await makeClient('CN=a', impostor);
    await expect(validateClientCertificate(trust, forged.der, [impostor.der], NOW)).rejects.toThrow(UNKNOWN);
  });
});

test('the certificate of a proxy authenticates nobody: in neither encoding, and not after its expiry', async () => {
  const current = await makeClient('CN=proxy', root);
  const former = await makeClient('CN=proxy', root, { notBefore: NOW - 90 * DAY, notAfter: NOW - DAY });
  const trust = await clientTrust({
    trustAnchors: pem(root),
    proxies: [current, former].map(({ der }) => parseCertificate(der)),
  });
  for (const { der } of [current, former])
    for (const encoded of [der, ecdsaTwin(der)])
      expect(await refusal(trust, { der: encoded }, NOW, 10 * 86_400)).toBe('client certificate belongs to a proxy');
  expect(await refusal(trust, good)).toBeUndefined();
});

describe('renewal_grace_days: a certificate expired a short time ago', () => {
  const expired = { notBefore: NOW - 90 * DAY, notAfter: NOW - 10 * DAY };

  test('is accepted within the grace period only, also when its CA expired with it', async () => {
    const ca = await makeCa('CN=Ends Too', { notBefore: NOW - 100 * DAY, notAfter: expired.notAfter });
    const trust = await clientTrust({ trustAnchors: pem(root, ca) });
    for (const issuer of [root, ca]) {
      const leaf = await makeClient('CN=a', issuer, expired);
      expect(await refusal(trust, leaf, NOW, 10 * 86_400)).toBeUndefined();
      expect(await refusal(trust, leaf, NOW + 1000, 10 * 86_400)).toMatch(/^client certificate (issuer )?expired/);
      expect(await refusal(trust, leaf, NOW)).toMatch(/^client certificate (issuer )?expired/);
    }
  });

  test('ends with the second in which the last day ends', async () => {
    const trust = await clientTrust({ trustAnchors: pem(root) });
    const leaf = await makeClient('CN=a', root, expired);
    const end = expired.notAfter + 86_400_000 + 999;
    expect(await refusal(trust, leaf, end, 86_400)).toBeUndefined();
    expect(await refusal(trust, leaf, end + 1, 86_400)).toBe('client certificate expired');
  });

  test('does not excuse a revocation, nor a CA that had expired before', async () => {
    const leaf = await makeClient('CN=a', root, { ...expired, serial: '0badca11' });
    const trust = await clientTrust({
      trustAnchors: pem(root),
      crls: [await crl(root, { revoked: ['0badca11'] })],
    });
    expect(await refusal(trust, leaf, NOW, 10 * 86_400)).toBe('client certificate revoked');
    const ca = await makeCa('CN=Ended', { notBefore: NOW - 100 * DAY, notAfter: NOW - 20 * DAY });
    const short = await clientTrust({ trustAnchors: pem(ca) });
    expect(await refusal(short, await makeClient('CN=a', ca, expired), NOW, 10 * 86_400)).toMatch(/issuer expired/);
  });
});

describe('the memory of a snapshot', () => {
  test('validity in time is judged again at every request', async () => {
    const trust = await clientTrust({ trustAnchors: pem(root) });
    const leaf = await makeClient('CN=a', root, { notAfter: NOW + DAY });
    expect(await refusal(trust, leaf)).toBeUndefined();
    expect(await refusal(trust, leaf, NOW + 2 * DAY)).toBe('client certificate expired');
    expect(await refusal(trust, leaf)).toBeUndefined();
    expect(await refusal(trust, leaf, NOT_AFTER + DAY)).toMatch(/expired/);
  });

  test('is bounded: more certificates than it holds are all judged right', async () => {
    const trust = await clientTrust({ trustAnchors: pem(root) });
    for (let i = 0; i < 2100; i++) {
      const fake = { ...(trust.anchors[0] ?? expect.fail()), fingerprint: String(i) };
      trust.cachePath([fake]);
    }
    expect(trust.cachedPath('0')).toBeUndefined();
    expect(trust.cachedPath('2099')).toBeDefined();
    expect(await refusal(trust, good)).toBeUndefined();
  });

  test.each([
    ['nothing', ''],
    ['no DER', 'ffff'],
    ['a truncated certificate', good.der.subarray(0, 100).toString('hex')],
    ['trailing bytes', `${good.der.toString('hex')}00`],
  ])('a client certificate of %s is refused', async (_, hex) => {
    const trust = await clientTrust({ trustAnchors: pem(root) });
    expect(await refusal(trust, { ...good, der: Buffer.from(hex, 'hex') })).toBe('client certificate malformed');
  });
});
