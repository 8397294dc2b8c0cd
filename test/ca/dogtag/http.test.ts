import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson } from '../../../src/ca/dogtag/answers.ts';
import { HttpClient, TransportError } from '../../../src/https-client.ts';
import { readFileSync } from 'node:fs';
import { DogtagStandIn } from '../../support/dogtag-stand-in/index.ts';

const json = (text: string, type = 'application/json'): ReturnType<typeof readJson> =>
  readJson({ headers: { 'content-type': type }, body: Buffer.from(text) });

describe('answers are not assumed to be JSON', () => {
  test.each([
    ['a page', '<html></html>', 'text/html;charset=utf-8'],
    ['JSON under another type', '{}', 'text/plain'],
    ['no JSON', '{"a":', 'application/json'],
    ['a list', '[]', 'application/json'],
    ['nothing', '', 'application/json'],
  ])('%s is not JSON', (_what, text, type) => {
    expect(json(text, type)).toBeUndefined();
  });

  test('an int64 keeps its digits', () => {
    expect(json('{"Nonce":-6947835407419448805,"total":16,"half":0.5}', 'application/json;charset=utf-8')).toEqual({
      Nonce: '-6947835407419448805',
      total: 16,
      half: 0.5,
    });
  });
});

describe('a call is exact about whether it can have arrived', () => {
  let standIn: DogtagStandIn;
  let client: HttpClient;
  beforeAll(async () => {
    standIn = await DogtagStandIn.start();
    client = clientFor(standIn, standIn.server.url);
  });
  afterAll(async () => {
    client.close();
    await standIn.stop();
  });

  const post = (to: HttpClient, within = 60_000): Promise<unknown> =>
    to.call({
      method: 'POST',
      path: '/ca/rest/certrequests',
      body: Buffer.from('{}'),
      deadline: Date.now() + within,
      freshConnection: true,
    });
  const arrived = async (call: Promise<unknown>): Promise<unknown> => {
    const error: unknown = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof TransportError)) throw new Error('no TransportError');
    return error.mayHaveArrived;
  };

  test('a refused connection: it did not', async () => {
    const closed = await DogtagStandIn.start();
    const { url } = closed.server;
    await closed.stop();
    expect(await arrived(post(clientFor(standIn, url)))).toBe(false);
  });

  test('an untrusted server: it did not', async () => {
    const other = await DogtagStandIn.start();
    const stranger = new HttpClient(standIn.server.url, {
      ...tlsOf(standIn),
      ca: readFileSync(other.settings().client_certificate, 'latin1'),
    });
    expect(await arrived(post(stranger))).toBe(false);
    await other.stop();
  });

  test('a connection that is cut before the answer: it may have', async () => {
    standIn.server.faults.cutBeforeSubmission = true;
    expect(await arrived(post(client))).toBe(true);
    standIn.server.faults.cutBeforeSubmission = false;
  });

  test('silence until the deadline: it may have', async () => {
    standIn.server.faults.delay = 10_000;
    expect(await arrived(post(client, 3000))).toBe(true);
    standIn.server.faults.delay = 0;
  });

  test('an answer that never ends is cut off at the deadline', async () => {
    standIn.server.faults.endless = true;
    expect(await arrived(post(client, 3000))).toBe(true);
    standIn.server.faults.endless = false;
  });
});

function tlsOf(standIn: DogtagStandIn): { ca: string; cert: string; key: string } {
  const { trust_anchors, client_certificate, client_key } = standIn.settings();
  const read = (path: string): string => readFileSync(path, 'latin1');
  return { ca: read(trust_anchors), cert: read(client_certificate), key: read(client_key) };
}

const clientFor = (standIn: DogtagStandIn, url: string): HttpClient => new HttpClient(url, tlsOf(standIn));
