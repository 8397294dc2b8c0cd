/** Limits on the cost of certificates that a client presents. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, type ClientIdentity } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';

const REQUESTS = 300;
const UNKNOWN = 'certificate signed by unknown authority';
const request = 'POST /.well-known/est/simplereenroll HTTP/1.1\r\nHost: a\r\nContent-Type: application/pkcs10\r\n';
const wire = onTheWire(simpleCsr(makeKey()));

const pem = (issuer: Issuer): string => encodePem('CERTIFICATE', issuer.der);
const identity = (leaf: Issuer, ...chain: readonly Issuer[]): ClientIdentity => ({
  cert: [leaf, ...chain].map(pem).join(''),
  key: pkcs8Pem(leaf.keys),
});
const rdns = (count: number): string => Array.from({ length: count }, (_, n) => `CN=${'x'.repeat(20)}${n}`).join(',');

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start();
});
afterAll(() => estuary.stop());

/** Sends all requests at once on one connection; the bodies of the answers. */
async function flood(client: ClientIdentity): Promise<string> {
  const socket = await openTls(estuary.server.port('est'), { ca: estuary.root, ...client });
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setTimeout(60_000, () => socket.destroy(new Error('no answer within 60 s')));
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    // The server closes the connection after the last answer.
    socket.on('end', () => resolve(text));
    const one = `${request}Content-Length: 0\r\n`;
    socket.write(`${`${one}\r\n`.repeat(REQUESTS - 1)}${one}Connection: close\r\n\r\n`);
  });
}

const impostors = async (): Promise<ClientIdentity> => {
  // Eight that could be the issuer by their names, each with another key, each the issuer of the others as well.
  const ring = await Promise.all(
    Array.from({ length: 8 }, (_, n) => makeCa('CN=Ring', { slot: `ring ${n}`, kind: 'ec:P-521' })),
  );
  const [issuer] = ring;
  if (issuer === undefined) throw new Error('no ring');
  return identity(
    await makeClient(rdns(64), { ...issuer, keys: (await makeCa('CN=Ring')).keys, kind: 'ec:P-256' }),
    ...ring,
  );
};

describe(`${REQUESTS} requests on one connection with an untrusted certificate, and another client`, () => {
  test.each<[string, () => Promise<ClientIdentity>, string]>([
    [
      '500 RDNs',
      async () => identity(await makeClient(rdns(500), await makeCa('CN=Stranger'))),
      'client certificate too large',
    ],
    [
      '500 RDNs in the issuer',
      async () => identity(await makeClient('CN=a', await makeCa(rdns(500)))),
      'client certificate too large',
    ],
    ['64 attributes and eight intermediates that did not sign it', impostors, UNKNOWN],
  ])('%s', async (_, client, text) => {
    const { token } = await estuary.otp();
    const presented = await client();
    const logged = (await estuary.outputSoFar()).length;
    const recorded = auditLines().length;
    const [answers, enrolled] = await Promise.all([flood(presented), estuary.enroll(wire, { password: token })]);
    expect(enrolled.status).toBe(200);
    expect(answers.split(text)).toHaveLength(REQUESTS + 1);

    const output = (await estuary.outputSoFar()).slice(logged);
    expect(output.length / REQUESTS, 'characters of log for each request').toBeLessThan(1000);
    const records = auditLines().slice(recorded);
    const failures = records.filter((line) => line.includes('"auth.mtls"'));
    // A window ends with a record of the count. On a busy machine, one can end during the test.
    const windows = 1 + failures.filter(isCount).length;
    expect(failures.filter((line) => !isCount(line)).length, 'failures with a record of their own').toBeLessThanOrEqual(
      5 * windows,
    );
    for (const line of failures) expect(line.length).toBeLessThan(2000);
  });

  test('with such a certificate the password still counts', async () => {
    const { token } = await estuary.otp();
    const client = identity(await makeClient(rdns(500), await makeCa('CN=Stranger')));
    expect((await estuary.enroll(wire, { client, password: token })).status).toBe(200);
  });

  test('a stop leaves the count in the audit log', async () => {
    await estuary.server.stop();
    const counts = auditLines().flatMap((line) => COUNT.exec(line)?.[1] ?? []);
    const counted = counts.reduce((sum, count) => sum + Number(count), 0);
    expect(
      auditLines().filter((line) => line.includes('"auth.mtls"') && line.includes('"failure"')).length -
        counts.length +
        counted,
    ).toBe(3 * REQUESTS + 1);
  });
});

const COUNT = /(\d+) more failures from this address/;
const isCount = (line: string): boolean => COUNT.test(line);
const auditLines = (): string[] => readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8').trim().split('\n');
