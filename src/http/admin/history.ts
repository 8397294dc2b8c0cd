/** `GET /admin/history`: the history of a device, requester or request. */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { AuditRecord } from '../../audit/event.ts';
import { badRequest } from '../../errors.ts';
import type { ListedCertificate } from '../../store/certificate-store.ts';
import type { DeviceHistory } from '../../store/device-store.ts';
import type { PageRequest } from '../../store/page.ts';
import { ShownAuditItem, shownAuditItems } from './audit.ts';
import { CertificateRecord, certificateRecords } from './certificates.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { limited, type LimitedStore } from './access.ts';
import { OtpRecord, otpRecord } from './otp.ts';
import { RequestRecord, requestRecord } from './requests.ts';
import { route } from './route.ts';
import { titled, whole } from './schemas.ts';

/** Latest items of each type. */
export const SHOWN = 100;
/** Candidate audit records for one requester: the index finds substrings. */
const LOOKED_AT = 2000;

export const historyProperties = {
  certificates: Type.Array(CertificateRecord),
  tokens: Type.Array(OtpRecord, {
    description: 'One-time passwords created for that name, or used for the request.',
  }),
  requests: Type.Array(RequestRecord, { description: 'Queued requests.' }),
  events: Type.Array(ShownAuditItem, {
    description: 'Audit records. `ra` gets the fields that `GET /admin/events` shows.',
  }),
};

const History = titled('History', `The latest ${SHOWN} of each kind, the newest first.`, historyProperties);

export const historyRecord = async (
  found: DeviceHistory,
  store: Pick<LimitedStore, 'listRescues'>,
  now: number,
  request: FastifyRequest,
) => ({
  certificates: await certificateRecords(store, found.certificates, now),
  tokens: found.tokens.map((token) => otpRecord(token, now)),
  requests: found.requests.map(requestRecord),
  events: shownAuditItems(found.events, request),
});

const NEWEST: PageRequest = { limit: SHOWN, order: 'desc' };

export function registerHistory(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'GET /admin/history',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get everything about one device, requester or request',
    description: `Exactly one of the three parameters. A deleted device, and an ID that exists at several labels, is found without its events. The events of a requester come from the newest ${LOOKED_AT} records whose subject contains its name.`,
    tag: 'audit',
    query: {
      device: whole('The ID of a device.'),
      requester: whole('The requester, as in certificates, requests and audit records.'),
      request_id: whole('The ID of a request.'),
    },
    response: { 200: History },
    handler: async (request) => {
      const now = deps.now();
      const { store } = limited(deps, request);
      return historyRecord(await find(request.query, store, now), store, now, request);
    },
  });
}

type Question = { readonly [K in 'device' | 'requester' | 'request_id']?: string | undefined };

function find({ device, requester, request_id }: Question, store: LimitedStore, now: number): Promise<DeviceHistory> {
  const asked = [device, requester, request_id].filter((value) => value !== undefined);
  if (asked.length !== 1) throw badRequest('FIELD_INVALID', 'one of device, requester and request_id is required');
  if (device !== undefined) return ofDevice(device, store, now);
  return requester === undefined ? ofRequest(asked[0] ?? '', store) : ofRequester(requester, store, now);
}

async function ofDevice(id: string, store: LimitedStore, now: number): Promise<DeviceHistory> {
  const [row, ...others] = await store.getDevices(id);
  if (row !== undefined && others.length === 0) return store.deviceHistory(row, SHOWN);
  return { ...(await listed({ device: id }, id, store, now)), events: [] };
}

async function ofRequester(requester: string, store: LimitedStore, now: number): Promise<DeviceHistory> {
  const [lists, events] = await Promise.all([listed({ requester }, requester, store, now), eventsOf(requester, store)]);
  return { ...lists, events };
}

async function listed(
  whose: { readonly device: string } | { readonly requester: string },
  client_id: string,
  store: LimitedStore,
  now: number,
): Promise<Omit<DeviceHistory, 'events'>> {
  const [certificates, tokens, requests] = await Promise.all([
    store.listCertificates({ ...NEWEST, ...whose }, now),
    store.listOtps({ ...NEWEST, client_id }, now),
    store.listRequests({ ...NEWEST, ...whose }),
  ]);
  return { certificates: certificates.items, tokens: tokens.items, requests: requests.items };
}

async function eventsOf(requester: string, store: LimitedStore): Promise<readonly AuditRecord[]> {
  const found: AuditRecord[] = [];
  let cursor: string | undefined;
  for (let seen = 0; seen < LOOKED_AT && found.length < SHOWN;) {
    const page = await store.listAudit({ limit: 500, order: 'desc', subject: requester, cursor });
    found.push(...page.items.filter(({ subject }) => subject === requester));
    seen += Math.max(page.items.length, 1);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return found.slice(0, SHOWN);
}

async function ofRequest(id: string, store: LimitedStore): Promise<DeviceHistory> {
  const [queued, certificate, ownEvents] = await Promise.all([
    store.getRequest(id),
    store.findCertificateByRequest(id),
    store.listAudit({ ...NEWEST, request_id: id }),
  ]);
  const token = typeof queued?.otp_id === 'string' ? await store.getOtp(queued.otp_id) : undefined;
  return {
    certificates: certificate === undefined ? [] : [certificate],
    tokens: token === undefined ? [] : [token],
    requests: queued === undefined ? [] : [queued],
    events: await withLaterOnes(ownEvents.items, certificate, store),
  };
}

/** Adds later events of the certificate, such as its revocation. */
async function withLaterOnes(
  own: readonly AuditRecord[],
  certificate: Pick<ListedCertificate, 'ca' | 'serial'> | undefined,
  store: LimitedStore,
): Promise<readonly AuditRecord[]> {
  if (certificate === undefined) return own;
  const { ca, serial } = certificate;
  const { items } = await store.listAudit({ ...NEWEST, ca, serial });
  const further = items.filter(({ hash }) => !own.some((record) => record.hash === hash));
  return [...own, ...further].toSorted((a, b) => b.time.localeCompare(a.time) || b.seq - a.seq).slice(0, SHOWN);
}
