/** Certificate authorities for tests, made by the openssl command: a root, and issuing CAs of every key kind below it. */
import { writeFileSync } from 'node:fs';

import { keyPair, pkcs8Pem, type KeyKind } from './keys.ts';
import { openssl } from './openssl.ts';

export const CA_KINDS = [
  'rsa:2048',
  'ec:P-256',
  'ec:P-384',
  'ec:P-521',
  'ed25519',
] as const satisfies readonly KeyKind[];
export type CaKind = (typeof CA_KINDS)[number];

/** The digest that goes with a key, where it is not SHA-256. */
const DIGESTS: Readonly<Partial<Record<CaKind, string>>> = { 'ec:P-384': '-sha384', 'ec:P-521': '-sha512' };

export interface TestCa {
  /** Paths of PEM files. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly root: string;
}

export interface TestCaOptions {
  readonly kind: CaKind;
  readonly subject?: string;
  readonly days?: number;
  /** Further lines of the openssl extension section. */
  readonly extensions?: readonly string[];
}

/** An issuing CA below a root of the same key kind, as files in `file(name)`. */
export function makeCa(file: (name: string) => string, name: string, options: TestCaOptions): TestCa {
  const { kind, subject = `/O=Estuary/CN=${name}`, days = 3650, extensions = [] } = options;
  const digest = kind === 'ed25519' ? [] : [DIGESTS[kind] ?? '-sha256'];
  const path = (suffix: string): string => file(`${name}-${suffix}`.replaceAll(':', '-'));
  const write = (suffix: string, text: string): string => {
    writeFileSync(path(suffix), text, { mode: 0o600 });
    return path(suffix);
  };
  const rootKey = write('root.key', pkcs8Pem(keyPair(kind, 'root')));
  const privateKey = write('ca.key', pkcs8Pem(keyPair(kind, 'ca')));
  const config = write(
    'ca.cnf',
    [
      '[req]\ndistinguished_name=dn\n[dn]\n[root]',
      'basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash',
      '[ca]\nbasicConstraints=critical,CA:true,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign',
      'subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid',
      ...extensions,
      '',
    ].join('\n'),
  );
  const x509 = (args: readonly string[]): void => {
    openssl(['req', '-x509', '-new', '-config', config, '-utf8', ...digest, ...args]);
  };
  const root = path('root.pem');
  const certificate = path('ca.pem');
  x509(['-key', rootKey, '-subj', `/CN=${name} root`, '-days', '3650', '-extensions', 'root', '-out', root]);
  x509(
    ['-key', privateKey, '-subj', subject, '-days', String(days), '-extensions', 'ca'].concat([
      '-CA',
      root,
      '-CAkey',
      rootKey,
      '-out',
      certificate,
    ]),
  );
  return { certificate, privateKey, root };
}
