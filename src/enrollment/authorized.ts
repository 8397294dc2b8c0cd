/** Stage after the decision about names: the requester may request this, and its key is linked to it. */
import type { ClientIdBinding } from '../auth/identity.ts';
import { checkPopLinking, type PopLinkingPolicy } from '../auth/channel-binding.ts';
import { dryRunEffect } from '../store/calls/errors.ts';
import { changeSubject, type CsrContent } from '../pki/pkcs10/csr-content.ts';
import type { RequestOverride, RequestRow } from '../store/request-store.ts';
import { encodeGeneralNames } from '../pki/x509/general-name.ts';
import { readOverride, type Overridden } from './authorization/messages.ts';
import type { Admitted } from './admitted.ts';
import type { PlaceholderValues } from '../pki/x509/name-template.ts';
import { decideNames, parseCertifiedNames, type CertifiedNames, type DecidedNames } from './names.ts';
import { Proven, type RequestedKey } from './proven.ts';
import { recognize, recognitionOf } from './recognition.ts';
import type { RequestBase } from './request.ts';

export interface AuthorizationRules {
  /** `otp.bind_client_id`. */
  readonly clientIdBinding: ClientIdBinding;
  /** `[est]`. */
  readonly popLinking: PopLinkingPolicy;
}

interface Decision {
  readonly isRenewal: boolean;
  /** The state before an external service decided. */
  readonly before?: Authorized;
  readonly overridden?: Overridden;
}

/** Created only after a decision about names, now or before the request was queued. */
export class Authorized {
  readonly request: RequestBase;
  /** With the decided names. */
  readonly csr: CsrContent;
  readonly names: CertifiedNames;
  /** Values of the policy's placeholders; undefined: they were applied before the request was queued. */
  readonly values: PlaceholderValues | undefined;
  readonly key: RequestedKey;
  /** A renewal: no service overrides its names. */
  readonly isRenewal: boolean;
  readonly #before: Authorized | undefined;
  readonly #overridden: Overridden;

  private constructor(
    request: RequestBase,
    { csr, names, values }: Omit<DecidedNames, 'values'> & { readonly values: DecidedNames['values'] | undefined },
    key: RequestedKey,
    { isRenewal, before, overridden = {} }: Decision,
  ) {
    this.request = request;
    this.csr = csr;
    this.names = names;
    this.values = values;
    this.key = key;
    this.isRenewal = isRenewal;
    this.#before = before;
    this.#overridden = overridden;
  }

  /** Recognizes a repeated request. */
  get recognition(): string {
    return this.#before?.recognition ?? recognitionOf(this.request, recognize(this.csr, this.key.kind));
  }

  /** Validity, if it is not the profile's. */
  get validityDays(): number | undefined {
    return this.#overridden.validityDays;
  }

  /** With an external service's override. The recognition stays the same. */
  overridden(override: RequestOverride): Authorized {
    const overridden = readOverride(override);
    const { subject = this.names.subject, subjectAltNames = this.names.subjectAltNames } = overridden;
    const subjectAltNamesDer = subjectAltNames.length === 0 ? undefined : encodeGeneralNames(subjectAltNames);
    const csr = changeSubject({ ...this.csr, subjectChange: { subject, subjectAltNames, subjectAltNamesDer } });
    const names = { subject, subjectAltNames, added: this.names.added };
    const decision = { isRenewal: this.isRenewal, before: this, overridden };
    return new Authorized(this.request, { csr, names, values: this.values }, this.key, decision);
  }

  /**
   * @param before the names that were authorized for the certificate to renew
   * @throws EstuaryError 403 as {@link decideNames}; 400 `POP_LINKING_MISSING`, `POP_LINKING_MISMATCH`
   */
  static of(admitted: Admitted, proven: Proven, rules: AuthorizationRules, before?: CertifiedNames): Authorized {
    const { request, right, linking } = admitted;
    if (proven.isSimulated && request.dryRun !== true) throw dryRunEffect();
    const decided = decideNames(request, right, proven.csr, rules.clientIdBinding, before);
    checkPopLinking(decided.csr, linking, rules.popLinking);
    return new Authorized(request, decided, proven.key, { isRenewal: right.kind === 'renewal' });
  }

  /**
   * A queued request, polled by its owner: issues what was approved, not what the poll contains.
   * @throws EstuaryError; CmcError
   */
  static async queued(poll: RequestBase, row: RequestRow): Promise<Authorized> {
    const { csr, key } = await Proven.queued(row);
    const request = { ...poll, ...queuedDevice(row), requestId: row.id, owner: row.requester };
    const isRenewal = row.operation !== 'simpleenroll' && row.operation !== 'serverkeygen';
    const changed = changeSubject(csr);
    const decided = { csr: changed, names: parseCertifiedNames(row.names), values: undefined };
    const authorized = new Authorized(request, decided, key, { isRenewal });
    const override = row.override ?? {};
    return Object.keys(override).length === 0 ? authorized : authorized.overridden(override);
  }
}

function queuedDevice({
  device: id,
  device_key: key,
  required_device,
}: RequestRow): Pick<RequestBase, 'device' | 'foundDevice'> {
  if (id === null || key === null) return {};
  return required_device === null ? { foundDevice: { id, key } } : { device: { id, key, attributes: {} } };
}
