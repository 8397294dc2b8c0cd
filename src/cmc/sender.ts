/** Who sent a message, and in which role: its signature, its shared secret, the TLS connection (docs/cmc.md). */
import type { CmcIdentity, MtlsIdentity } from '../auth/identity.ts';
import { certificateHolder } from '../auth/mtls/mtls-plugin.ts';
import type { Ca } from '../ca/router.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { sameGeneralNames } from '../pki/x509/general-name.ts';
import { namesMatch } from '../pki/x509/name-matching.ts';
import { namesEqual } from '../pki/x509/name.ts';
import type { BodyPartID } from '../pki/cmc/body-part.ts';
import type { SharedSecret } from '../pki/cmc/identity-proof.ts';

/**
 * What the sender may do beyond its own affairs. An RA asks for any names and revokes any certificate of the CA; one
 * that the configuration names may vouch for proof of possession too.
 */
export type Role = 'subscriber' | 'ra' | 'configured-ra';

export interface Sender {
  readonly identity: CmcIdentity;
  readonly role: Role;
  /** The certificate whose names a subscriber may ask for; undefined: the holder of a shared secret. */
  readonly certificate: Certificate | undefined;
  /** What proved the identity, and so has to be linked to the requests' keys (RFC 5272 §6.3). */
  readonly secret: SharedSecret | undefined;
  /** The request whose key signed the message: it is linked by that. */
  readonly signingRequest: BodyPartID | undefined;
  /** A registration authority carries the message over its own TLS connection. */
  readonly carried?: true;
  /** The names that it asks for are an RA's to answer for, who proved its identity (RFC 6402 §2.5); nothing else is. */
  readonly vouchedFor?: true;
  /**
   * All that this sender has shown to be: the holder of the key of one queued request, which it may poll; or nobody,
   * who may revoke with a shared secret in the control.
   */
  readonly limitedTo?: { readonly queuedRequest: string } | 'shared-secret revocation';
}

export const isRa = ({ role }: Pick<Sender, 'role'>): boolean => role !== 'subscriber';

/** The identity of a certificate's holder. */
export function certificateIdentity(certificate: Certificate): CmcIdentity {
  const display = certificateHolder(certificate);
  return { method: 'cmc', requester: `cmc:${display}`, display, certificate };
}

/** The identity of a shared secret's holder: its display is no distinguished name. */
export function secretIdentity(identification: string): CmcIdentity {
  return namedIdentity(`identification:${identification}`);
}

/** The identity of whom the store or the log calls this. */
export function namedIdentity(display: string): CmcIdentity {
  return { method: 'cmc', requester: `cmc:${display}`, display, certificate: undefined };
}

/** Two certificates of one holder: the same one, or the same names from the same issuer. */
export function sameHolder(a: Certificate, b: Certificate): boolean {
  return (
    a.fingerprint === b.fingerprint ||
    (namesMatch(a.issuer, b.issuer) &&
      namesEqual(a.subject, b.subject) &&
      sameGeneralNames(a.subjectAltNames, b.subjectAltNames))
  );
}

/** Where a message comes from, and with what. */
export interface Origin {
  readonly ca: Ca;
  readonly address: string;
  /** Milliseconds. */
  readonly now: number;
  /** Who authenticated the TLS connection; undefined where nobody had to, or inside of another message. */
  readonly tls: MtlsIdentity | undefined;
  /** DER of the certificates that came with the TLS handshake. */
  readonly presented: readonly Buffer[];
  /** Of the TLS connection; undefined inside of another message, whose sender carries this one. */
  readonly channelBinding: (() => Buffer | undefined) | undefined;
}
