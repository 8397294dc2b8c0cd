/** `driver = "acme"`: an error type of RFC 8555 §6.7 takes precedence over the HTTP status that carries it. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AcmeUpstream } from '../../../src/ca/acme/acme-upstream.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { dns, makeCa, makeCertificate, subjectAltName } from '../../support/certificates.ts';
import { startStandIn, type StandIn } from '../../support/est-stand-in.ts';

let server: StandIn;
let upstream: AcmeUpstream;
/** What newOrder answers. */
let answer: { readonly status: number; readonly type?: string; readonly retryAfter?: string };

beforeAll(async () => {
  const root = await makeCa('CN=ACME Root');
  const tls = await makeCertificate({
    subject: 'CN=localhost',
    issuer: root,
    extensions: [subjectAltName(dns('localhost'))],
  });
  server = await startStandIn(tls, ({ path, response }) => {
    const url = (name: string): string => `${server.url}/${name}`;
    const headers = { 'Content-Type': 'application/json', 'Replay-Nonce': 'nonce', Location: url('account') };
    if (path !== '/newOrder') {
      const body = { newNonce: url('newNonce'), newAccount: url('newAccount'), newOrder: url('newOrder') };
      return response.writeHead(200, headers).end(JSON.stringify(body));
    }
    const { status, type, retryAfter } = answer;
    response.writeHead(status, { ...headers, ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }) });
    const named = type === undefined ? {} : { type: `urn:ietf:params:acme:error:${type}` };
    return response.end(JSON.stringify({ ...named, detail: 'their\u0007 text' }));
  });
  upstream = new AcmeUpstream({
    directory: `${server.url}/directory`,
    tls: { ca: encodePem('CERTIFICATE', root.der) },
    accountKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    binding: undefined,
    contact: [],
    origins: [],
    store: { getAcmeAccount: () => Promise.resolve(undefined), putAcmeAccount: () => Promise.resolve() },
    log: { info: () => undefined, warn: () => undefined },
    challenge: 'none',
    dnsHook: undefined,
    timeout: 60_000,
    retryAfter: 7,
  });
});
afterAll(async () => {
  upstream.close();
  await server.stop();
});

test.each<[number, string | undefined, number, string | undefined]>([
  [500, 'badCSR', 400, 'their text'],
  [400, 'rejectedIdentifier', 403, 'their text'],
  [401, 'unauthorized', 403, 'their text'],
  [400, 'rateLimited', 503, undefined],
  [503, 'serverInternal', 503, undefined],
  [400, 'malformed', 500, undefined],
  [403, 'serverInternal', 500, undefined],
  [400, undefined, 400, 'their text'],
  [403, undefined, 403, 'their text'],
  [401, undefined, 500, undefined],
  [404, undefined, 500, undefined],
  [429, undefined, 503, undefined],
  [502, undefined, 500, undefined],
])('HTTP %i with %s is %i', async (status, type, expected, text) => {
  answer = { status, ...(type === undefined ? {} : { type }), ...(expected === 503 ? { retryAfter: '120' } : {}) };
  const request = {
    request_id: 'r1',
    csr: Buffer.alloc(0),
    subject: parseDistinguishedName('CN=a.example'),
    subjectAltNames: [dns('a.example')],
    requester: '',
    operation: '',
    notAfter: new Date(),
  };
  await expect(upstream.submit(request, true)).rejects.toMatchObject({
    status: expected,
    ...(text === undefined ? {} : { message: text }),
    ...(expected === 503 ? { retryAfter: 120 } : {}),
  });
});
