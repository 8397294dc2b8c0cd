/** Delivery in virtual time. */
import { expect, onTestFinished, test, vi } from 'vitest';
import type { NotificationConfig } from '../../src/config/schema.ts';
import { createLogger } from '../../src/log.ts';
import type { CloudEvent } from '../../src/notification/event.ts';
import { Notifier, type NotifierOptions } from '../../src/notification/notifier.ts';
import type { Store } from '../../src/store/store.ts';
import { auditTypes } from '../store/contract/support.ts';
import { event } from '../store/rows.ts';
import { opened, temporaryPaths } from '../store/support.ts';

const DAY = 86_400_000;
const HOOK = { kind: 'webhook', url: 'https://hook.example/', signature_header: 'X', timeout: 1 } as const;
const MAIL = {
  kind: 'smtp' as const,
  host: 'mail.example',
  security: 'tls' as const,
  from: 'a@example.com',
  to: ['b@example.com'],
  digest_interval: 86_400,
} satisfies Partial<NotificationConfig>;
const common = { name: 'one', days: [30, 7, 1], retry_for: 259_200 };

interface World {
  readonly store: Store;
  readonly clock: { now: number };
  /** What the receiver got. */
  readonly got: CloudEvent[][];
  readonly receiver: { isUp: boolean };
  readonly make: (more?: Partial<NotifierOptions>) => Notifier;
}

async function world(config: NotificationConfig): Promise<World> {
  const clock = { now: Date.now() };
  const store = await opened(temporaryPaths(), () => clock.now);
  await store.beginNotification(config.name, await store.auditChains());
  const got: CloudEvent[][] = [];
  const receiver = { isUp: true };
  const options: NotifierOptions = {
    config,
    receiver: {
      send: (events) => {
        if (!receiver.isUp) return Promise.reject(new Error('the receiver is down'));
        got.push([...events]);
        return Promise.resolve();
      },
      close: () => undefined,
    },
    store,
    node: 'node-1',
    log: createLogger('silent'),
    isOnDuty: () => true,
    observe: () => undefined,
    now: () => clock.now,
  };
  return { store, clock, got, receiver, make: (more) => new Notifier({ ...options, ...more }) };
}

const revoked = (serial: string) => event('certificate.revoked', { ca: 'devices', serial });
const subjects = ({ got }: World): (string | undefined)[] => got.flat().map(({ subject }) => subject);

test('a receiver that is down for two days gets every event in order, once, from another process', async () => {
  const here = await world({ ...HOOK, ...common });
  const { store, clock, receiver, make } = here;
  receiver.isUp = false;
  for (let hour = 0; hour < 48; hour++) {
    await store.audit([revoked(`0${hour}`)]);
    expect(await make().deliver()).toBeGreaterThan(0);
    clock.now += DAY / 24;
  }
  receiver.isUp = true;
  await make().deliver();
  await make().deliver();
  expect(subjects(here)).toEqual(Array.from({ length: 48 }, (_, hour) => `0${hour}`));
});

test('after retry_for an event is given up with an audit record, and the next ones are delivered', async () => {
  const here = await world({ ...HOOK, ...common });
  const { store, clock, receiver, make } = here;
  receiver.isUp = false;
  await store.audit([revoked('01')]);
  clock.now += 2 * DAY;
  await store.audit([revoked('02')]);
  clock.now += 2 * DAY;
  await make().deliver();
  expect(await auditTypes(store)).toContain('notification.failed');
  receiver.isUp = true;
  clock.now += 1 * DAY;
  await make().deliver();
  expect(subjects(here)).toEqual(['02']);
});

test('attempts come less often the longer a receiver is down, and at once after it is back', async () => {
  const { store, receiver, make } = await world({ ...HOOK, ...common });
  receiver.isUp = false;
  await store.audit([revoked('01')]);
  const notifier = make();
  const delays: number[] = [];
  for (let n = 0; n < 20; n++) delays.push(await notifier.deliver());
  expect(delays[0]).toBeLessThanOrEqual(1000);
  expect(delays.at(-1)).toBeGreaterThanOrEqual(150_000);
  expect(Math.max(...delays)).toBeLessThanOrEqual(300_000);
  receiver.isUp = true;
  expect(await notifier.deliver()).toBe(1000);
});

test('a receiver that fails now and then is not one that is down: the wait does not grow while events get through', async () => {
  const here = await world({ ...HOOK, ...common });
  const failed = new Set<string>();
  const notifier = here.make({
    receiver: {
      send: ([first]) => {
        const id = first?.id ?? '';
        if (!failed.has(id)) {
          failed.add(id);
          return Promise.reject(new Error('502'));
        }
        here.got.push(first === undefined ? [] : [first]);
        return Promise.resolve();
      },
      close: () => undefined,
    },
  });
  for (let n = 1; n <= 9; n++) await here.store.audit([revoked(`0${n}`)]);
  const delays: number[] = [];
  while (here.got.length < 9) delays.push(await notifier.deliver());
  expect(delays.length).toBe(10);
  expect(Math.max(...delays)).toBeLessThanOrEqual(1000);
});

