/** Many slow clients on every listener delay only themselves. */
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { socketsOf } from '../support/slow-clients.ts';
import { until } from '../support/until.ts';
import { crowd, SLOW_KINDS } from '../support/slow-crowd.ts';

const LISTENERS = ['est', 'admin', 'publication'] as const;
const ENROLLMENTS = 60;
const key = makeKey();
const wire = onTheWire(simpleCsr(key));
let estuary: Estuary;
let device: ClientIdentity;
let open: Socket[] = [];
let before = 0;

beforeAll(async () => {
  estuary = await Estuary.start({
    listeners: LISTENERS,
    configure(config) {
      const base = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
      Object.assign(section(config, 'publication'), base);
      const limits = { handshake_timeout: 15, headers_timeout: 15, request_timeout: 15, keep_alive_timeout: 10 };
      Object.assign(section(config, 'server'), limits);
    },
  });
  device = await estuary.enrolled(key);
  before = socketsOf(estuary.server.pid);
});
afterAll(async () => {
  for (const socket of open) socket.destroy();
  await estuary.stop();
});

test('enrollments continue next to slow clients and 400 idle ones on each listener', async () => {
  const crowds = LISTENERS.flatMap((listener) => {
    const place = { listener, port: estuary.server.port(listener), ca: estuary.root, localAddress: '127.0.0.2' };
    return SLOW_KINDS.map((kind) => crowd(kind, kind === 'idle keep-alive' ? 400 : 4, place));
  });
  const statuses: number[] = [];
  const enrolling = (async () => {
    for (let i = 0; i < ENROLLMENTS; i++)
      statuses.push((await estuary.enroll(wire, { client: device, path: 'simplereenroll' })).status);
  })();
  enrolling.catch(() => undefined);
  open = (await Promise.all(crowds)).flat();
  await enrolling;
  expect(statuses).toEqual(Array(ENROLLMENTS).fill(200));
  await until('the slow clients are gone', () => socketsOf(estuary.server.pid) <= before + 4, 240_000);
  expect((await estuary.enroll(wire, { client: device, path: 'simplereenroll' })).status).toBe(200);
});
