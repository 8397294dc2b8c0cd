/**
 * Who makes a call, who may make it, and for which labels (docs/reference/admin-api.md). Each route has a rule; the
 * server does not start otherwise.
 */
import type { FastifyRequest } from 'fastify';
import * as administration from '../../administration/admin-call.ts';
import type { AuditEvent, AuditOutcome } from '../../audit/event.ts';
import { type AdminIdentity, rolesAt } from '../../auth/administrators.ts';
import { badRequest, failed, forbidden } from '../../errors.ts';
import { ADMIN_ROLES, type AdminRole } from '../../config/vocabulary.ts';
import type { Ca, CaRouter } from '../../ca/router.ts';
import { labelOf } from '../../store/certificate-store.ts';
import type { Metrics } from '../../metrics.ts';
import type { Rejection } from '../../store/statistics-store.ts';
import type { Store } from '../../store/store.ts';

/** @throws EstuaryError 500 without authentication */
export function callerOf({ admin }: FastifyRequest): AdminIdentity {
  if (admin === null) throw failed('INTERNAL_ERROR', 'the request failed inside the server');
  return admin;
}

export function callOf(request: FastifyRequest): administration.AdminCall {
  return {
    admin: callerOf(request),
    address: request.clientAddress,
    request_id: request.id,
    // The route's pattern instead of the path, which may contain a token pasted in place of an ID.
    name: `${request.method} ${request.routeOptions.url ?? ''}`,
  };
}

export const actor = (request: FastifyRequest) => administration.actor(callOf(request));

/** The `admin.access` event of a call; see {@link administration.accessEvent}. */
export const accessEvent = (request: FastifyRequest, outcome: AuditOutcome, about: string): AuditEvent =>
  administration.accessEvent(callOf(request), outcome, about);

