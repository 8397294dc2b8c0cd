/** Contract §5 with `server.workers`: every process publishes the same. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { openssl, opensslText } from '../support/openssl.ts';

const WORKERS = 3;
const INTERVAL = 10;
let estuary: Estuary;
const key = makeKey();

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure(config) {
      section(config, 'server')['workers'] = WORKERS;
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), { ...base, crl_interval: INTERVAL });
    },
  });
  for (let i = 0; publishers().size < WORKERS; i++) {
    if (i === 300) throw new Error('the workers did not start');
    await sleep(100);
  }
}, 120_000);
afterAll(() => estuary.stop());

/** The processes that listen for relying parties. */
const publishers = (): ReadonlySet<unknown> =>
  new Set(
    estuary.server
      .log()
      .filter(({ msg, listener }) => msg === 'listening' && listener === 'publication')
      .map(({ pid }) => pid),
  );

const file = (name: string): string => join(estuary.dir, name);

/** Over a connection of its own: the next one goes to the next worker. */
function fetchAnew(path: string, body?: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/ocsp-request' };
    const port = estuary.server.port('publication');
    const method = body === undefined ? 'GET' : 'POST';
    const call = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks));
        else reject(new Error(`${path}: ${response.statusCode}`));
      });
    });
    call.on('error', reject);
    call.end(body);
  });
}

test('a revocation is visible in OCSP on every worker at once, whatever each has answered before', async () => {
  const { cert } = await estuary.enrolled(key);
  writeFileSync(file('client.pem'), cert);
  const names = ['-issuer', file('ca/issuing.pem'), '-cert', file('client.pem'), '-no_nonce'];
  openssl(['ocsp', ...names, '-reqout', file('request.der')]);
  const body = readFileSync(file('request.der'));
  /** What so many connections are told, each answer once. */
  const statuses = async (): Promise<Set<string | undefined>> => {
    const ders = await Promise.all(Array.from({ length: 10 * WORKERS }, () => fetchAnew('/ocsp/devices', body)));
    const distinct = new Set(ders.map((der) => der.toString('base64')));
    return new Set(
      [...distinct].map((text) => {
        writeFileSync(file('response.der'), Buffer.from(text, 'base64'));
        const trust = ['-CAfile', file('ca/root.pem'), '-respin', file('response.der')];
        return /client\.pem: (\w+)/.exec(opensslText(['ocsp', ...names, ...trust]))?.[1];
      }),
    );
  };
  expect(await statuses()).toEqual(new Set(['good']));
  const serial = new X509Certificate(cert).serialNumber.toLowerCase();
  expect((await estuary.admin('POST', `/admin/certificates/${serial}/revoke`, {})).status).toBe(200);
  expect(await statuses()).toEqual(new Set(['revoked']));
});

test('RFC 5280 §5.2.3: the CRL number never falls from one answer to the next, over several lists', async () => {
  const numbers: number[] = [];
  const end = Date.now() + 2 * INTERVAL * 1000;
  while (new Set(numbers).size < 3 && Date.now() < end) {
    for (let i = 0; i < WORKERS; i++) {
      writeFileSync(file('latest.crl'), await fetchAnew('/crl/devices.crl'));
      const text = opensslText(['crl', '-inform', 'DER', '-in', file('latest.crl'), '-noout', '-crlnumber']);
      numbers.push(Number.parseInt(text.replace('crlNumber=', ''), 16));
    }
    await sleep(200);
  }
  expect(new Set(numbers).size).toBeGreaterThanOrEqual(3);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
}, 60_000);

test('contract §7: no number was given to two lists', async () => {
  const { json } = await estuary.admin('GET', '/admin/audit?type=crl.issued&limit=1000');
  const lists = itemsOf(json).filter(({ ca }) => ca === 'devices');
  const numbers = lists.map(({ detail }) => Number(/^number (\d+),/.exec(String(detail))?.[1]));
  expect(numbers.length).toBeGreaterThanOrEqual(3);
  expect(new Set(numbers).size).toBe(numbers.length);
});
