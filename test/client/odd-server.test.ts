/** How the commands of the client take what odd servers do: each row is one deviation of an otherwise correct server, and its consequence. */
import { createPrivateKey } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadClientConfig } from '../../src/client/config/load.ts';
import { keepUp } from '../../src/client/keep-up.ts';
import { DISK } from '../../src/client/keep/disk.ts';
import { certsOnly } from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { encodeCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';
import {
  basicConstraints,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  type Issuer,
} from '../support/certificates.ts';
import { makeEstCa, mayEnroll, type Answers, type EstCa } from '../support/est-ca.ts';
import { csrOf, sendCertificates, sendStatus, type StandIn, type StandInRequest } from '../support/est-stand-in.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { buildCsr, commonName, makeKey } from '../support/csr.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { estuary } from '../support/local-command.ts';

const folder = temporaryFolder();
const answers: Record<string, (request: StandInRequest) => unknown> = {};
let est: EstCa, other: Issuer, standIn: StandIn;
let clients = 0;
const DAY = 86_400_000;

beforeAll(async () => {
  est = await makeEstCa();
  other = await makeCa('CN=Other CA');
  standIn = await est.start(answers);
  writeFileSync(folder.file('ca.pem'), encodePem('CERTIFICATE', est.ca.der));
  writeFileSync(folder.file('otp'), 'secret\n');
  writeFileSync(folder.file('device.csr'), buildCsr(makeKey(), { subject: commonName('web') }));
  const { der, keys } = await makeClient('CN=web', est.ca);
  writeFileSync(folder.file('device.pem'), encodePem('CERTIFICATE', der));
  writeFileSync(folder.file('device.key'), pkcs8Pem(keys));
});
beforeEach(() => {
  for (const name of Object.keys(answers)) Reflect.deleteProperty(answers, name);
});
afterAll(async () => {
  await standIn.stop();
  folder.remove();
});

const client = (): LocalClient =>
  localClient(folder.file(`client-${++clients}`), {
    server: { url: standIn.url, trust_anchors: folder.file('ca.pem'), timeout: 60n },
    certificate: { subject: 'CN=web', otp_env: 'OTP' },
    env: { OTP: 'secret' },
  });

/** The code of the error, or the outcome. */
async function resultWith(odd: Answers): Promise<string> {
  Object.assign(answers, odd);
  const { outcome, error } = await client().step();
  return error?.code ?? outcome;
}

interface Printed {
  readonly outcome?: string;
  readonly error?: { readonly code: string };
  readonly certificates?: readonly Printed[];
}

/** The code of the error of a command, or its outcome; `changed` if it prints what it was asked for. */
async function resultOf(...args: readonly string[]): Promise<string> {
  return resultIn((await estuary(['client', ...args, '--json'])).out);
}

function resultIn(json: string): string {
  const printed = JSON.parse(json) as Printed;
  const { error, outcome = 'changed' } = { ...printed.certificates?.[0], ...printed };
  return error?.code ?? outcome.replace('issued', 'changed');
}
const single = (...args: readonly string[]): Promise<string> =>
  resultOf(...args, '--url', standIn.url, '--ca', folder.file('ca.pem'));
const withOtp = (...args: readonly string[]): Promise<string> => single(...args, '--otp-file', folder.file('otp'));

const identity = (): string[] => ['--cert', folder.file('device.pem'), '--key', folder.file('device.key')];

/** The commands that get a certificate, each with its outcome if the server answers it oddly. */
const WAYS: readonly (readonly [string, (odd: (request: StandInRequest) => unknown) => Promise<string>])[] = [
  ['enroll', (simpleenroll) => resultWith({ simpleenroll })],
  [
    'enroll --csr',
    (simpleenroll) => {
      answers['simpleenroll'] = simpleenroll;
      return withOtp('enroll', '--csr', folder.file('device.csr'));
    },
  ],
  [
    'enroll --key',
    (simpleenroll) => {
      answers['simpleenroll'] = simpleenroll;
      return withOtp('enroll', '--key', folder.file('device.key'), '--subject', 'CN=web', '--stdout');
    },
  ],
  [
    'reenroll',
    (simplereenroll) => {
      answers['simplereenroll'] = simplereenroll;
      return single('reenroll', ...identity());
    },
  ],
  [
    'reenroll --csr',
    (simplereenroll) => {
      answers['simplereenroll'] = simplereenroll;
      return single('reenroll', '--csr', folder.file('device.csr'), ...identity());
    },
  ],
  ['renew', (odd) => renewedWith(odd, (config) => resultOf('renew', '--config', config, '--force'))],
  ['run', (odd) => renewedWith(odd, stepOfRun)],
];

/** One that keeps a folder and one that does not: with these, every answer is tried. */
const BOTH = WAYS.filter(([way]) => way === 'enroll' || way === 'reenroll');

/** Renews a certificate in a folder, and finds the folder's certificate valid afterwards. */
async function renewedWith(
  odd: (request: StandInRequest) => unknown,
  renew: (config: string) => Promise<string>,
): Promise<string> {
  const out = folder.file(`client-${++clients}`);
  expect(await withOtp('enroll', '--subject', 'CN=web', '--out', out)).toBe('changed');
  answers['simplereenroll'] = odd;
  const config = `${out}/client.toml`;
  const result = await renew(config);
  const { out: status } = await estuary(['client', 'status', '--config', config, '--json']);
  expect(JSON.parse(status)).toMatchObject({ certificates: [{ state: 'valid' }] });
  return result;
}

/** The daemon when the renewal is due, with the process of its step inside this one. `start.slow.test.ts` has both processes. */
async function stepOfRun(file: string): Promise<string> {
  const now = (): number => Date.now() + 8 * DAY;
  const stop = new AbortController();
  let out = '{}';
  await keepUp(
    loadClientConfig(file),
    { disk: DISK, env: {}, now, log: () => undefined },
    async ({ name }) => {
      stop.abort();
      ({ out } = await estuary(['client', 'renew', '--config', file, '--name', name, '--json'], { now }));
    },
    stop.signal,
  );
  return resultIn(out);
}

const P7 = 'application/pkcs7-mime; smime-type=certs-only';
const base64 = (der: Buffer): string => der.toString('base64');
const lines = (der: Buffer, width: number, end: string): string =>
  (base64(der).match(new RegExp(`.{1,${width}}`, 'g')) ?? []).map((line) => `${line}${end}`).join('');

/** A certificate for the request, sent as `write` does. */
const issued =
  (write: (request: StandInRequest, p7: Buffer, certificate: Buffer) => unknown) =>
  async (request: StandInRequest): Promise<void> => {
    if (!mayEnroll(request)) return;
    const certificate = await est.issue(csrOf(request));
    write(request, certsOnly([certificate]), certificate);
  };
const body = (content: (p7: Buffer, certificate: Buffer) => string | Buffer, type = P7) =>
  issued(({ response }, p7, certificate) => {
    if (type !== '') response.setHeader('Content-Type', type);
    response.end(content(p7, certificate));
  });

function damaged(p7: Buffer): Buffer {
  const copy = Buffer.from(p7);
  const place = copy.length - 12;
  copy[place] = (copy[place] ?? 0) ^ 1;
  return copy;
}

/** An indefinite length for the outer value (X.690 §8.1.3.6). */
function ber(der: Buffer): Buffer {
  const [tag = 0, length = 0] = der;
  const content = der.subarray(length < 0x80 ? 2 : 2 + (length & 0x7f));
  return Buffer.concat([Buffer.from([tag, 0x80]), content, Buffer.alloc(2)]);
}

describe.each(WAYS.filter((way) => !BOTH.includes(way)))('client %s: an answer of each kind', (_command, resultFor) => {
  const refused = (status: number) => (request: StandInRequest) => mayEnroll(request) && sendStatus(request, status);
  test.each<[string, Answers[string], string]>([
    ['as DER', body((p7) => p7), 'changed'],
    ['that is empty', body(() => ''), 'ANSWER_INVALID'],
    ['with an octet of its signature changed', body((p7) => base64(damaged(p7))), 'CA_UNTRUSTED'],
    ['that never comes: the connection is closed', issued(({ socket }) => socket.destroy()), 'SERVER_UNREACHABLE'],
    ['202', refused(202), 'pending'],
    ['403', refused(403), 'REFUSED'],
    ['503', refused(503), 'SERVER_UNAVAILABLE'],
  ])('%s', async (_name, odd, expected) => {
    expect(await resultFor(odd)).toBe(expected);
  });
});

describe.each(BOTH)('client %s: the body of a certificate', (_command, resultFor) => {
  test.each<[string, Answers[string], string]>([
    [
      'chunked',
      issued(
        ({ response }, p7) =>
          void (
            response.writeHead(200, { 'Content-Type': P7 }),
            response.write(base64(p7).slice(0, 99)),
            response.end(base64(p7).slice(99))
          ),
      ),
      'changed',
    ],
    [
      'chunked, octet by octet',
      issued(({ response }, p7) => {
        response.writeHead(200, { 'Content-Type': P7 });
        for (const char of base64(p7).slice(0, 200)) response.write(char);
        response.end(base64(p7).slice(200));
      }),
      'changed',
    ],
    ['in lines of 64 with LF', body((p7) => lines(p7, 64, '\n')), 'changed'],
    ['in lines of 76 with CRLF', body((p7) => lines(p7, 76, '\r\n')), 'changed'],
    ['in lines of one character', body((p7) => lines(p7, 1, '\n')), 'changed'],
    ['with white space around', body((p7) => ` \r\n\t${base64(p7)}  \r\n\r\n`), 'changed'],
    ['with a NUL at the end', body((p7) => `${base64(p7)}\n\0`), 'changed'],
    [
      'with 201',
      issued(({ response }, p7) => response.writeHead(201, { 'Content-Type': P7 }).end(base64(p7))),
      'changed',
    ],
    ['as PEM', body((p7) => encodePem('PKCS7', p7)), 'changed'],
    ['as DER', body((p7) => p7), 'changed'],
    ['as BER with an indefinite length', body((p7) => base64(ber(p7))), 'changed'],
    ['of the type in capitals', body(base64, 'APPLICATION/PKCS7-MIME; SMIME-TYPE=certs-only'), 'changed'],
    ['of the type without smime-type', body(base64, 'application/pkcs7-mime'), 'changed'],
    [
      'of a type with more parameters',
      body(base64, 'application/pkcs7-mime;charset=utf-8;smime-type=certs-only;name=a.p7c'),
      'changed',
    ],
    [
      'with fifty other headers',
      issued(({ response }, p7) => {
        for (let n = 0; n < 50; n++) response.setHeader(`X-${n}`, 'x'.repeat(50));
        response.writeHead(200, { 'Content-Type': P7 }).end(base64(p7));
      }),
      'changed',
    ],
    [
      'and the connection closed',
      issued(({ response }, p7) =>
        response.writeHead(200, { 'Content-Type': P7, Connection: 'close' }).end(base64(p7)),
      ),
      'changed',
    ],
    [
      'after 102 Processing',
      issued(({ response }, p7) => {
        response.writeProcessing();
        response.writeHead(200, { 'Content-Type': P7 }).end(base64(p7));
      }),
      'changed',
    ],
    [
      'after 103 Early Hints',
      issued(({ response }, p7) => {
        response.writeEarlyHints({ link: '</x>; rel=preload' });
        response.writeHead(200, { 'Content-Type': P7 }).end(base64(p7));
      }),
      'changed',
    ],
    ['without a type', body(base64, ''), 'ANSWER_INVALID'],
    ['of the type text/html', body(() => '<html>Login</html>', 'text/html'), 'ANSWER_INVALID'],
    ['that is empty', body(() => ''), 'ANSWER_INVALID'],
    ['that is not base64', body(() => '%%%%'), 'ANSWER_INVALID'],
    ['of random octets', body(() => Buffer.alloc(500, 0xa7)), 'ANSWER_INVALID'],
    ['that is a certificate and not a PKCS #7', body((_, certificate) => base64(certificate)), 'ANSWER_INVALID'],
    ['without a certificate', body(() => base64(certsOnly([]))), 'ANSWER_INVALID'],
    ['cut in the base64', body((p7) => base64(p7).slice(0, 401)), 'ANSWER_INVALID'],
    ['cut in the DER', body((p7) => base64(p7.subarray(0, 300))), 'ANSWER_INVALID'],
    ['with an octet of its signature changed', body((p7) => base64(damaged(p7))), 'CA_UNTRUSTED'],
    [
      'compressed with gzip',
      issued(({ response }, p7) =>
        response.writeHead(200, { 'Content-Type': P7, 'Content-Encoding': 'gzip' }).end(gzipSync(base64(p7))),
      ),
      'ANSWER_INVALID',
    ],
    ['of two megabytes', body(() => 'A'.repeat(2 << 20)), 'SERVER_UNREACHABLE'],
    [
      'cut before its Content-Length',
      issued(({ response }, p7) => {
        response.writeHead(200, { 'Content-Type': P7, 'Content-Length': 5000 });
        response.write(base64(p7).slice(0, 100), () => response.destroy());
      }),
      'SERVER_UNREACHABLE',
    ],
    [
      'cut within its chunks',
      issued(({ response }) => {
        response.writeHead(200, { 'Content-Type': P7 });
        response.write('MII', () => response.destroy());
      }),
      'SERVER_UNREACHABLE',
    ],
    ['that never comes: the connection is closed', issued(({ socket }) => socket.destroy()), 'SERVER_UNREACHABLE'],
    ['that is not HTTP', issued(({ socket }) => socket.end('SSH-2.0-x\r\n')), 'SERVER_UNREACHABLE'],
  ])('%s', async (_name, odd, expected) => {
    expect(await resultFor(odd)).toBe(expected);
  });
});

describe.each(BOTH)('client %s: the certificate', (_command, resultFor) => {
  const certificates =
    (make: (request: StandInRequest) => Promise<readonly Buffer[]>) =>
    async (request: StandInRequest): Promise<void> => {
      if (mayEnroll(request)) sendCertificates(request, await make(request));
    };
  const changed = (changes: Parameters<EstCa['issue']>[1]) =>
    certificates(async (request) => [await est.issue(csrOf(request), changes)]);

  test.each<[string, () => Answers[string], string]>([
    [
      'followed by its chain',
      () => certificates(async (request) => [await est.issue(csrOf(request)), est.ca.der]),
      'changed',
    ],
    [
      'after its chain',
      () => certificates(async (request) => [est.ca.der, await est.issue(csrOf(request))]),
      'changed',
    ],
    ['with another subject', () => changed({ subject: 'CN=other' }), 'changed'],
    ['without extensions', () => changed({ extensions: [] }), 'changed'],
    ['valid from tomorrow', () => changed({ notBefore: Date.now() + DAY }), 'changed'],
    ['expired', () => changed({ notBefore: Date.now() - 9 * DAY, notAfter: Date.now() - DAY }), 'CLOCK_WRONG'],
    [
      'for another key',
      () =>
        certificates(async (request) => [
          await est.issue({ ...csrOf(request), publicKey: parsePublicKey(makeKey().spki) }),
        ]),
      'ANSWER_INVALID',
    ],
    ['of a CA', () => changed({ extensions: [basicConstraints(true), keyUsage('keyCertSign')] }), 'ANSWER_INVALID'],
    [
      'of another CA',
      () =>
        certificates(async (request) => {
          const { der } = await makeCertificate({
            subject: 'CN=web',
            issuer: other,
            keys: { publicKey: csrOf(request).publicKey.keyObject, privateKey: other.keys.privateKey },
          });
          return [der];
        }),
      'CA_UNTRUSTED',
    ],
  ])('%s', async (_name, odd, expected) => {
    expect(await resultFor(odd())).toBe(expected);
  });
});

describe('202', () => {
  const at = (ahead: number): Date => new Date(Date.now() + ahead * 1000);
  test.each<[string, () => string | undefined, number]>([
    ['120', () => '120', 120],
    ['0', () => '0', 1],
    ['a year', () => '31536000', 604_800],
    ['an IMF-fixdate', () => at(300).toUTCString(), 300],
    [
      'an RFC 850 date',
      () =>
        at(300)
          .toUTCString()
          .replace(/^(\w+), (\d\d) (\w+) \d\d(\d\d)/, 'Monday, $2-$3-$4'),
      300,
    ],
    [
      'an asctime date',
      () =>
        at(300)
          .toUTCString()
          .replace(
            /^(\w+), 0?(\d+) (\w+) (\d+) (\S+) GMT/,
            (_, day: string, date: string, month: string, year: string, time: string) =>
              `${day} ${month} ${date.padStart(2)} ${time} ${year}`,
          ),
      300,
    ],
    ['a date in the past', () => at(-300).toUTCString(), 1],
    ['an ISO date', () => at(300).toISOString(), 60],
    ['a fraction', () => '1.5', 60],
    ['a negative number', () => '-5', 60],
    ['a word', () => 'soon', 60],
    ['nothing', () => undefined, 60],
  ])('Retry-After with %s', async (_name, header, seconds) => {
    answers['simpleenroll'] = (request) => {
      const value = header();
      if (mayEnroll(request)) sendStatus(request, 202, value === undefined ? {} : { 'Retry-After': value });
    };
    const one = client();
    const began = Date.now();
    const { outcome, next } = await one.step();
    expect(outcome).toBe('pending');
    // A date has no milliseconds.
    expect((next - began) / 1000).toBeGreaterThanOrEqual(seconds - 2);
    expect((next - Date.now()) / 1000).toBeLessThanOrEqual(seconds + 2);
  });
});

describe.each(BOTH)('client %s: the status', (_command, resultFor) => {
  test.each([
    [202, 'pending'],
    // Without a certificate.
    [201, 'ANSWER_INVALID'],
    [204, 'REFUSED'],
    [303, 'REFUSED'],
    [400, 'REFUSED'],
    [401, 'REFUSED'],
    [403, 'REFUSED'],
    [404, 'REFUSED'],
    [405, 'REFUSED'],
    [408, 'SERVER_UNAVAILABLE'],
    [409, 'REFUSED'],
    [415, 'REFUSED'],
    [418, 'REFUSED'],
    [423, 'REFUSED'],
    [429, 'SERVER_UNAVAILABLE'],
    [500, 'SERVER_UNAVAILABLE'],
    [502, 'SERVER_UNAVAILABLE'],
    [503, 'SERVER_UNAVAILABLE'],
    [504, 'SERVER_UNAVAILABLE'],
  ])('%i: %s', async (status, expected) => {
    expect(await resultFor((request) => mayEnroll(request) && sendStatus(request, status))).toBe(expected);
  });
});

describe('the challenge', () => {
  test.each([
    ['Basic', 'Basic realm="est"', 'changed'],
    ['basic in small letters', 'basic realm=est', 'changed'],
    ['Basic without a realm', 'Basic', 'changed'],
    ['Digest with MD5', 'Digest realm="est", nonce="n", qop="auth"', 'changed'],
    ['Digest with SHA-256', 'Digest realm="est", nonce="n", qop="auth", algorithm=SHA-256', 'changed'],
    ['Digest without qop', 'Digest realm="est", nonce="n"', 'changed'],
    ['Digest with auth and auth-int', 'Digest realm="est", nonce="n", qop="auth-int, auth", opaque="o"', 'changed'],
    ['Digest with auth-int only', 'Digest realm="est", nonce="n", qop="auth-int"', 'CREDENTIALS_MISSING'],
    [
      'Digest with an unknown hash, and Basic',
      'Digest realm="est", nonce="n", algorithm=X, Basic realm="est"',
      'changed',
    ],
    ['Negotiate, and Basic', 'Negotiate, Basic realm="est"', 'changed'],
    ['Bearer only', 'Bearer realm="est"', 'CREDENTIALS_MISSING'],
    ['nothing that is a challenge', '???', 'CREDENTIALS_MISSING'],
    ['none', undefined, 'REFUSED'],
  ])('%s', async (_name, challenge, expected) => {
    const simpleenroll: Answers[string] = async (request) => {
      if (request.headers.authorization === undefined)
        return sendStatus(request, 401, challenge === undefined ? {} : { 'WWW-Authenticate': challenge });
      return sendCertificates(request, [await est.issue(csrOf(request))]);
    };
    expect(await resultWith({ simpleenroll })).toBe(expected);
    expect(await withOtp('enroll', '--csr', folder.file('device.csr'))).toBe(expected);
  });
});

describe('cacerts', () => {
  const listed = (ders: () => readonly Buffer[]) => (request: StandInRequest) => sendCertificates(request, ders());
  test.each<[string, () => Answers[string], string]>([
    ['with the same CA twice', () => listed(() => [est.ca.der, est.ca.der]), 'changed'],
    ['with another CA, which is not trusted', () => listed(() => [est.ca.der, other.der]), 'changed'],
    [
      'as DER',
      () =>
        ({ response }) =>
          response.writeHead(200, { 'Content-Type': P7 }).end(certsOnly([est.ca.der])),
      'changed',
    ],
    [
      'as PEM',
      () =>
        ({ response }) =>
          response.writeHead(200, { 'Content-Type': P7 }).end(encodePem('PKCS7', certsOnly([est.ca.der]))),
      'changed',
    ],
    ['without smime-type', () => (request) => sendCertificates(request, [est.ca.der], false), 'changed'],
    ['empty', () => listed(() => []), 'ANSWER_INVALID'],
    [
      'as JSON',
      () =>
        ({ response }) =>
          response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}'),
      'ANSWER_INVALID',
    ],
    [
      'after a redirection within the server',
      () => (request) =>
        request.path.endsWith('?x')
          ? sendCertificates(request, [est.ca.der])
          : sendStatus(request, 301, { Location: '/.well-known/est/moved' }),
      'changed',
    ],
    [
      'after a redirection to http',
      () => (request) => sendStatus(request, 302, { Location: 'http://localhost/x' }),
      'REDIRECTED',
    ],
    [
      'after a redirection to another port',
      () => (request) => sendStatus(request, 308, { Location: 'https://localhost:1/x' }),
      'REDIRECTED',
    ],
    [
      'after a redirection to no URL',
      () => (request) => sendStatus(request, 302, { Location: 'https://[' }),
      'REDIRECTED',
    ],
    [
      'after a redirection in a circle',
      () => (request) => sendStatus(request, 307, { Location: 'cacerts' }),
      'REDIRECTED',
    ],
    ['after a redirection without a place', () => (request) => sendStatus(request, 302), 'REFUSED'],
  ])('%s', async (_name, cacerts, expected) => {
    answers['moved'] = (request) => sendCertificates(request, [est.ca.der]);
    expect(await resultWith({ cacerts: cacerts() })).toBe(expected);
    expect(await single('cacerts')).toBe(expected);
  });
});

