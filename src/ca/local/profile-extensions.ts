/** The extensions that a profile adds: policies and fixed ones, the same in every certificate, and copied ones. */
import { encodeCertificatePolicies, type CertificatePolicy } from '../../pki/x509/certificate-policies.ts';
import { encodeExtension, findExtension, type Extension } from '../../pki/x509/extensions.ts';
import { OID } from '../../pki/der/oids.ts';

/** One of `[[ca.profile.extensions]]`: a value, or the request's. */
export interface ProfileExtension {
  /** Dotted OID. */
  readonly oid: string;
  readonly critical: boolean;
  /** DER, in hex. */
  readonly value?: string | undefined;
  readonly from?: 'csr' | undefined;
}

export interface ExtensionProfile {
  readonly policies?: readonly CertificatePolicy[] | undefined;
  readonly extensions?: readonly ProfileExtension[] | undefined;
}

export class ProfileExtensions {
  /** DER Extensions that no request changes. */
  readonly constant: readonly Buffer[];
  /** Those that may stand in a certificate beside the usual ones, by OID: whether each is critical. */
  readonly further: ReadonlyMap<string, boolean>;
  readonly #copied: readonly ProfileExtension[];

  constructor({ policies = [], extensions = [] }: ExtensionProfile) {
    const fixed = extensions.flatMap(({ oid, critical, value }) =>
      value === undefined ? [] : [encodeExtension({ oid, critical, value: Buffer.from(value, 'hex') })],
    );
    const value = policies.length === 0 ? undefined : encodeCertificatePolicies(policies);
    this.constant =
      value === undefined
        ? fixed
        : [encodeExtension({ oid: OID.certificatePolicies, critical: false, value }), ...fixed];
    this.further = new Map(extensions.map(({ oid, critical }) => [oid, critical]));
    this.#copied = extensions.filter(({ from }) => from === 'csr');
  }

  /** DER of those of the request that are copied, critical as the profile says. */
  copied(requested: readonly Extension[]): Buffer[] {
    return this.#copied.flatMap(({ oid, critical }) => {
      const extension = findExtension(requested, oid);
      return extension === undefined ? [] : [encodeExtension({ oid, critical, value: extension.value })];
    });
  }
}