/** Whether a call is intended to change something; a dry run is not. */
export const isChanging = ({ method, routeOptions, query }: FastifyRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && routeOptions.config.changes !== false && !isDryRun(query);

const isDryRun = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'dry_run' in query && query.dry_run === 'true';

/**
 * `admin` may make every call; the list has further roles. `everybody`: every administrator; `public`: no
 * authentication.
 */
export type Access = 'public' | 'everybody' | readonly Exclude<AdminRole, 'admin'>[];

/** Roles of which a call needs one; undefined: none. */
export function neededRoles(access: Access): readonly AdminRole[] | undefined {
  return typeof access === 'string'
    ? undefined
    : ADMIN_ROLES.filter((role) => role === 'admin' || access.includes(role));
}

/** The part of a Fastify route with the rule. */
interface AccessRule {
  readonly url?: string | undefined;
  readonly config?: { readonly access?: Access } | undefined;
}

export function accessOf({ url, config }: AccessRule): Access {
  const access = config?.access;
  if (access === undefined) throw new TypeError(`the route ${url ?? ''} does not say who may call it`);
  return access;
}

/** @throws EstuaryError 403 `ROLE_MISSING` that names the roles */
export function checkRole({ roles }: AdminIdentity, request: FastifyRequest): void {
  const needed = neededRoles(accessOf(request.routeOptions));
  if (needed === undefined || needed.some((role) => roles.includes(role))) return;
  throw forbidden('ROLE_MISSING', `this call needs the role ${needed.join(' or ')}`, {
    detail: `the caller has ${roles.length === 0 ? 'no role' : roles.join(', ')}`,
  });
}

/**
 * How labels limit a route. `records`: it reads and writes through {@link limited}, and creates after {@link checkLabel}. `none`: it shows
 * and touches nothing that belongs to a label. A route without a rule is refused for limited administrators.
 */
export type LabelRule = 'records' | 'none';

/** The labels that these roles may touch; undefined: no limit. */
export function labelsFor(
  { grants }: Pick<AdminIdentity, 'grants'>,
  roles: readonly AdminRole[],
): readonly string[] | undefined {
  const used = grants.filter((grant) => grant.roles.some((role) => roles.includes(role)));
  if (used.some(({ labels }) => labels === undefined)) return undefined;
  return [...new Set(used.flatMap(({ labels = [] }) => labels))].sort();
}

/** The labels that a call may touch; undefined: no limit. */
export function labelsOf(request: FastifyRequest): readonly string[] | undefined {
  const needed = neededRoles(accessOf(request.routeOptions));
  return needed === undefined ? undefined : labelsFor(callerOf(request), needed);
}

/** @throws EstuaryError 403 `LABEL_NOT_PERMITTED`: the route does not say how labels limit it */
export function checkLabelRule(request: FastifyRequest): void {
  if (request.routeOptions.config.labels !== undefined || labelsOf(request) === undefined) return;
  throw forbidden('LABEL_NOT_PERMITTED', 'this call needs a role that is not limited to labels');
}

/**
 * The label that a limited caller names for something new, or in place of another one.
 * @throws EstuaryError 403 `LABEL_NOT_PERMITTED`
 */
export function checkLabel(request: FastifyRequest, label: string | null | undefined): void {
  const labels = labelsOf(request);
  if (labels === undefined || (typeof label === 'string' && labels.includes(label))) return;
  throw forbidden('LABEL_NOT_PERMITTED', `ca must be a label that you may touch: ${labels.join(', ')}`);
}

/** @throws EstuaryError 400 `FIELD_INVALID`: not configured; 403 `LABEL_NOT_PERMITTED`, whether it is configured or not */
export function findLabel(request: FastifyRequest, { all }: Pick<CaRouter, 'all'>, label: string): Ca {
  checkLabel(request, label);
  const ca = all.find((ca) => ca.label === label);
  if (ca === undefined) throw badRequest('FIELD_INVALID', 'ca must be the label of a configured CA');
  return ca;
}

/** Whether a caller may see a record in some role. @param record without a label: only who has a role without limit */
export const rolesFor = (admin: AdminIdentity, record: { readonly ca?: string; readonly label?: string }) =>
  rolesAt(admin, labelOf(record));

/** The calls that routes with the rule `records` make. */
export type LimitedStore = Pick<Store, keyof ReturnType<typeof limitedStore>>;

/** Dependencies whose store shows and changes only what a call may touch. */
export function limited<Dependencies extends { readonly store: Store }>(
  deps: Dependencies,
  request: FastifyRequest,
): Omit<Dependencies, 'store'> & { readonly store: LimitedStore } {
  const labels = labelsOf(request);
  return labels === undefined ? deps : { ...deps, store: limitedStore(deps.store, labels) };
}

/** Rejected requests that the store does not have yet, of the labels that a call may touch. */
export function pendingRejections(
  { metrics }: { readonly metrics: Pick<Metrics, 'rejections'> },
  request: FastifyRequest,
): readonly Rejection[] {
  const labels = labelsOf(request);
  return metrics.rejections.pending.filter(({ ca }) => labels === undefined || labels.includes(ca));
}

/** Records of other labels do not exist there. Changes by an id follow a read of it. */
function limitedStore(store: Store, labels: readonly string[]) {
  const isOwn = (row: Parameters<typeof labelOf>[0]): boolean => labels.includes(labelOf(row) ?? '');
  const own = <Row extends Parameters<typeof labelOf>[0]>(row: Row | undefined): Row | undefined =>
    row !== undefined && isOwn(row) ? row : undefined;
  return {
    audit: (events) => store.audit(events),
    changeDevice: (...call) => store.changeDevice(...call),
    changeOtp: (...call) => store.changeOtp(...call),
    countCertificatesByEnd: (now, ends) => store.countCertificatesByEnd(now, ends, labels),
    countEvents: (filter) => store.countEvents({ ...filter, labels }),
    countRejections: async (since) => (await store.countRejections(since)).filter(isOwn),
    async countWaiting(now) {
      const { pending } = await store.countWaiting(now);
      return { pending: pending.filter(isOwn), lockouts: 0 };
    },
    decideRequest: (...call) => store.decideRequest(...call),
    deleteDevice: (...call) => store.deleteDevice(...call),
    async deviceHistory(device, limit) {
      const { certificates, tokens, requests, events } = await store.deviceHistory(device, limit);
      return {
        certificates: certificates.filter(isOwn),
        tokens: tokens.filter(isOwn),
        requests: requests.filter(isOwn),
        events: events.filter(isOwn),
      };
    },
    endRescue: (...call) => store.endRescue(...call),
    findCertificateByRequest: async (id) => own(await store.findCertificateByRequest(id)),
    getCertificates: async (...call) => (await store.getCertificates(...call)).filter(isOwn),
    getDevices: async (id) => (await store.getDevices(id)).filter(isOwn),
    getOtp: async (id) => own(await store.getOtp(id)),
    getRequest: async (id) => own(await store.getRequest(id)),
    listAudit: (filter) => store.listAudit({ ...filter, labels }),
    listCertificates: (filter, now) => store.listCertificates({ ...filter, labels }, now),
    listDeviceAttributes: (selection) => store.listDeviceAttributes({ ...selection, labels }),
    listDevices: (filter) => store.listDevices({ ...filter, labels }),
    listOtps: (filter, now) => store.listOtps({ ...filter, labels }, now),
    listRequests: (filter) => store.listRequests({ ...filter, labels }),
    listRescues: (...call) => store.listRescues(...call),
    putDevices: (...call) => store.putDevices(...call),
    rescueCertificate: (...call) => store.rescueCertificate(...call),
    revokeCertificate: (...call) => store.revokeCertificate(...call),
    revokeOtp: (...call) => store.revokeOtp(...call),
    usesOfDevices: (keys) => store.usesOfDevices(keys, labels),
  } satisfies Partial<Store>;
}
