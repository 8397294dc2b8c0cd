/** The stage after the names were decided: this requester may ask for this, and its key is linked to it. */
import { checkPopLinking, type PopLinkingPolicy } from '../auth/channel-binding.ts';
import { changeSubject, type CsrContent } from '../pki/pkcs10/csr-content.ts';
import type { RequestOverride, RequestRow } from '../store/request-store.ts';
import { encodeGeneralNames } from '../pki/x509/general-name.ts';
import { readOverride, type Overridden } from './authorization/messages.ts';
import type { Admitted } from './admitted.ts';
import { certifiedNames, decideNames, type ClientIdBinding } from './names.ts';
import { Proven, type RequestedKey } from './proven.ts';
import { recognise, recognitionOf } from './recognition.ts';
import type { RequestBase } from './request.ts';

export interface AuthorisationRules {
  /** `otp.bind_client_id`. */
  readonly clientIdBinding: ClientIdBinding;
  /** `[est]`. */
  readonly popLinking: PopLinkingPolicy;
}

interface Standing {
  readonly isRenewal: boolean;
  /** As it was before somebody else has decided. */
  readonly before?: Authorised;
  readonly overridden?: Overridden;
}

const isEmpty = (override: RequestOverride): boolean => Object.keys(override).length === 0;

/** Made where names were decided, or of a request that waits in the queue, for which they were; and nowhere else. */
export class Authorised {
  readonly request: RequestBase;
  /** With the names that were decided. */
  readonly csr: CsrContent;
  readonly #key: RequestedKey;
  /** Of a certificate that is being renewed: nobody else decides on its names. */
  readonly isRenewal: boolean;
  readonly #before: Authorised | undefined;
  readonly #overridden: Overridden;

  private constructor(
    request: RequestBase,
    csr: CsrContent,
    key: RequestedKey,
    { isRenewal, before, overridden = {} }: Standing,
  ) {
    this.request = request;
    this.csr = csr;
    this.#key = key;
    this.isRenewal = isRenewal;
    this.#before = before;
    this.#overridden = overridden;
  }

  get key(): RequestedKey {
    return this.#key;
  }

  /** By what it is known when it is made again. */
  get recognition(): string {
    return this.#before?.recognition ?? recognitionOf(this.request, recognise(this.csr, this.key.kind));
  }

  /** The names that the certificate gets. */
  get names(): Pick<CsrContent, 'subject' | 'subjectAltNames'> {
    const { subject, subjectAltNames } = this.#overridden;
    const names = this.#before?.names ?? certifiedNames(this.request.identity, this.csr);
    return { subject: subject ?? names.subject, subjectAltNames: subjectAltNames ?? names.subjectAltNames };
  }

  /** How long the certificate is valid, where it is not for the profile to say. */
  get validityDays(): number | undefined {
    return this.#overridden.validityDays;
  }

  /** With what an external service has decided in place of what was asked for; by its recognition it stays the same request. */
  overridden(override: RequestOverride): Authorised {
    const overridden = readOverride(override);
    const { subject, subjectAltNames } = { ...this.names, ...overridden };
    const subjectAltNamesDer = subjectAltNames.length === 0 ? undefined : encodeGeneralNames(subjectAltNames);
    const csr = changeSubject({ ...this.csr, subjectChange: { subject, subjectAltNames, subjectAltNamesDer } });
    return new Authorised(this.request, csr, this.#key, { isRenewal: this.isRenewal, before: this, overridden });
  }

  /** @throws EstuaryError 403 as {@link decideNames}; 400 `POP_LINKING_MISSING`, `POP_LINKING_MISMATCH` */
  static of(admitted: Admitted, proven: Proven, rules: AuthorisationRules): Authorised {
    const { request, right, linking } = admitted;
    const csr = decideNames(request.ca, right, proven.csr, rules.clientIdBinding);
    checkPopLinking(csr, linking, rules.popLinking);
    return new Authorised(request, csr, proven.key, { isRenewal: right.kind === 'renewal' });
  }

  /**
   * What was queued, asked for again by whom it belongs to: what is approved is what is issued, not what was sent now.
   *
   * @throws EstuaryError; CmcError
   */
  static async queued(poll: RequestBase, row: RequestRow): Promise<Authorised> {
    const { csr, key } = await Proven.queued(row);
    const { device, device_key: deviceKey } = row;
    const queued = device === null || deviceKey === null ? poll.device : { id: device, key: deviceKey, attributes: {} };
    const request = { ...poll, requestId: row.id, owner: row.requester, ...(queued && { device: queued }) };
    const isRenewal = row.operation !== 'simpleenroll' && row.operation !== 'serverkeygen';
    const authorised = new Authorised(request, changeSubject(csr), key, { isRenewal });
    return row.override === null || isEmpty(row.override) ? authorised : authorised.overridden(row.override);
  }
}
