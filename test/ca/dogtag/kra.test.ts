/** Keys in the key recovery authority; the stand-in has its quirks, test/dogtag/kra.test.ts uses the real one. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { DogtagStandIn } from '../../support/dogtag-stand-in/index.ts';
import { keyPair } from '../../support/keys.ts';
import { openDriver } from './support.ts';

const KEY = keyPair('ec:P-256').privateKey.export({ format: 'der', type: 'pkcs8' });

let standIn: DogtagStandIn;
let ca: DogtagCa;

beforeEach(async () => {
  standIn = await DogtagStandIn.start(2);
  ca = await openDriver(standIn.settings({ kra_urls: standIn.replicas.map(({ url }) => url), timeout: 10 }));
});
afterEach(async () => {
  await ca.close();
  await standIn.stop();
});

async function archive(requestId = 'request-1'): Promise<string | undefined> {
  const sealed = await ca.keyArchive?.seal(KEY);
  return sealed && ca.keyArchive?.archive(sealed, requestId);
}

const archived = () => [...standIn.state.kra.keys];

describe('archiving a key', () => {
  test('stores its octets under a name that has the request id, and returns the archive’s id', async () => {
    expect(await archive()).toBe('1');
    const [[id, key] = []] = archived();
    expect([id, key?.data]).toEqual([1, KEY]);
    expect(key?.clientKeyID).toMatch(/^estuary-request-1-[0-9a-f]{8}$/);
  });

  test('twice for one request, after a signature that failed, is two archived keys', async () => {
    expect([await archive(), await archive()]).toEqual(['1', '2']);
  });

  test('sends the key only encrypted', async () => {
    await archive();
    expect(standIn.server.bodies.join('')).not.toContain(KEY.toString('base64').slice(0, 40));
  });

  test('"complete" without a key is a failure', async () => {
    standIn.state.kra.faults.storesNothing = true;
    await expect(archive()).rejects.toMatchObject({ status: 500, code: 'KEY_NOT_ARCHIVED' });
  });

  test('is not believed before the archive shows the key', async () => {
    standIn.state.kra.faults.showsAnother = true;
    await expect(archive()).rejects.toMatchObject({ status: 503, code: 'KEY_ARCHIVE_UNAVAILABLE' });
  });

  test('whose answer was lost is found at the next replica, and stored once', async () => {
    standIn.server.faults.cutAfterSubmission = true;
    expect(await archive()).toBe('1');
    expect(archived()).toHaveLength(1);
  });

  test('goes to the next replica when one answers HTML', async () => {
    standIn.server.faults.html = true;
    expect(await archive()).toBe('1');
  });

  test.each([
    ['answers HTML', { html: true }],
    ['is not deployed', { undeployed: true }],
    ['has lost its directory', { directoryDown: true }],
    ['does not answer in time', { delay: 30_000 }],
  ])('is 503 with Retry-After when every replica %s', async (_, faults) => {
    const sealed = await ca.keyArchive?.seal(KEY);
    for (const replica of standIn.replicas) Object.assign(replica.faults, faults);
    await expect(sealed && ca.keyArchive?.archive(sealed, 'request-1')).rejects.toMatchObject({
      status: 503,
      code: 'KEY_ARCHIVE_UNAVAILABLE',
      retryAfter: 7,
    });
    expect(archived()).toEqual([]);
  });

  test('fails once after the transport key was replaced, and then uses the new one', async () => {
    expect(await archive()).toBe('1');
    standIn.state.kra.renewTransportKey();
    await expect(archive()).rejects.toMatchObject({ status: 503 });
    await expect.poll(() => archive().catch(() => 'not yet')).toBe('2');
  });
});

describe('health', () => {
  test('a CA whose key archive is away is degraded', async () => {
    await expect(ca.health()).resolves.toEqual({ health: 'ok' });
    await ca.close();
    ca = await openDriver(standIn.settings({ kra_urls: ['https://localhost:1'] }));
    await expect(ca.health()).resolves.toMatchObject({ health: 'degraded' });
  });
});

describe('[ca.profile] key_escrow', () => {
  test.each([
    ['without kra_urls', [], {}, false],
    ['false with kra_urls', ['here'], { key_escrow: false }, false],
    ['unset with kra_urls', ['here'], {}, true],
    ['true with kra_urls', ['here'], { key_escrow: true }, true],
  ])('%s', async (_, urls, profile, expected) => {
    const other = await openDriver(standIn.settings({ kra_urls: urls.map(() => standIn.server.url) }), { profile });
    expect(other.keyArchive !== undefined).toBe(expected);
    await other.close();
  });
});
