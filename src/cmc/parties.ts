/** The parties that `[cmc]` names: who signs PKI responses, who is a registration authority, who shares a secret. */
import type { Ca } from '../ca/router.ts';
import type { CmcMaterial, KeyPair } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { describe, failed } from '../errors.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { issuerAndSerialNumber, keySigner, type CmsSigner } from '../pki/cms/signed-data.ts';

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

export interface ConfiguredSecret {
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
