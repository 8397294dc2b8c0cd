/** `[serverkeygen]` with its files: what the key identifiers of CSRs may name, and how keys are protected. */
import type { Config } from '../config/schema.ts';
import type { Certificate } from '../pki/x509/certificate.ts';

export interface KeyProtectionSettings {
  readonly encryption: 'optional' | 'password' | 'required';
  /** The pre-shared secret of `password`. */
  readonly password: Buffer | undefined;
  /** AES key-encryption keys by the lower-case hex of their identifier. */
  readonly symmetricKeys: ReadonlyMap<string, Buffer>;
  /** Certificates by the lower-case hex of the identifier. */
  readonly certificates: ReadonlyMap<string, Certificate>;
}

/** @param certificates those of `[[serverkeygen.keys]]`, by the lower-case hex of the identifier */
export function keyProtection(
  { serverkeygen }: Pick<Config, 'serverkeygen'>,
  certificates: ReadonlyMap<string, Certificate>,
): KeyProtectionSettings {
  const { encryption, password, keys } = serverkeygen;
  const symmetricKeys = new Map<string, Buffer>();
  for (const { id, symmetric_key: key } of keys)
    if (key !== undefined) symmetricKeys.set(id.toLowerCase(), key.reveal());
  return { encryption, password: password?.reveal(), symmetricKeys, certificates };
}
