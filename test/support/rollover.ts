/** Certificates that an operator makes with openssl for the quickstart's CAs: of rollovers (RFC 4210 §4.4), of OCSP responders. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openssl } from './openssl.ts';

const CA = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
const ISSUING = [
  'basicConstraints=critical,CA:TRUE,pathlen:0',
  'keyUsage=critical,keyCertSign,cRLSign,digitalSignature',
];
/** A delegated OCSP responder. */
export const OCSP_SIGNER = [
  'basicConstraints=critical,CA:FALSE',
  'keyUsage=critical,digitalSignature',
  'extendedKeyUsage=OCSPSigning',
  'noCheck=ignored',
];

/**
 * Makes `ca/new-root`, `ca/old-with-new.pem`, `ca/new-with-old.pem`, `ca/new-issuing.pem` (the issuing CA's key, certified
 * by the new root), and its chain: `ca/rollover.pem`, and `ca/links.pem` without the old root.
 *
 * @param dir the quickstart's folder
 * @returns the names of what is in `ca/rollover.pem`, in its order
 */
export function rollRoot(dir: string): string[] {
  const root = '/O=Estuary quickstart/CN=Quickstart Root CA';
  newKey(dir, 'ca/new-root');
  certify(dir, 'ca/new-root', { subject: root, key: 'ca/new-root', extensions: CA });
  certify(dir, 'ca/new-with-old', { subject: root, key: 'ca/new-root', by: 'ca/root', extensions: CA });
  certify(dir, 'ca/old-with-new', { subject: root, key: 'ca/root', by: 'ca/new-root', extensions: CA });
  const issuing = '/O=Estuary quickstart/CN=Quickstart Devices CA';
  certify(dir, 'ca/new-issuing', { subject: issuing, key: 'ca/issuing', by: 'ca/new-root', extensions: ISSUING });
  const chain = ['ca/new-root.pem', 'ca/root.pem', 'ca/old-with-new.pem', 'ca/new-with-old.pem'];
  const write = (file: string, names: readonly string[]): void =>
    writeFileSync(join(dir, file), names.map((name) => readFileSync(join(dir, name), 'latin1')).join(''));
  write('ca/rollover.pem', chain);
  write(
    'ca/links.pem',
    chain.filter((name) => name !== 'ca/root.pem'),
  );
  return chain;
}

/** Makes `NAME.key` and `NAME.pem`: the issuing CA with a new key, certified by the quickstart's root. */
export function rollIssuing(dir: string, name: string): void {
  newKey(dir, name);
  const subject = '/O=Estuary quickstart/CN=Quickstart Devices CA';
  certify(dir, name, { subject, key: name, by: 'ca/root', extensions: ISSUING });
}

/** Makes `NAME.key`. */
export function newKey(dir: string, name: string): void {
  openssl(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', join(dir, `${name}.key`)]);
}

interface Wanted {
  readonly subject: string;
  /** Names of files without their suffix. */
  readonly key: string;
  /** Itself unless told. */
  readonly by?: string;
  readonly extensions: readonly string[];
}

/** Makes `NAME.pem`. */
export function certify(dir: string, name: string, { subject, key, by, extensions }: Wanted): void {
  const at = (file: string): string => join(dir, file);
  const config = at(`${name}.cnf`);
  const lines = ['[req]', 'distinguished_name=dn', 'x509_extensions=ca', '[dn]', '[ca]', ...extensions];
  const identifiers = ['subjectKeyIdentifier=hash', ...(by === undefined ? [] : ['authorityKeyIdentifier=keyid'])];
  writeFileSync(config, [...lines, ...identifiers, ''].join('\n'));
  const signer = by === undefined ? [] : ['-CA', at(`${by}.pem`), '-CAkey', at(`${by}.key`)];
  const files = ['-config', config, '-key', at(`${key}.key`), '-out', at(`${name}.pem`)];
  openssl(['req', '-x509', '-new', '-sha256', '-days', '3650', '-subj', subject, ...files, ...signer]);
}