describe('csrattrs', () => {
  const content =
    (text: string, status = 200) =>
    ({ response }: StandInRequest) =>
      response.writeHead(status, { 'Content-Type': 'application/csrattrs' }).end(text);
  const asking = (...oids: readonly string[]) => content(base64(encodeCsrAttrs(oids.map((oid) => ({ oid })))));
  test.each<[string, Answers[string], string]>([
    ['empty', content(''), 'changed'],
    ['an empty list', content('MAA='), 'changed'],
    ['a NUL at the end, as libest writes it', content('MAA=\0'), 'changed'],
    ['404', content('', 404), 'changed'],
    ['401', content('', 401), 'changed'],
    ['501', content('', 501), 'changed'],
    ['an unknown demand', asking('1.2.3.4'), 'changed'],
    ['the channel binding', asking(OID.challengePassword), 'changed'],
    ['Ed25519', asking(OID.ed25519), 'changed'],
    ['not DER', content('AAAA'), 'ANSWER_INVALID'],
    ['not base64', content('!'), 'ANSWER_INVALID'],
    ['500', content('', 500), 'SERVER_UNAVAILABLE'],
    ['403', content('', 403), 'REFUSED'],
  ])('%s', async (name, csrattrs, expected) => {
    expect(await resultWith({ csrattrs })).toBe(expected);
    expect(await withOtp('csrattrs')).toBe(name === '401' ? 'REFUSED' : expected);
  });
});

