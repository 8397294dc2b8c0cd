/** Which names a requester may ask for, and how it is bound to its own. */
import type { Identity } from '../auth/identity.ts';
import type { Certificate } from '../pki/x509/certificate.ts';

/** How an OTP's client_id binds the CSR (`otp.bind_client_id`). */
export type ClientIdBinding = 'off' | 'cn' | 'san';

/** Which names a requester is entitled to ask for. */
export type NameRight =
  /** An enrolment: as its own method of authentication has it. */
  | { readonly kind: 'enrolment'; readonly identity: Identity }
  /** The names of this certificate. */
  | { readonly kind: 'renewal'; readonly certificate: Certificate }
  /** Those that its shared secret was made for (RFC 5272 §6.2). */
  | { readonly kind: 'secret'; readonly identification: string }
  /** Any: a registration authority, or whom one vouches for. */
  | { readonly kind: 'any' }
  /** None: it asks about a request that was queued. */
  | { readonly kind: 'none' };
