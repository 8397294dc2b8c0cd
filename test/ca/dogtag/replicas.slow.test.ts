import { afterEach, describe, expect, test } from 'vitest';
import type { DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { SubmissionUnanswered } from '../../../src/ca/driver.ts';
import { DogtagStandIn, type StandInServer } from '../../support/dogtag-stand-in/index.ts';
import { issue, issued, newRequest, openDriver, queued } from './support.ts';

const SUBMIT = 'POST /ca/rest/certrequests';

interface Setting {
  readonly standIn: DogtagStandIn;
  readonly first: StandInServer;
  readonly second: StandInServer;
  readonly ca: DogtagCa;
}

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function twoReplicas(profile = 'estuaryAuto', check_interval = 3600): Promise<Setting> {
  const standIn = await DogtagStandIn.start(2);
  const [first, second] = standIn.replicas;
  if (first === undefined || second === undefined) throw new Error('no two replicas');
  const ca = await openDriver(standIn.settings({ profile, check_interval, timeout: 10 }));
  cleanups.push(
    () => ca.close(),
    () => standIn.stop(),
  );
  return { standIn, first, second, ca };
}

describe('a submission goes to another replica only when it certainly did not arrive', () => {
  test('the first is gone: the second issues', async () => {
    const { ca, first, second, standIn } = await twoReplicas();
    await first.close();
    await issued(ca, await newRequest('gone'));
    expect(second.count(SUBMIT)).toBe(1);
    expect(standIn.state.certificates.size).toBe(1);
    await expect(ca.health()).resolves.toMatchObject({ health: 'degraded' });
  });

  test("the first's web application is undeployed: the second issues", async () => {
    const { ca, first, second } = await twoReplicas();
    await ca.prepare(await newRequest('warm'));
    first.faults.undeployed = true;
    await issued(ca, await newRequest('undeployed'));
    expect([first.count(SUBMIT), second.count(SUBMIT)]).toEqual([1, 1]);
  });

  test.each([
    ['cut after it was carried out', { cutAfterSubmission: true }, 1],
    ['cut before anything was done', { cutBeforeSubmission: true }, 0],
    ['answered with a page', { html: true }, 0],
    ['not answered in time', { delay: 15_000 }, 1],
  ])('the first connection is %s: nobody else is asked', async (_what, faults, issuedThere) => {
    const { ca, first, second, standIn } = await twoReplicas();
    const prepared = await ca.prepare(await newRequest('unanswered'));
    Object.assign(first.faults, faults);
    await expect(prepared.issue()).rejects.toThrow(SubmissionUnanswered);
    expect([first.count(SUBMIT), second.count(SUBMIT)]).toEqual([1, 0]);
    await expect.poll(() => standIn.state.certificates.size).toBe(issuedThere);
  });
});

describe('a read goes to another replica at once', () => {
  test.each([
    ['gone', (first: StandInServer) => first.close()],
    ['answering with pages', (first: StandInServer) => void (first.faults.html = true)],
    ['slow', (first: StandInServer) => void (first.faults.delay = 60_000)],
    ['without its directory', (first: StandInServer) => void (first.faults.directoryDown = true)],
  ])('a poll while the first is %s', async (_what, fail) => {
    const { ca, first, standIn } = await twoReplicas('estuaryQueue');
    const request = await newRequest('poll');
    const reference = await queued(ca, request);
    await standIn.decide('approve', reference);
    await fail(first);
    await expect(ca.remoteQueue.poll(reference, request)).resolves.toMatchObject({ status: 'issued' });
  });

  test('a revocation, after the session at the first has ended', async () => {
    const { ca, first, standIn } = await twoReplicas();
    await issued(ca, await newRequest('session'));
    first.forgetSessions();
    await ca.revoke({ serial: '0a', reason: 'superseded' });
    expect(standIn.state.certificates.get(10)?.revoked).toBe('Superseded');
  });
});

describe('when all are down', () => {
  test('503 with Retry-After, without a call; automatic recovery', async () => {
    const { ca, first, second } = await twoReplicas('estuaryAuto', 1);
    for (const replica of [first, second]) replica.faults.undeployed = true;
    await expect.poll(async () => (await ca.health()).health).toBe('down');
    const asked = first.count(SUBMIT) + second.count(SUBMIT);
    await expect(issue(ca, await newRequest('down'))).rejects.toMatchObject({ status: 503, retryAfter: 7 });
    expect(first.count(SUBMIT) + second.count(SUBMIT)).toBe(asked);
    first.faults.undeployed = false;
    await expect.poll(async () => (await ca.health()).health).toBe('degraded');
    await issued(ca, await newRequest('back'));
  });

  test('a server that is not there at the start is found when it comes', async () => {
    const standIn = await DogtagStandIn.start();
    cleanups.push(() => standIn.stop());
    standIn.server.faults.undeployed = true;
    const ca = await openDriver(standIn.settings());
    cleanups.unshift(() => ca.close());
    expect(ca.chain()).toEqual([]);
    await expect(issue(ca, await newRequest('not-yet'))).rejects.toMatchObject({ status: 503 });
    await expect(ca.health()).resolves.toMatchObject({ health: 'down' });
    standIn.server.faults.undeployed = false;
    await expect.poll(() => ca.chain().length).toBe(1);
    await issued(ca, await newRequest('found'));
  });

  test('while the directory is down nothing is submitted: it would be accepted and lost', async () => {
    const standIn = await DogtagStandIn.start();
    const ca = await openDriver(standIn.settings({ profile: 'estuaryQueue' }));
    cleanups.push(
      () => ca.close(),
      () => standIn.stop(),
    );
    standIn.server.faults.directoryDown = true;
    await expect.poll(async () => (await ca.health()).health).toBe('down');
    await expect(issue(ca, await newRequest('lost'))).rejects.toMatchObject({ status: 503 });
    expect(standIn.server.count(SUBMIT)).toBe(0);
  });
});
