/** The stage after the names were decided: this requester may ask for this, and its key is linked to it. */
import { checkPopLinking, type PopLinkingPolicy } from '../auth/channel-binding.ts';
import { changeSubject, type CsrContent } from '../pki/pkcs10/csr.ts';
import type { RequestRow } from '../store/request-store.ts';
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

/** Made where names were decided, or of a request that waits in the queue, for which they were; and nowhere else. */
export class Authorised {
  readonly request: RequestBase;
  /** With the names that were decided. */
  readonly csr: CsrContent;
  readonly #key: RequestedKey;

  private constructor(request: RequestBase, csr: CsrContent, key: RequestedKey) {
    this.request = request;
    this.csr = csr;
    this.#key = key;
  }

  get key(): RequestedKey {
    return this.#key;
  }

  /** By what it is known when it is made again. */
  get recognition(): string {
    return recognitionOf(this.request, recognise(this.csr, this.key.kind));
  }

  /** The names that the certificate gets. */
  get names(): Pick<CsrContent, 'subject' | 'subjectAltNames'> {
    return certifiedNames(this.request.identity, this.csr);
  }

  /** @throws EstuaryError 403 as {@link decideNames}; 400 `POP_LINKING_MISSING`, `POP_LINKING_MISMATCH` */
  static of(admitted: Admitted, proven: Proven, rules: AuthorisationRules): Authorised {
    const { request, right, linking } = admitted;
    const csr = decideNames(request.ca, right, proven.csr, rules.clientIdBinding);
    checkPopLinking(csr, linking, rules.popLinking);
    return new Authorised(request, csr, proven.key);
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
    return new Authorised(request, changeSubject(csr), key);
  }
}
