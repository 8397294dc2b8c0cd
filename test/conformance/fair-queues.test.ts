/** A device with many concurrent requests does not make others wait. */
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, extKeyUsage, keyUsage, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
let estuary: Estuary;
let service: Server;
/** By the subject of each request that the service was asked about; calling it allows the request. */
let asked: { readonly subject: string; readonly allow: () => void }[] = [];
let holds: RegExp | undefined;

const subjectOf = (body: string): string => (JSON.parse(body) as { subject: string }).subject;

beforeAll(async () => {
  const root = await makeCa('CN=Service root');
  const leaf = await makeClient('CN=inventory', root, {
    extensions: [keyUsage('digitalSignature'), extKeyUsage('1.3.6.1.5.5.7.3.1'), subjectAltName(dns('localhost'))],
  });
  writeFileSync(folder.file('root.pem'), encodePem('CERTIFICATE', root.der));
  service = createServer(
    { cert: encodePem('CERTIFICATE', leaf.der), key: pkcs8Pem(leaf.keys) },
    (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const subject = subjectOf(body);
        const allow = (): void => void response.end('{"allow":true}');
        asked.push({ subject, allow });
        if (holds?.test(subject) !== true) allow();
      });
    },
  );
  // After a stall, it would end a connection that the server is using.
  service.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const url = `https://localhost:${(service.address() as AddressInfo).port}/authorize`;
  estuary = await Estuary.start({
    configure: (config) => {
      const authorization = { url, trust_anchors: folder.file('root.pem'), timeout: 60, max_calls: 4 };
      Object.assign(caSection(config), { authorization });
      section(caSection(config), 'profile')['mtls_subject'] = 'any';
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  folder.remove();
});

test('while the authorization service keeps 40 requests of one device waiting, it decides on another device', async () => {
  const key = makeKey();
  const client = await estuary.enrolled(key);
  holds = /flood/;
  asked = [];
  const flood = Array.from({ length: 40 }, (_, i) =>
    estuary.enroll(onTheWire(simpleCsr(key, `flood-${i}`)), { client }),
  );
  await expect.poll(() => asked.length).toBe(3);
  const { token } = await estuary.otp();
  expect((await estuary.enroll(onTheWire(simpleCsr(makeKey(), 'other')), { password: token })).status).toBe(200);
  expect(
    asked
      .map(({ subject }) => subject)
      .toSorted()
      .at(-1),
  ).toBe('CN=other');
  expect(asked).toHaveLength(4);
  holds = undefined;
  for (const { allow } of asked) allow();
  expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([200]));
});
