/** What an administrator sees and does of queued requests, and their polls, in tests. */
import { randomInt } from 'node:crypto';
import { expect } from 'vitest';
import { itemsOf, type Estuary } from './estuary.ts';
import type { Answer } from './https.ts';
import { pause } from './until.ts';

/** The queued requests of one subject `CN=…`, as the admin API lists them. */
export async function requestsOf(estuary: Estuary, cn: string): Promise<Record<string, unknown>[]> {
  const { json } = await estuary.admin('GET', '/admin/requests?limit=1000');
  return itemsOf(json).filter(({ subject }) => subject === `CN=${cn}`);
}

/** The id of the one queued request of this name. */
export async function requestId(estuary: Estuary, cn: string): Promise<string> {
  const [request, ...more] = await requestsOf(estuary, cn);
  if (typeof request?.['id'] !== 'string' || more.length > 0) throw new Error(`not exactly one request of ${cn}`);
  return request['id'];
}

/** Approves the one queued request of this name. */
export async function approve(estuary: Estuary, cn: string): Promise<void> {
  const { status } = await estuary.admin('POST', `/admin/requests/${await requestId(estuary, cn)}/approve`);
  expect(status).toBe(200);
}

/** How often a one-time password was used. */
export const usesOf = async (estuary: Estuary, id: string): Promise<unknown> =>
  (await estuary.admin('GET', `/admin/otp/${id}`)).json['uses'];

/** A poll during which the server is killed, and the next one after it has started again. */
export async function pollAcrossKill(
  estuary: Estuary,
  poll: () => Promise<Answer>,
): Promise<{ readonly before: Answer | undefined; readonly after: Answer }> {
  const cut = poll().catch(() => undefined);
  await pause(randomInt(60));
  estuary.server.signal('SIGKILL');
  await estuary.server.exited;
  const before = await cut;
  await estuary.restart();
  return { before, after: await poll() };
}

/** The audit records of one type about one request. */
export async function auditOf(estuary: Estuary, type: string, id: string): Promise<Record<string, unknown>[]> {
  const { json } = await estuary.admin('GET', `/admin/audit?limit=1000&type=${type}`);
  return itemsOf(json).filter(({ request_id }) => request_id === id);
}

/**
 * Waits until the CA serves again, after a fault in which a check of the driver may have taken it out of use: until the
 * next check, which may come after the fault is mended. A report of health holds for a second.
 */
export async function caInUse(estuary: Estuary): Promise<void> {
  await pause(1100);
  const health = async (): Promise<unknown> => (await estuary.admin('GET', '/admin/cas/devices')).json['health'];
  await expect.poll(health).toBe('ok');
}
