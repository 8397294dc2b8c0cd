/** `driver = "file"`: a CA whose key is in a file. Also creates the local CA of any other key store. */
import type { KeyObject } from 'node:crypto';
import { choice, optional, path, type Static, table } from '../../config/keys.ts';
import { loadOwnCa } from '../../config/material/ca.ts';
import type { KeyPair, OwnCaMaterial } from '../../config/material/material.ts';
import { caCertificate, caKeys } from '../../config/schema/label.ts';
import { describe, failed } from '../../errors.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { DriverDefinition, OcspDelegate, Signer } from '../driver.ts';
import { AbsentSigner, FileSigner, ocspDelegate } from './signing.ts';
import { LocalCa, type IssuanceProfile } from './local-ca.ts';
import type { PublicationUrls } from './tbs.ts';

export { LocalCa } from './local-ca.ts';
export { FileSigner } from './signing.ts';

/** The settings that every local CA uses from its `[[ca]]` table. */
export interface LocalCaConfig {
  readonly label: string;
  readonly profile: IssuanceProfile;
}

export interface LocalCaContext {
  readonly publication?: PublicationUrls | undefined;
  readonly now: () => number;
  /** Starts the signer, if needed. */
  readonly start?: () => Promise<void>;
}

/** A CA with any signer. @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem */
export function createLocalCa(
  { label, profile }: LocalCaConfig,
  { certificates, ocsp }: Pick<OwnCaMaterial, 'certificates' | 'ocsp'>,
  signer: Signer,
  context: LocalCaContext,
): LocalCa {
  const delegate = ocsp === undefined ? undefined : createDelegate(label, ocsp);
  return usable(label, 'private_key', () => new LocalCa({ ...certificates, ...context, signer, delegate, profile }));
}

const fileKeys = table('A CA whose key is in a file.', {
  ...caKeys,
  driver: choice(['file'], { description: 'Where the CA key is: in a file.' }),
  certificate: caCertificate(),
  file: table('A CA key in a file.', {
    private_key: path({ description: "PEM file with the CA's private key, readable by the server alone." }),
    password: optional.secret({ description: 'The passphrase of an encrypted key (PKCS #8).' }),
  }),
});

export type FileCaTable = Static<typeof fileKeys>;

interface FileCaMaterial extends OwnCaMaterial {
  readonly table: FileCaTable;
  /** undefined: it cannot be used, and the label is out of service. */
  readonly privateKey: KeyObject | undefined;
}

export const fileDriver: DriverDefinition<FileCaTable, FileCaMaterial> = {
  keys: fileKeys,
  name: 'file',
  async load(reader, ca, key) {
    const own = await loadOwnCa(reader, ca, key);
    return own && { table: ca, ...own };
  },
  create: (material, { publication, now }) => createFileCa(material.table, material, { publication, now }),
  keyPlace: ({ label, file }) => `the key of CA ${label}, ${file.private_key}`,
};

/** @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem */
export function createFileCa(
  config: LocalCaConfig,
  material: Pick<FileCaMaterial, 'certificates' | 'ocsp' | 'privateKey'>,
  context: LocalCaContext,
): LocalCa {
  const { privateKey, certificates } = material;
  const signer =
    privateKey === undefined
      ? absentSigner(config.label, certificates.certificate)
      : usable(config.label, 'file.private_key', () => new FileSigner(privateKey));
  return createLocalCa(config, material, signer, context);
}

function createDelegate(label: string, { certificates: [certificate], privateKey }: KeyPair): OcspDelegate {
  return usable(label, 'ocsp.private_key', () => ocspDelegate(certificate, new FileSigner(privateKey)));
}

/** For a label that is out of service. @throws EstuaryError 500 `CA_UNUSABLE` */
export const absentSigner = (label: string, certificate: Certificate): AbsentSigner =>
  usable(label, 'certificate', () => new AbsentSigner(label, certificate.publicKey));

function usable<T>(label: string, key: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw failed('CA_UNUSABLE', `ca "${label}": ${key}: ${describe(error)}`);
  }
}
