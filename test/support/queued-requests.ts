/** What an administrator sees and does of queued requests, in tests. */
import { expect } from 'vitest';
import { itemsOf, type Estuary } from './estuary.ts';

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

/** The audit records of one type about one request. */
export async function auditOf(estuary: Estuary, type: string, id: string): Promise<Record<string, unknown>[]> {
  const { json } = await estuary.admin('GET', `/admin/audit?limit=1000&type=${type}`);
  return itemsOf(json).filter(({ request_id }) => request_id === id);
}
