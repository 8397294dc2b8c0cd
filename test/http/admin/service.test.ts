/** `GET /admin/service`: the address that devices use, and the labels to choose from. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { estUrlFor } from '../../../src/http/admin/service.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { dns, ip, makeCertificate, subjectAltName } from '../../support/certificates.ts';
import { adminFixture, ailingCa } from './support.ts';

const certificate = await makeCertificate({
  subject: 'CN=est',
  extensions: [subjectAltName(dns('*.wild.example'), dns('est.example'), dns('other.example'), ip('192.0.2.1'))],
}).then(({ der }) => encodePem('CERTIFICATE', der));

test.each([
  ['other.example', 9443, 'https://other.example:9443/.well-known/est'],
  ['a.wild.example', 9443, 'https://a.wild.example:9443/.well-known/est'],
  ['192.0.2.1', 443, 'https://192.0.2.1/.well-known/est'],
  ['localhost', 9443, 'https://est.example:9443/.well-known/est'],
  ['[::1]', 1443, 'https://est.example:1443/.well-known/est'],
])('the EST address for a call to %s, with the EST listener on %i, is %s', (host, port, url) => {
  expect(estUrlFor(host, { port, certificate })).toBe(url);
});

test('a server certificate without names leaves the host of the call', async () => {
  const { der } = await makeCertificate({ subject: 'CN=est' });
  const bare = encodePem('CERTIFICATE', der);
  expect(estUrlFor('[::1]', { port: 9443, certificate: bare })).toBe('https://[::1]:9443/.well-known/est');
});

test('an administrator gets the labels that it may name', async () => {
  const cas = ['devices', 'lab', 'guests'].map((label, n) =>
    ailingCa(label, () => Promise.resolve({ health: 'ok' }), [], n === 0),
  );
  const tokens = [
    { token: 'everywhere', roles: ['operator'] as const },
    { token: 'lab', roles: ['ra'] as const, labels: ['lab', 'gone'] },
  ].map(({ token, ...one }) => ({
    token_hash: `sha256:${createHash('sha256').update(token).digest('hex')}`,
    description: token,
    ...one,
  }));
  const { raw } = await adminFixture({ cas, auth: { bearer_token: { enabled: true, tokens } } });
  const labels = async (token: string) =>
    (await raw('GET', '/admin/service', { authorization: `Bearer ${token}` })).json().labels;
  expect(await labels('everywhere')).toEqual(['devices', 'lab', 'guests']);
  expect(await labels('lab')).toEqual(['lab']);
});