describe('client serverkeygen', () => {
  const generated = makeKey('rsa2048');
  const pkcs8 = createPrivateKey(generated.pem).export({ format: 'der', type: 'pkcs8' });
  interface Parts {
    readonly key: string;
    readonly certificate: string;
  }
  const part = (type: string, content: string): string =>
    `Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${content}\r\n`;
  const keyPart = (content = base64(pkcs8)): string => part('application/pkcs8', content);
  /** A response with a body that is made of a key and a certificate. */
  const sent =
    (write: (parts: Parts) => string | Buffer, type = 'multipart/mixed; boundary=b', spki = generated.spki) =>
    async (request: StandInRequest): Promise<void> => {
      if (!mayEnroll(request)) return;
      const certificate = await est.issue({ ...csrOf(request), publicKey: parsePublicKey(spki) });
      const content = write({ key: keyPart(), certificate: part(P7, base64(certsOnly([certificate]))) });
      request.response.writeHead(200, { 'Content-Type': type }).end(content);
    };
  const inOrder = (...parts: readonly string[]): string => `${parts.map((part) => `--b\r\n${part}`).join('')}--b--\r\n`;
  const status = (code: number) => (request: StandInRequest) => mayEnroll(request) && sendStatus(request, code);

  test.each<[string, Answers[string], string]>([
    ['the key first', sent(({ key, certificate }) => inOrder(key, certificate)), 'changed'],
    ['the certificate first', sent(({ key, certificate }) => inOrder(certificate, key)), 'changed'],
    [
      'another part between them',
      sent(({ key, certificate }) => inOrder(key, part('text/plain', 'x'), certificate)),
      'changed',
    ],
    [
      'lines that end with LF',
      sent(({ key, certificate }) => inOrder(key, certificate).replaceAll('\r', '')),
      'changed',
    ],
    [
      'a preamble and an epilogue',
      sent(({ key, certificate }) => `Hello\r\n${inOrder(key, certificate)}Bye`),
      'changed',
    ],
    ['no last boundary', sent(({ key, certificate }) => inOrder(key, certificate).replace('--b--', '')), 'changed'],
    [
      'a quoted boundary, and the type in capitals',
      sent(({ key, certificate }) => inOrder(key, certificate), 'MULTIPART/MIXED; Boundary="b"'),
      'changed',
    ],
    ['the key as PEM', sent(({ certificate }) => inOrder(keyPart(generated.pem), certificate)), 'changed'],
    [
      'the key in lines of 64',
      sent(({ certificate }) => inOrder(keyPart(lines(pkcs8, 64, '\r\n')), certificate)),
      'changed',
    ],
    [
      'the key as DER',
      sent(({ certificate }) => Buffer.from(inOrder(keyPart(pkcs8.toString('latin1')), certificate), 'latin1')),
      'changed',
    ],
    ['no key', sent(({ certificate }) => inOrder(certificate)), 'ANSWER_INVALID'],
    ['no certificate', sent(({ key }) => inOrder(key)), 'ANSWER_INVALID'],
    ['no parts', sent(() => '--b--\r\n'), 'ANSWER_INVALID'],
    [
      'a body cut in the second part',
      sent(({ key, certificate }) => inOrder(key, certificate).slice(0, -101)),
      'ANSWER_INVALID',
    ],
    ['no boundary', sent(({ key, certificate }) => inOrder(key, certificate), 'multipart/mixed'), 'ANSWER_INVALID'],
    [
      'another boundary',
      sent(({ key, certificate }) => inOrder(key, certificate), 'multipart/mixed; boundary=c'),
      'ANSWER_INVALID',
    ],
    ['only a certificate, as of simpleenroll', body(base64), 'ANSWER_INVALID'],
    ['a key that is not DER', sent(({ certificate }) => inOrder(keyPart('Bwc='), certificate)), 'ANSWER_INVALID'],
    ['a key that is not PKCS #8', sent(({ certificate }) => inOrder(keyPart('MAA='), certificate)), 'KEY_UNUSABLE'],
    [
      'a certificate for another key',
      sent(({ key, certificate }) => inOrder(key, certificate), undefined, makeKey().spki),
      'ANSWER_INVALID',
    ],
    ['202', status(202), 'pending'],
    ['400', status(400), 'REFUSED'],
    ['404', status(404), 'REFUSED'],
    ['503', status(503), 'SERVER_UNAVAILABLE'],
  ])('%s', async (_name, serverkeygen, expected) => {
    Object.assign(answers, { serverkeygen });
    expect(await withOtp('serverkeygen', '--subject', 'CN=web')).toBe(expected);
  });
});
