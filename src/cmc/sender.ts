/** Who sent a message, and in which role: its signature, its shared secret, the TLS connection (docs/guides/cmc.md). */
import { hash } from 'node:crypto';
import { certificateHolder, holderKey } from '../auth/certificate-holder.ts';
import type { CmcIdentity, MtlsIdentity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import type { CmcMaterial, KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe, type EstuaryError, failed } from '../errors.ts';
import type { SharedSecret } from '../pki/cmc/identity-proof.ts';
import { type CmsSigner, issuerAndSerialNumber, keySigner } from '../pki/cms/cms.ts';
import type { Certificate } from '../pki/x509/certificate.ts';

/** The parties configured in `[cmc]`: response signers, registration authorities, shared secrets. */
export interface Responder {
  readonly signer: CmsSigner;
  /** DER certificates that verify its signatures, in addition to the CA's chain. */
  readonly certificates: readonly Buffer[];
}

export interface CmcParties {
  /** `cmc.certificate`; undefined: each CA signs its own. */
  readonly responder: Responder | undefined;
  /** `cmc.ra_certificates`. */
  readonly raCertificates: readonly Certificate[];
  /** `cmc.shared_secrets` by identification. */
  readonly secrets: ReadonlyMap<string, ConfiguredSecret>;
}

interface ConfiguredSecret {
  readonly secret: Buffer;
  readonly labels: readonly string[] | undefined;
}

/** @throws EstuaryError 500 `CMC_SIGNER_UNUSABLE` if the responder's key cannot sign */
export function cmcParties({ cmc }: Pick<Config, 'cmc'>, { responder, raCertificates }: CmcMaterial): CmcParties {
  return {
    responder: responder === undefined ? undefined : responderOf(responder),
    raCertificates,
    secrets: new Map(
      cmc.shared_secrets.map(({ identification, secret, ca }) => [
        identification,
        { secret: secret.reveal(), labels: ca },
      ]),
    ),
  };
}

function responderOf({ certificates, privateKey }: KeyPair): Responder {
  const [certificate] = certificates;
  try {
    return {
      signer: keySigner(privateKey, certificate.publicKey, issuerAndSerialNumber(certificate)),
      certificates: certificates.map(({ der }) => der),
    };
  } catch (error) {
    throw failed('CMC_SIGNER_UNUSABLE', `cmc.private_key: ${describe(error)}`);
  }
}

/** The configured responder, or the CA; undefined if neither can sign. */
export function responderFor({ responder }: CmcParties, { driver }: Ca): Responder | undefined {
  if (responder !== undefined) return responder;
  const { cmsSigner: signer, cmsCertificates: certificates = [] } = driver;
  return signer === undefined ? undefined : { signer, certificates };
}

/**
 * The sender's rights for others. An RA requests any names and revokes any certificate of the CA; a configured RA may
 * also vouch for proof of possession.
 */
export type Role = 'subscriber' | 'ra' | 'configured-ra';

export interface Sender {
  readonly identity: CmcIdentity;
  readonly role: Role;
  /** The certificate whose names a subscriber may request; undefined for a shared secret. */
  readonly certificate: Certificate | undefined;
  /** The certificate's issuer in its validated path. */
  readonly issuer: Certificate | undefined;
  /** As in {@link MtlsIdentity}. */
  readonly issuedHere?: boolean;
  /** The secret that proved the identity and must be linked to the requests' keys (RFC 5272 §6.3). */
  readonly secret: SharedSecret | undefined;
  /**
   * The key that signed the message, unless the sender has a certificate for it: the signature links a request for this
   * key to the sender.
   */
  readonly signingKey: Buffer | undefined;
  /** A registration authority carries the message over its own TLS connection. */
  readonly carried?: true;
  /** An RA proved the sender's identity (RFC 6402 §2.5) and answers for its requested names, but for nothing else. */
  readonly vouchedFor?: true;
  /**
   * Restricts a sender that proved only possession of a queued request's key (which it may poll), or nothing (it may
   * revoke with a shared secret in the control).
   */
  readonly limitedTo?: { readonly queuedRequest: string } | 'shared-secret revocation';
}

export const isRa = ({ role }: Pick<Sender, 'role'>): boolean => role !== 'subscriber';

/**
 * The identity of a certificate's holder.
 * @param issuer undefined for a configured RA certificate without a path, which identifies its holder itself
 */
export function certificateIdentity(certificate: Certificate, issuer: Certificate | undefined): CmcIdentity {
  const display = certificateHolder(certificate);
  const key =
    issuer === undefined
      ? `${display} tbsCertificate sha256:${hash('sha256', certificate.tbs, 'hex')}`
      : holderKey({ certificate, issuer });
  return { method: 'cmc', requester: `cmc:${key}`, display, certificate, issuer };
}

/** The identity of a shared secret's holder; its display name is not a distinguished name. */
export function secretIdentity(identification: string): CmcIdentity {
  return namedIdentity(`identification:${identification}`);
}

export function methodOf(requester: string): 'cmc' | 'mtls' {
  return requester.startsWith(secretIdentity('').requester) ? 'cmc' : 'mtls';
}

export function namedIdentity(display: string): CmcIdentity {
  return { method: 'cmc', requester: `cmc:${display}`, display, certificate: undefined, issuer: undefined };
}

/** The origin of a message, and its credentials. */
export interface Origin {
  readonly ca: Ca;
  readonly address: string;
  readonly now: number;
  /**
   * The identity in the TLS certificate, or why it is not accepted. undefined: no certificate was sent, the label ignores
   * certificates, or the message is inside another one.
   */
  readonly tls: MtlsIdentity | EstuaryError | undefined;
  /** DER of the certificates from the TLS handshake. */
  readonly presented: readonly Buffer[];
  /** Of the TLS connection; undefined for an inner message, which the outer sender carries. */
  readonly channelBinding: (() => Buffer | undefined) | undefined;
}
