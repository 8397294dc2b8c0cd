/** What the parts of an enrolment hand each other. */
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../audit/event.ts';
import type { Identity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import type { Csr, VerifiedCsr } from '../pki/csr.ts';
import type { Name } from '../pki/name.ts';

/** An authorised request for one certificate. */
export interface EnrollmentRequest {
  readonly requestId: string;
  readonly operation: string;
  readonly ca: Ca;
  readonly identity: Identity;
  readonly address: string;
  readonly csr: VerifiedCsr;
  /** Of the authentication, committed with the intent. */
  readonly events: readonly AuditEvent[];
}

/** What two polls at once make of an approved request: one issues, for the other this is thrown. */
export class RequestTaken extends Error {}

export type EnrollmentOutcome =
  { readonly status: 'issued'; /** DER */ readonly certificate: Buffer } | { readonly status: 'pending' };

/** What a request is recognised by, of its CSR. */
export type QueuedCsr = Pick<Csr, 'subject' | 'subjectAltNames' | 'publicKey'>;

/** Hex SHA-256 of the public key that is asked for. */
export function spkiHash({ publicKey }: Pick<Csr, 'publicKey'>): string {
  return createHash('sha256').update(publicKey.spki).digest('hex');
}

/** The subject that the certificate gets: a Kerberos principal's mapped one, else the CSR's. */
export function subjectFor(identity: Identity, csr: Pick<Csr, 'subject'>): Name {
  return identity.method === 'gssapi' ? identity.subject : csr.subject;
}

/** What the audit events of a request have in common. */
export function eventBase(request: EnrollmentRequest): Pick<AuditEvent, 'subject' | 'address' | 'ca' | 'request_id'> {
  return {
    subject: request.identity.display,
    address: request.address,
    ca: request.ca.label,
    request_id: request.requestId,
  };
}
