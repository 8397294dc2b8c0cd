/** A CA of the file driver, with a configuration that most tests can do with. */
import { Ca } from '../../src/ca/router.ts';
import type { FileCaTable } from '../../src/ca/local/index.ts';
import { makeCa } from './ca.ts';
import { openFileCa } from './own-ca.ts';

/** A real CA on the file driver, made for the test. */
export async function fileCa(
  folder: { file: (name: string) => string },
  label: string,
  isDefault = false,
): Promise<Ca> {
  const config = newCaConfig(folder, label, isDefault);
  return new Ca(config, await openFileCa(config, { now: Date.now }));
}

/** The configuration of a new CA. */
export function newCaConfig(
  folder: { file: (name: string) => string },
  label: string,
  isDefault: boolean,
): FileCaTable {
  const { certificate, root, privateKey } = makeCa(folder.file, label, { kind: 'ec:P-256' });
  return fileCaConfig(label, isDefault, { certificate, chain: root, key: privateKey });
}

/** @param files paths of PEM files */
export function fileCaConfig(
  label: string,
  isDefault: boolean,
  files: { certificate: string; chain: string; key: string },
): FileCaTable {
  return {
    label,
    default: isDefault,
    driver: 'file',
    approval: 'auto',
    approvals: 1,
    devices: 'off',
    client_issuers: ['own', 'anchors'],
    auth: {},
    certificate: files.certificate,
    chain: files.chain,
    file: { private_key: files.key },
    renewal: { start: 0.67, end: 0.9, retry_after: 21_600, expected: true },
    profile: {
      validity_days: 30,
      max_validity_days: 90,
      key_types: ['ec:P-256'],
      key_usage: ['digitalSignature'],
      extended_key_usage: ['clientAuth'],
      policies: [],
      extensions: [],
      forward_extensions: [],
      subject: { required: [], patterns: {} },
      san: { allowed: ['dns', 'ip', 'email', 'uri'], required: [], wildcards: false, max: 4 },
      allow_subject_change: false,
      renewal_grace_days: 0,
      mtls_subject: 'any',
    },
  };
}