test('a backlog of several reads is delivered in one round, up to a stop', async () => {
  const here = await world({ ...HOOK, ...common });
  const all = Array.from({ length: 250 }, (_, n) => String(1000 + n));
  await here.store.audit(all.map(revoked));
  const stopped = here.make({
    receiver: {
      send: (events) => {
        here.got.push([...events]);
        void stopped.stop();
        return Promise.resolve();
      },
      close: () => undefined,
    },
  });
  await stopped.deliver();
  expect(subjects(here)).toEqual(all.slice(0, 100));
  await here.make().deliver();
  expect(subjects(here)).toEqual(all);
});

test('a new receiver gets what happens from its start on, and an old one what happened since', async () => {
  const here = await world({ ...HOOK, ...common });
  const started = async (serial: string) => {
    const notifier = here.make({ config: { ...HOOK, ...common, name: 'two' } });
    await notifier.start();
    await here.store.audit([revoked(serial)]);
    await vi.waitFor(() => expect(subjects(here).at(-1)).toBe(serial), 10_000);
    await notifier.stop();
  };
  await here.store.audit([revoked('01')]);
  await started('02');
  await here.store.audit([revoked('03')]);
  // Otherwise the chain of a node that is new since would begin at its end.
  const begin = vi.spyOn(here.store, 'beginNotification');
  await started('04');
  expect(begin).not.toHaveBeenCalled();
  expect(subjects(here)).toEqual(['02', '03', '04']);
});

test('after a stop nothing is delivered', async () => {
  const here = await world({ ...HOOK, ...common });
  const gate = Promise.withResolvers<undefined>();
  let calls = 0;
  const receiver = {
    send: () => {
      calls++;
      return gate.promise;
    },
    close: () => undefined,
  };
  const notifier = here.make({ receiver });
  await here.store.audit([revoked('01')]);
  await notifier.start();
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  await vi.waitFor(() => expect(calls).toBe(1));
  const stop = notifier.stop();
  gate.resolve(undefined);
  await stop;
  expect(calls).toBe(1);
  expect(timers.mock.calls.filter(([, delay]) => delay === 1000)).toEqual([]);
});

test('a node that is not on duty delivers nothing', async () => {
  const here = await world({ ...HOOK, ...common });
  await here.store.audit([revoked('01')]);
  await here.make({ isOnDuty: () => false }).deliver();
  expect(here.got).toEqual([]);
  await here.make().deliver();
  expect(subjects(here)).toEqual(['01']);
});

test('a look that finds nothing new writes nothing, and a line that is no record is passed over', async () => {
  const { store, got, make } = await world({ ...HOOK, ...common });
  const advance = vi.spyOn(store, 'advanceNotification');
  await make().deliver();
  expect(advance).not.toHaveBeenCalled();
  vi.spyOn(store, 'auditLines').mockResolvedValueOnce([{ seq: 1, time: 0, line: '{"type":"certificate.revoked"}' }]);
  await make().deliver();
  expect(got).toEqual([]);
});

test('events and labels select; a further label counts, and records without an event are passed over', async () => {
  const here = await world({ ...HOOK, ...common, events: ['certificate.revoked'], labels: ['devices', 'guests'] });
  await here.store.audit([
    ...[revoked('01'), event('certificate.issued', { ca: 'devices', serial: '02' })],
    ...[event('certificate.revoked', { ca: 'lab', serial: '03' }), event('service.start')],
    ...[event('certificate.held', { ca: 'lab', label: 'guests', serial: '04' })],
  ]);
  await here.make().deliver();
  expect(subjects(here)).toEqual(['01', '04']);
  expect(JSON.stringify(here.got)).not.toMatch(/hash|"seq"/);
});

test('mail is a digest of warnings, one in digest_interval, and is repeated until it is accepted', async () => {
  const here = await world({ ...MAIL, ...common });
  const { store, clock, got, receiver, make } = here;
  const warn = () => store.audit([event('crl.overdue', { ca: 'devices', detail: 'late' }), revoked('01')]);
  const notifier = make();
  receiver.isUp = false;
  await warn();
  await warn();
  await notifier.deliver();
  expect(got).toEqual([]);
  receiver.isUp = true;
  await notifier.deliver();
  expect(got.map((events) => events.map(({ type }) => type))).toEqual([['crl.overdue', 'crl.overdue']]);
  await warn();
  await notifier.deliver();
  expect(got).toHaveLength(1);
  clock.now += DAY;
  await notifier.deliver();
  expect(got.map(({ length }) => length)).toEqual([2, 1]);
});

test('a digest has no event that is too old, 10,000 events at most, and is not empty', async () => {
  const here = await world({ ...MAIL, ...common, digest_interval: 0 });
  const { store, clock, got, make } = here;
  const late = event('crl.overdue', { ca: 'devices', detail: 'late' });
  await store.audit([late]);
  clock.now += 3 * DAY + 1;
  await make().deliver();
  await make().deliver();
  expect([got, await auditTypes(store)]).toEqual([[], expect.arrayContaining(['notification.failed'])]);
  for (let n = 0; n < 11; n++) await store.audit(Array.from({ length: 1000 }, () => late));
  const notifier = make();
  await notifier.deliver();
  await notifier.deliver();
  expect(got.map(({ length }) => length)).toEqual([10_000, 1000]);
});
