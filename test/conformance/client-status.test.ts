/** What `estuary client` learns of its certificate from a server without renewal information for it, and from OCSP. */
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { liveCertificate } from '../support/estuary-client.ts';
import { type LocalClient, localClient } from '../support/local-client.ts';
import { freePort } from '../support/ports.ts';

/** Milliseconds until the client asks again. */
const AGAIN = 61_000;
let estuary: Estuary;

beforeAll(async () => {
  const port = await freePort();
  const publication = { enabled: true, host: '127.0.0.1', port, base_url: `http://127.0.0.1:${port}` };
  estuary = await Estuary.start({
    configure(config) {
      Object.assign(section(config, 'publication'), publication);
      caSection(config)['renewal'] = { retry_after: 60 };
    },
  });
});
afterAll(() => estuary.stop());

async function enrolled(name: string): Promise<LocalClient> {
  const { token } = await estuary.otp({ client_id: name });
  const url = `https://localhost:${estuary.server.port('est')}`;
  const client = localClient(join(estuary.dir, name), {
    server: { url, ca_fingerprint: new X509Certificate(estuary.root).fingerprint256 },
    certificate: { subject: `CN=${name}`, otp_env: 'OTP' },
    env: { OTP: token },
  });
  expect(await client.step()).toMatchObject({ outcome: 'changed', error: undefined });
  expect(client.status()).toBe('valid');
  return client;
}

test('a revoked certificate is revoked by OCSP, long before a renewal is rejected', async () => {
  const client = await enrolled('sold');
  const { serialNumber } = liveCertificate(client.folder);
  await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke`, { reason: 'superseded' });
  client.ahead = AGAIN;
  expect(await client.step()).toMatchObject({ outcome: 'valid' });
  expect(client.status()).toBe('revoked');
});

test('a certificate that nobody has revoked stays valid', async () => {
  const client = await enrolled('kept');
  client.ahead = AGAIN;
  expect(await client.step()).toMatchObject({ outcome: 'valid' });
  expect(client.status()).toBe('valid');
});
