/** Who sent a message, and in which role: its signature, its shared secret, the TLS connection (docs/guides/cmc.md). */
import { hash } from 'node:crypto';
import { certificateHolder, holderKey } from '../auth/certificate-holder.ts';
import type { CmcIdentity, MtlsIdentity } from '../auth/identity.ts';
import type { Ca } from '../ca/router.ts';
import type { CmcMaterial, KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe, type EstuaryError, failed } from '../errors.ts';
import type { SharedSecret } from '../pki/cmc/identity-proof.ts';
import { type CmsSigner, issuerAndSerialNumber, keySigner } from '../pki/cms/signed-data.ts';
import type { Certificate } from '../pki/x509/certificate.ts';

/** The parties that `[cmc]` names: who signs PKI responses, who is a registration authority, who shares a secret. */
export interface Responder {
  readonly signer: CmsSigner;
  /** DER of what a client needs to verify its signatures, beside the CA's chain. */
  readonly certificates: readonly Buffer[];
}

export interface CmcParties {
  /** `cmc.certificate`; undefined: each CA signs for itself. */
  readonly responder: Responder | undefined;
  /** `cmc.ra_certificates`. */
  readonly raCertificates: readonly Certificate[];
  /** `cmc.shared_secrets` by identification. */
  readonly secrets: ReadonlyMap<string, ConfiguredSecret>;
}

interface ConfiguredSecret {
  readonly secret: Buffer;
  /** The labels at which it works; undefined: all. */
  readonly labels: readonly string[] | undefined;
}

/** @throws EstuaryError 500 `CMC_SIGNER_UNUSABLE` where the responder's key cannot sign */
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

/** The configured responder, or else the CA itself; undefined: nothing here can sign for this CA. */
export function responderFor({ responder }: CmcParties, { driver }: Ca): Responder | undefined {
  if (responder !== undefined) return responder;
  const { cmsSigner: signer, cmsCertificates: certificates = [] } = driver;
  return signer === undefined ? undefined : { signer, certificates };
}

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
  /** The CA that issued that certificate, by its validated path. */
  readonly issuer: Certificate | undefined;
  /** As of a client certificate ({@link MtlsIdentity}). */
  readonly issuedHere?: boolean;
  /** What proved the identity, and so has to be linked to the requests' keys (RFC 5272 §6.3). */
  readonly secret: SharedSecret | undefined;
  /**
   * DER SubjectPublicKeyInfo of the key that signed the message, unless the sender is the holder of a certificate with it: a request
   * for this key is linked to the sender by the signature.
   */
  readonly signingKey: Buffer | undefined;
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

/**
 * The identity of a certificate's holder.
 *
 * @param issuer undefined: an RA's that the configuration names and no path leads to, which is the one with this very certificate
 */
export function certificateIdentity(certificate: Certificate, issuer: Certificate | undefined): CmcIdentity {
  const display = certificateHolder(certificate);
  const key =
    issuer === undefined
      ? `${display} tbsCertificate sha256:${hash('sha256', certificate.tbs, 'hex')}`
      : holderKey({ certificate, issuer });
  return { method: 'cmc', requester: `cmc:${key}`, display, certificate, issuer };
}

/** The identity of a shared secret's holder: its display is no distinguished name. */
export function secretIdentity(identification: string): CmcIdentity {
  return namedIdentity(`identification:${identification}`);
}

/** The method by which a requester of full CMC authenticated. */
export function methodOf(requester: string): 'cmc' | 'mtls' {
  return requester.startsWith(secretIdentity('').requester) ? 'cmc' : 'mtls';
}

/** The identity of whom the store or the log calls this. */
export function namedIdentity(display: string): CmcIdentity {
  return { method: 'cmc', requester: `cmc:${display}`, display, certificate: undefined, issuer: undefined };
}

/** Where a message comes from, and with what. */
export interface Origin {
  readonly ca: Ca;
  readonly address: string;
  /** Milliseconds. */
  readonly now: number;
  /**
   * Whom the certificate of the TLS connection names, or why it does not count. undefined: there is none, the label ignores
   * certificates, or the message is inside another one.
   */
  readonly tls: MtlsIdentity | EstuaryError | undefined;
  /** DER of the certificates that came with the TLS handshake. */
  readonly presented: readonly Buffer[];
  /** Of the TLS connection; undefined inside of another message, whose sender carries this one. */
  readonly channelBinding: (() => Buffer | undefined) | undefined;
}
