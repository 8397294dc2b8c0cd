/**
 * What every remote driver keeps, whatever its upstream does: one certificate for one submission, none without a record,
 * and no name that was not authorized.
 */
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { prepareAt } from '../../../../src/ca/driver.ts';
import { Ca } from '../../../../src/ca/router.ts';
import type { CaConfig } from '../../../../src/config/schema.ts';
import { parseCertificate } from '../../../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../../../src/pki/x509/name.ts';
import { deviceRow } from '../../../store/rows.ts';
import { requestFor } from '../../dogtag/support.ts';
import type { Fault } from '../../../support/upstream-steps.ts';
import { WRONG, type StandIn } from './stand-in.ts';
import { Node, World, type Answered, type Device, type RemoteLabel } from './world.ts';

const HOUR = 3_600_000;

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

interface Driver {
  /** Finds out what became of a submission without a response. */
  readonly recovers: boolean;
  /** Certificates that it revokes. */
  readonly revokes: readonly string[];
  /** Whether a request may wait. */
  readonly queues?: false;
  /** Whether a probe shows that the upstream is down. */
  readonly probes?: false;
  /** The call after which the upstream may issue. */
  readonly submission: string;
}

const ALL = ['own', 'foreign', 'another key'];
const PROGRAMS = { revokes: ALL, submission: 'issue', probes: false } as const;
const DRIVERS: readonly [RemoteLabel, Driver][] = [
  ['est', { recovers: false, revokes: [], submission: 'POST simpleenroll' }],
  ['acme', { recovers: true, revokes: ALL, submission: 'POST /finalize' }],
  ['command', { ...PROGRAMS, recovers: true }],
  ['command-without-poll', { ...PROGRAMS, recovers: false, queues: false }],
  ['dogtag', { recovers: true, revokes: ['own', 'another key'], submission: 'POST /ca/rest/certrequests' }],
];

/** Calls of the store after which something is on the disk. */
const WRITES = /^(submit|await|record|withdraw|claim|takePoll|end|reserve|release|note|audit)/;

