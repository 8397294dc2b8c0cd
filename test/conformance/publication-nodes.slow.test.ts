/** Nodes on one PostgreSQL publish the same CRLs and OCSP responses. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../support/csr.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { openssl, opensslText } from '../support/openssl.ts';
import { type PostgresCluster, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { pause } from '../support/until.ts';

/** Seconds. */
const INTERVAL = 10;

describe.skipIf(!requires('postgres'))('nodes on one PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  const nodes: Estuary[] = [];
  const file = (name: string): string => join(nodes[0]?.dir ?? '', name);

  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    const key = randomBytes(32);
    const configure = (config: TomlTable): void => {
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), { ...base, crl_interval: INTERVAL });
    };
    const listeners = ['est', 'admin', 'publication'] as const;
    for (const name of ['node-1', 'node-2', 'node-3']) {
      const pki = nodes[0] === undefined ? {} : { pki: nodes[0].dir };
      nodes.push(await Estuary.start(withStoreIn({ listeners, configure, ...pki }, url, name, key)));
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    await cluster.dropDatabase(url);
  });

  test('a revocation on one node is visible in the OCSP responses of all nodes at once', async () => {
    const [first] = nodes;
    if (first === undefined) throw new Error('no nodes');
    const { cert } = await first.enrolled(makeKey());
    writeFileSync(file('client.pem'), cert);
    const names = ['-issuer', file('ca/issuing.pem'), '-cert', file('client.pem'), '-no_nonce'];
    openssl(['ocsp', ...names, '-reqout', file('request.der')]);
    const body = readFileSync(file('request.der'));
    const statuses = (): Promise<(string | undefined)[]> =>
      Promise.all(
        nodes.map(async (node) => {
          writeFileSync(file('response.der'), await fetchOf(node, '/ocsp/devices', body));
          const trust = ['-CAfile', file('ca/root.pem'), '-respin', file('response.der')];
          return /client\.pem: (\w+)/.exec(opensslText(['ocsp', ...names, ...trust]))?.[1];
        }),
      );
    expect(await statuses()).toEqual(['good', 'good', 'good']);
    const serial = new X509Certificate(cert).serialNumber.toLowerCase();
    expect((await first.admin('POST', `/admin/certificates/${serial}/revoke`, {})).status).toBe(200);
    expect(await statuses()).toEqual(['revoked', 'revoked', 'revoked']);
  });

  test('RFC 5280 section 5.2.3: the CRL number does not decrease from one response to the next, over several lists', async () => {
    const numbers: number[] = [];
    while (new Set(numbers).size < 3) {
      for (const node of nodes) {
        writeFileSync(file('latest.crl'), await fetchOf(node, '/crl/devices.crl'));
        const text = opensslText(['crl', '-inform', 'DER', '-in', file('latest.crl'), '-noout', '-crlnumber']);
        numbers.push(Number.parseInt(text.replace('crlNumber=', ''), 16));
      }
      await pause(100);
    }
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  });

  test('no two lists have the same number', async () => {
    const json = (await nodes[0]?.admin('GET', '/admin/audit?type=crl.issued&limit=1000'))?.json ?? {};
    const lists = itemsOf(json).filter(({ ca }) => ca === 'devices');
    const numbers = lists.map(({ detail }) => Number(/^number (\d+),/.exec(String(detail))?.[1]));
    expect(numbers.length).toBeGreaterThanOrEqual(3);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

function fetchOf(node: Estuary, path: string, body?: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/ocsp-request' };
    const port = node.server.port('publication');
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
