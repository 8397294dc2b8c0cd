/** When a reload opens and closes the backends of CAs. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { CaDriver } from '../../src/ca/driver.ts';
import { loadConfig, type LoadedService } from '../../src/config/load.ts';
import { ExternalAuthorization } from '../../src/enrollment/authorization/external-authorization.ts';
import { createLogger } from '../../src/log.ts';
import { LiveCas, type LiveCasOptions } from '../../src/main/live-cas.ts';
import { FairLimiter } from '../../src/process/fair-limiter.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { removeFolder } from '../support/folders.ts';

const log = createLogger('silent');
let dir: string;
let loaded: LoadedService;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'estuary-live-cas-'));
  await makeQuickstart(dir);
  loaded = await loadConfig(join(dir, 'est.toml'), {});
});
afterAll(() => removeFolder(dir));

function liveCas(more: Pick<LiveCasOptions, 'endOfWork' | 'maxWait'> & Partial<LiveCasOptions>): LiveCas {
  const cas = new LiveCas(loaded.config, loaded.material, {
    authorization: new ExternalAuthorization({ log, observe: () => undefined, retryAfter: 1 }),
    context: {
      now: Date.now,
      env: {},
      log,
      makeMutex: (_name, queueLimit) => new FairLimiter({ concurrency: 1, queue: queueLimit }),
      store: {
        getCertificates: () => Promise.resolve([]),
        hasOtherLabels: () => Promise.resolve(false),
        recallIntermediates: () => Promise.resolve([]),
        rememberIntermediates: () => Promise.resolve(),
        getAcmeAccount: () => Promise.resolve(undefined),
        putAcmeAccount: () => Promise.resolve(),
      },
    },
    log,
    onChange: () => undefined,
    ...more,
  });
  onTestFinished(() => cas.stop());
  return cas;
}

const closes = ({ router }: Pick<LiveCas, 'router'>) =>
  router.issuers.map(({ driver }: { readonly driver: CaDriver }) => vi.spyOn(driver, 'close'));

describe('what a reload replaces', () => {
  test('is closed once the work that began before has ended', async () => {
    const work = Promise.withResolvers<undefined>();
    const changed = vi.fn();
    const cas = liveCas({ endOfWork: () => work.promise, onChange: changed });
    await cas.start();
    const former = closes(cas);
    const next = await cas.prepare(loaded.config, loaded.material);
    expect(cas.router.find('devices')).not.toBe(next.router.find('devices'));
    next.apply();
    expect(changed).toHaveBeenCalledOnce();
    expect(cas.router.find('devices')).toBe(next.router.find('devices'));
    expect(former.map((close) => close.mock.calls.length)).toEqual([0, 0]);
    work.resolve(undefined);
    await expect.poll(() => former.map((close) => close.mock.calls.length)).toEqual([1, 1]);
  });

  test('is closed although somebody never ends, after a while', async () => {
    const cas = liveCas({ endOfWork: () => new Promise(() => undefined), maxWait: 10 });
    const former = closes(cas);
    (await cas.prepare(loaded.config, loaded.material)).apply();
    // The wait itself keeps no process alive.
    await expect.poll(() => former.map((close) => close.mock.calls.length)).toEqual([1, 1]);
  });

  test('is closed once when the service stops meanwhile', async () => {
    const cas = liveCas({ endOfWork: () => new Promise(() => undefined) });
    const former = closes(cas);
    (await cas.prepare(loaded.config, loaded.material)).apply();
    await cas.stop();
    expect(former.map((close) => close.mock.calls.length)).toEqual([1, 1]);
  });

  test('nothing of what is dropped stays open, and nothing in force is closed', async () => {
    const cas = liveCas({ endOfWork: () => Promise.resolve() });
    const kept = closes(cas);
    const next = await cas.prepare(loaded.config, loaded.material);
    const dropped = closes(next);
    await next.drop();
    expect(dropped.map((close) => close.mock.calls.length)).toEqual([1, 1]);
    expect(kept.map((close) => close.mock.calls.length)).toEqual([0, 0]);
  });

  test('one that cannot start leaves nothing behind', async () => {
    const cas = liveCas({ endOfWork: () => Promise.resolve() });
    const material = { ...loaded.material, cas: [...loaded.material.cas, ...loaded.material.cas] };
    const before = cas.router.all;
    await expect(cas.prepare(loaded.config, material)).rejects.toMatchObject({ code: 'CA_UNUSABLE' });
    expect(cas.router.all).toBe(before);
  });
});
