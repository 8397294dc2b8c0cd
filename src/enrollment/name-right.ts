/** Which names a requester may ask for, and how it is bound to its own. */
import type { Identity } from '../auth/identity.ts';
import type { Certificate } from '../pki/x509/certificate.ts';

/** Which names a requester is entitled to ask for. */
export type NameRight =
  /** An enrollment, by the rules of the requester's method. */
  | {
      readonly kind: 'enrolment';
      readonly identity: Identity;
      /** A requester with a certificate must ask for its subject, whatever the profile allows (full CMC). */
      readonly ownSubject?: true;
    }
  /** The names of this certificate. */
  | { readonly kind: 'renewal'; readonly certificate: Certificate }
  /** Those that its shared secret was made for (RFC 5272 §6.2). */
  | { readonly kind: 'secret'; readonly identification: string }
  /** Any: a registration authority, or whom one vouches for. */
  | { readonly kind: 'any' }
  /** None: it asks about a request that was queued. */
  | { readonly kind: 'none' };