describe.each(DRIVERS)('%s', (label, { recovers, revokes, submission, queues = true, probes = true }) => {
  let upstream: StandIn;
  let node: Node;
  beforeEach(async () => {
    upstream = world.upstreams[label];
    world.clock = Date.now();
    node = await Node.start(world, label);
  });
  afterEach(async () => {
    upstream.mode = 'issue';
    upstream.wrong = undefined;
    upstream.steps.at = () => undefined;
    upstream.steps.isDown = false;
    await node.close();
  });

  async function restart(): Promise<void> {
    await node.close();
    upstream.steps.at = () => undefined;
    node = await Node.start(world, label);
  }

  async function answered(device: Device, { from = node, ...sending }: Sending = {}): Promise<Answered> {
    const answer = await from.send(device, sending);
    if (answer === 'killed') throw new Error('killed');
    return answer;
  }

  /** The device repeats its request until something is found in an answer. */
  async function until<T>(isIt: (answer: Answered) => T | undefined, device: Device, sending?: Sending): Promise<T> {
    const answers: string[] = [];
    for (let attempt = 0; attempt < 10; attempt++) {
      const answer = await answered(device, sending);
      const found = isIt(answer);
      if (found !== undefined) return found;
      answers.push(`${answer.status} ${answer.text}`);
      world.clock += 1500;
    }
    throw new Error(answers.join(', '));
  }
  const certified = (device: Device, sending?: Sending): Promise<Buffer> =>
    until(({ certificate }) => certificate, device, sending);

  const issuedTo = ({ key, name }: Device) =>
    upstream.certified().filter(({ der }) => {
      const { spki, subjectAltNames } = parseCertificate(der);
      return spki.equals(key.spki) || subjectAltNames.some((san) => san.kind === 'dns' && san.value === name);
    });

  /** Certificates that only the upstream has; each is in the audit log. */
  async function expectRecords(device: Device, what = ''): Promise<number> {
    const recorded = await Promise.all(issuedTo(device).map(({ der }) => world.isRecorded(der)));
    const lost = recorded.filter((isRecorded) => !isRecorded).length;
    const failures = (await world.recordsOf(device)).filter(
      ({ type, detail }) =>
        type === 'certificate.failed' && /possibly issued|may have issued|process ended|waits at the CA/.test(detail),
    );
    expect(lost, what).toBeLessThanOrEqual(failures.length);
    return lost;
  }

  /** If the upstream can be asked, there is one certificate, and the device has it. */
  async function expectKept(device: Device, what = ''): Promise<void> {
    const lost = await expectRecords(device, what);
    if (recovers) expect([issuedTo(device).length, lost], what).toEqual([1, 0]);
  }

  test('issues, and the certificate carries exactly the names of the CSR', async () => {
    const device = await world.device();
    const certificate = parseCertificate(await certified(device));
    expect(certificate.subjectAltNames).toEqual([{ kind: 'dns', value: device.name }]);
    expect(issuedTo(device)).toHaveLength(1);
    await expectKept(device);
  });

  test('a lost request, a lost response and garbage at every step', async () => {
    const before = upstream.steps.seen.length;
    await certified(await world.device());
    const count = upstream.steps.seen.length - before;
    const faults = [['before', 'cut'] as const, ['after', 'cut'] as const, ['after', 'garbage'] as const];
    for (const [when, fault] of faults)
      for (let step = 0; step < count; step++) {
        await restart();
        const first = upstream.steps.seen.length;
        upstream.steps.at = (_name, at, index) => (at === when && index === first + step ? fault : undefined);
        const device = await world.device();
        const answer = await answered(device);
        expect([200, 202, 500, 503], answer.text).toContain(answer.status);
        await certified(device);
        await expectKept(device, `${fault} ${when} ${upstream.steps.seen[first + step] ?? ''}`);
      }
  });

  test('kill -9 at every step of the upstream and after every write of the store', async () => {
    const before = upstream.steps.seen.length;
    await certified(await world.device());
    const places = [
      ...upstream.steps.seen.slice(before).map((_, step) => ['upstream', step] as const),
      ...node.calls.flatMap((name, step) => (WRITES.test(name) ? [['store', step] as const] : [])),
    ];
    for (const [place, step] of places) {
      await restart();
      const first = upstream.steps.seen.length;
      if (place === 'store')
        node.afterCall = (index) => {
          if (index === step) node.kill();
        };
      else
        upstream.steps.at = (_name, at, index) => {
          if (at !== 'after' || index !== first + step) return undefined;
          node.kill();
          return 'cut';
        };
      const device = await world.device();
      expect(await node.send(device)).toBe('killed');
      await restart();
      await certified(device);
      await expectKept(device, `${place} ${step}`);
    }
  });

  test('a timeout, a slow answer, garbage and 10 MB after the upstream has issued; meanwhile another label issues', async () => {
    const faults: Fault[] = ['hang', 'trickle', 'garbage', 'flood'];
    const devices = await Promise.all(faults.map(() => world.device()));
    const elsewhere = await Node.start(world, 'devices', false);
    upstream.steps.at = (name, when) => (when === 'after' && name === submission ? faults.shift() : undefined);
    let isAnswered = false;
    const answers = Promise.all(devices.map((device) => answered(device))).finally(() => (isAnswered = true));
    expect((await answered(await world.device(), { from: elsewhere })).status).toBe(200);
    expect(isAnswered).toBe(false);
    for (const { status, text } of await answers)
      expect(recovers ? [200, 202, 500, 503] : [500, 503], text).toContain(status);
    await restart();
    for (const device of devices) {
      await certified(device);
      await expectKept(device);
    }
  });

  test.each(Object.entries(WRONG))('%s is not delivered: 500, recorded, and revoked if it can be', async (_, wrong) => {
    const [make, whose] = wrong;
    upstream.wrong = make;
    const device = await world.device();
    const before = upstream.certified().length;
    const { status, text } = await answered(device);
    expect([status, text]).toEqual([500, 'The CA issued a certificate that differs from the request.']);
    const [issued, ...more] = upstream.certified().slice(before);
    expect([issued?.isRevoked, more.length]).toEqual([revokes.includes(whose), 0]);
    const failure = (await world.recordsOf(device)).find(({ type }) => type === 'certificate.failed');
    expect(failure?.detail).toContain(parseCertificate(issued?.der ?? Buffer.alloc(0)).serialNumber);
    expect(await world.isRecorded(issued?.der ?? Buffer.alloc(0))).toBe(false);
  });

  test('a refusal is 403 with the upstream’s text on one line, and issues nothing', async () => {
    upstream.mode = 'refuse';
    const device = await world.device();
    const { status, text } = await answered(device);
    expect([status, text, issuedTo(device)]).toEqual([403, 'not on this list', []]);
  });

  const pendingForDays = async (): Promise<void> => {
    upstream.mode = 'queue';
    const [approved, rejected] = [await world.device(), await world.device()];
    for (let waited = 0; waited < 120 * HOUR; waited += 24 * HOUR) {
      for (const device of [approved, rejected]) expect((await answered(device)).status).toBe(202);
      world.clock += 24 * HOUR;
      // The server is updated meanwhile.
      if (waited === 48 * HOUR) await restart();
    }
    upstream.mode = 'issue';
    await upstream.decide('approve', approved.name);
    await certified(approved);
    expect(issuedTo(approved)).toHaveLength(1);
    await expectKept(approved);
    await upstream.decide('reject', rejected.name);
    // A slow upstream is asked again.
    const rejection = await until(({ status }) => (status === 202 ? undefined : status), rejected);
    expect([rejection, issuedTo(rejected)]).toEqual([403, []]);
  };
  if (queues) test('pending for days: 202 until it is decided, one certificate, or 403', pendingForDays);

  test('two nodes at once submit once, and record once', async () => {
    const other = await Node.start(world, label, false);
    const nodes = [node, other, node, other];
    try {
      const device = await world.device();
      for (const { status } of await Promise.all(nodes.map((from) => answered(device, { from }))))
        expect([200, 202]).toContain(status);
      await certified(device);
      expect([issuedTo(device).length, await expectRecords(device)]).toEqual([1, 0]);
      if (!queues) return;
      upstream.mode = 'queue';
      const waiting = await world.device();
      expect((await answered(waiting)).status).toBe(202);
      upstream.mode = 'issue';
      await upstream.decide('approve', waiting.name);
      world.clock += 1500;
      await Promise.all(nodes.map((from) => answered(waiting, { from })));
      await certified(waiting);
      expect([issuedTo(waiting).length, await expectRecords(waiting)]).toEqual([1, 0]);
    } finally {
      await other.close();
    }
  });

  test('serverkeygen: a lost response leaves a record, and no certificate is delivered without its key', async () => {
    const device = await world.device();
    expect((await answered(device, { operation: 'serverkeygen' })).status).toBe(200);
    const unlucky = await world.device();
    upstream.steps.at = (name, when) => (when === 'after' && name === submission ? 'cut' : undefined);
    expect([200, 500, 503]).toContain((await answered(unlucky, { operation: 'serverkeygen' })).status);
    expect(issuedTo(unlucky)).toHaveLength(1);
    await expectRecords(unlucky);
    upstream.steps.at = () => undefined;
    upstream.mode = 'queue';
    const queued = await world.device();
    expect((await answered(queued, { operation: 'serverkeygen' })).status).toBe(500);
    await upstream.decide('approve', queued.name);
    await expectRecords(queued);
  });

  const submissions = (): number => upstream.steps.seen.filter((name) => name === submission).length;
  const changed = (more: Partial<Pick<CaConfig, 'approval' | 'devices'>>): Ca =>
    new Ca({ ...node.ca.config, ...more }, node.ca.driver);

  test('approval = "manual": an administrator approves, and then it is submitted once', async () => {
    const ca = changed({ approval: 'manual' });
    const device = await world.device();
    const before = submissions();
    expect((await answered(device, { ca })).status).toBe(202);
    expect(submissions()).toBe(before);
    const [id = ''] = device.requestIds;
    const decision = { id, status: 'approved', reason: null, decided_at: world.clock } as const;
    expect(await world.store.decideRequest(decision, [])).toBe('decided');
    await certified(device, { ca });
    expect([submissions(), issuedTo(device).length]).toEqual([before + 1, 1]);
  });

  test('devices = "required": only a registered device reaches the upstream', async () => {
    const ca = changed({ devices: 'required' });
    const device = await world.device();
    const before = submissions();
    expect((await answered(device, { ca })).status).toBe(403);
    expect(submissions()).toBe(before);
    await world.store.putDevices([{ row: deviceRow({ id: device.name }), events: [] }], 'create');
    await certified(device, { ca });
  });

  test('a CRMF request, or another subject than the CSR has, is refused before anything is sent', async () => {
    const before = submissions();
    const { csr } = await world.device();
    const request = await requestFor(csr);
    const other = parseDistinguishedName('CN=other');
    await expect(prepareAt(node.ca.driver, { ...request, subject: other })).rejects.toMatchObject({ status: 403 });
    const withoutCsr = prepareAt(node.ca.driver, { ...request, csr: undefined });
    await expect(withoutCsr).rejects.toMatchObject({ status: label === 'dogtag' ? 403 : 400 });
    expect(submissions()).toBe(before);
  });

  test('down for an hour under load: 503 at once with Retry-After, few calls, and recovery without an operator', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const elsewhere = await Node.start(world, 'devices', false);
    const minutes = async (count: number): Promise<void> => {
      world.clock += count * 60_000;
      await vi.advanceTimersByTimeAsync(count * 60_000);
      // The probe is a connection, which takes real time.
      for (let turn = 0; turn < 30; turn++) await setImmediate();
      // A program that is there passes each probe, however long a busy machine takes for it.
      const isDown = async () => (await node.ca.driver.health?.())?.health === 'down';
      while (!probes && (await isDown())) await setImmediate();
    };
    try {
      upstream.steps.isDown = true;
      for (let attempt = 0; attempt < 3; attempt++) await answered(await world.device());
      const before = upstream.steps.seen.length;
      for (let minute = 0; minute < 60; minute += 4) {
        // Without a probe, one request in a while finds out.
        if (!probes) await answered(await world.device());
        const { status, retryAfter } = await answered(await world.device());
        expect([minute, status, retryAfter]).toEqual([minute, 503, expect.any(Number)]);
        expect((await answered(await world.device(), { from: elsewhere })).status).toBe(200);
        await minutes(4);
      }
      expect(upstream.steps.seen.length - before).toBeLessThan(200);
      upstream.steps.isDown = false;
      const statuses = new Set<number>();
      // In small steps: a probe may take less than a second of the virtual time. On a busy machine, it takes some of the real time.
      for (const end = performance.now() + 60_000; performance.now() < end && !statuses.has(200);) {
        world.clock += 900;
        await vi.advanceTimersByTimeAsync(900);
        for (const next = performance.now() + 100; performance.now() < next;) await setImmediate();
        if ((await node.ca.driver.health?.())?.health === 'ok')
          statuses.add((await answered(await world.device())).status);
      }
      expect(statuses).toContain(200);
    } finally {
      vi.useRealTimers();
    }
  });
});

interface Sending {
  readonly from?: Node;
  readonly operation?: 'serverkeygen';
  readonly ca?: Ca;
}
