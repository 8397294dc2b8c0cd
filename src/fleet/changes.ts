/** What audit records say of the fleet. The records of every node and version are read. */
import type { AuditRecord, AuditType } from '../audit/event.ts';
import type { ChangedCertificate, FleetChanges, RejectedRenewal, UsedCertificate } from '../store/holder-store.ts';

const PASSWORDS: Partial<Record<AuditType, { readonly code: string; readonly message: string }>> = {
  'auth.otp': { code: 'OTP_INVALID', message: 'invalid OTP token' },
  'auth.ldap': { code: 'LDAP_INVALID', message: 'invalid username or password' },
  'auth.jwt': { code: 'JWT_INVALID', message: 'invalid bearer token' },
};

/** What a queued request comes to. Its polls get these codes. */
const DECISIONS: Partial<Record<AuditType, 'REQUEST_REJECTED' | 'REQUEST_CANCELED'>> = {
  'request.rejected': 'REQUEST_REJECTED',
  'request.expired': 'REQUEST_CANCELED',
};
const LOCKED_OUT = { code: 'LOCKED_OUT', message: 'too many failures, locked out' };

const AUTHENTICATIONS: readonly AuditType[] = ['auth.mtls', 'auth.cmc'];
const CERTIFICATES: readonly AuditType[] = [
  'certificate.issued',
  'certificate.imported',
  'certificate.revoked',
  'certificate.held',
  'certificate.released',
];
const DEVICES: readonly AuditType[] = ['device.created', 'device.changed', 'device.deleted'];

/** The records that are read. */
export const FLEET_TYPES: readonly AuditType[] = [
  ...AUTHENTICATIONS,
  ...(['auth.otp', 'auth.ldap', 'auth.jwt'] as const),
  ...CERTIFICATES,
  ...DEVICES,
  ...(['certificate.denied', 'request.queued', 'request.rejected', 'request.expired', 'store.purged'] as const),
];

/** Authentications that are remembered for the outcome of their request, which follows soon. */
const MAX_KNOWN = 10_000;

export class ChangeReader {
  readonly #known = new Map<string, UsedCertificate>();
  readonly #find: (request_id: string) => Promise<readonly AuditRecord[]>;

  /** @param find the records of a request */
  constructor(find: (request_id: string) => Promise<readonly AuditRecord[]>) {
    this.#find = find;
  }

  /** @throws what `find` throws */
  async read(records: readonly AuditRecord[]): Promise<FleetChanges> {
    const certificates: ChangedCertificate[] = [];
    const rejections: RejectedRenewal[] = [];
    const queued: NonNullable<FleetChanges['queued']>[number][] = [];
    const devices: string[] = [];
    let purgedBefore: number | undefined;
    for (const record of records) {
      const { type, serial, ca, request_id, device_key } = record;
      const at = Date.parse(record.time);
      this.#remember(record);
      const password = record.outcome === 'failure' ? PASSWORDS[type] : undefined;
      if (password !== undefined && device_key !== undefined)
        rejections.push({ ...(record.detail === 'locked out' ? LOCKED_OUT : password), at, device_key });
      if (DEVICES.includes(type) && device_key !== undefined) devices.push(device_key);
      if (CERTIFICATES.includes(type) && serial !== undefined && ca !== undefined)
        certificates.push({ serial, ca, ...(type === 'certificate.issued' ? await this.#issued(record) : {}) });
      if (type === 'certificate.denied') rejections.push(...(await this.#denied(record, at)));
      if (type === 'store.purged' && record.detail?.includes('certificates') === true) purgedBefore = at;
      if (request_id === undefined) continue;
      const code = DECISIONS[type];
      const certificate = await (type === 'request.queued' ? this.#used(record) : code && this.#sender(request_id));
      if (certificate === undefined) continue;
      if (code === undefined) queued.push({ request_id, certificate });
      else rejections.push({ at, request_id, certificate, code, message: record.reason ?? record.detail ?? '' });
    }
    return {
      ...(certificates.length > 0 && { certificates }),
      ...(rejections.length > 0 && { rejections }),
      ...(queued.length > 0 && { queued }),
      ...(devices.length > 0 && { devices }),
      ...(purgedBefore !== undefined && { purgedBefore }),
    };
  }

  #remember({ type, outcome, serial, request_id, requester_issuer: issuer }: AuditRecord): void {
    if (!AUTHENTICATIONS.includes(type) || outcome !== 'success') return;
    if (serial === undefined || request_id === undefined) return;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(request_id, { serial, issuer });
  }

  async #issued(record: AuditRecord): Promise<Pick<ChangedCertificate, 'issued'>> {
    return { issued: { with: await this.#used(record), renews: record.operation === 'simplereenroll' } };
  }

  /** A rejected request to renew, and that of a device. */
  async #denied(record: AuditRecord, at: number): Promise<RejectedRenewal[]> {
    const { operation, renewal = operation === 'simplereenroll', device_key, reason = '', detail = '' } = record;
    const code = /: ([A-Z][A-Z0-9_]*): /.exec(detail)?.[1];
    // A poll changes nothing: the decision did.
    if (code === undefined || Object.values<string>(DECISIONS).includes(code)) return [];
    const rejection = { at, code, message: reason };
    const certificate = renewal ? await this.#used(record) : undefined;
    return [
      ...(device_key === undefined ? [] : [{ ...rejection, device_key }]),
      ...(certificate === undefined ? [] : [{ ...rejection, certificate }]),
    ];
  }

  /** The certificate that the request of a record was sent with. */
  async #used({ request_id, method }: AuditRecord): Promise<UsedCertificate | undefined> {
    return request_id === undefined || (method !== 'mtls' && method !== 'cmc') ? undefined : this.#sender(request_id);
  }

  async #sender(request_id: string): Promise<UsedCertificate | undefined> {
    if (!this.#known.has(request_id)) for (const record of await this.#find(request_id)) this.#remember(record);
    return this.#known.get(request_id);
  }
}
