/** `examples/inventory`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import type { Answer } from '../support/https.ts';
import { NODE } from '../support/server-process.ts';
import { freePort } from '../support/ports.ts';
import { exampleFile, issuedNames, startExample, type Example } from './support.ts';

let example: Example;
let service: ChildProcess | undefined;
let port: number;

const startService = async (): Promise<void> => {
  const file = (name: string): string => join(example.estuary.dir, name);
  const options = {
    port: String(port),
    cert: file('tls/server.pem'),
    key: file('tls/server.key'),
    token: file('inventory/token'),
    inventory: exampleFile('inventory', 'inventory.json'),
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  service = spawn(NODE, [exampleFile('inventory', 'inventory.js'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (service.stdout !== null) await once(service.stdout, 'data');
};

beforeAll(async () => {
  port = await freePort();
  example = await startExample('inventory', {
    edit: (text) => text.replace('localhost:8443', `localhost:${port}`).replace('timeout = 5', 'timeout = 60'),
    prepare: (dir) => {
      mkdirSync(join(dir, 'inventory'));
      writeFileSync(join(dir, 'inventory/token'), 'a secret of the two\n', { mode: 0o600 });
    },
  });
  await startService();
});
afterAll(async () => {
  service?.kill();
  await example.estuary.stop();
});

const enroll = async (clientId: string, cn = clientId): Promise<Answer> => {
  const { text } = await example.admin('/admin/otp', JSON.stringify({ client_id: clientId }));
  const password = /"token":"(\w+)"/.exec(text)?.[1] ?? 'no token';
  return example.estuary.enroll(onTheWire(simpleCsr(makeKey(), cn)), { password });
};

describe('an inventory webhook', () => {
  test('--check accepts it without a warning', async () => {
    expect(await example.check()).toBe('example.toml: the configuration is valid\n');
  });

  test('a machine of the inventory gets the names that stand there', async () => {
    const answer = await enroll('press-7');
    expect(answer.status).toBe(200);
    expect(issuedNames(answer)).toEqual(['CN=press-7', 'DNS:press-7.example.com']);
  });

  test.each([
    ['press-8', 'press-8 is retired'],
    ['press-9', 'CN=press-9 is not in the inventory'],
  ])('%s is refused with the reason', async (clientId, reason) => {
    const answer = await enroll(clientId);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain(reason);
  });

  test('a token of one machine for the name of another is not even asked about', async () => {
    expect((await enroll('press-8', 'press-7')).status).toBe(403);
  });

  test('while the inventory is down nothing is issued', async () => {
    if (service !== undefined) {
      service.kill();
      await once(service, 'exit');
    }
    expect((await enroll('press-7')).status).toBe(503);
    await startService();
    expect((await enroll('press-7')).status).toBe(200);
  });
});
