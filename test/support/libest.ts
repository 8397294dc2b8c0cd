/** libest's `estserver` (Debian's libest-utils, see scripts/fetch-estclient), on the PKI of a fleet: another server to compare with. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, freePort } from './ports.ts';
import { ROOT } from './root.ts';
import { until } from './until.ts';

const PLACE = join(ROOT, '.cache', 'libest');

export const hasLibest = (): boolean => existsSync(join(PLACE, 'usr', 'bin', 'estserver'));

/** It signs as `openssl ca` does, with files for its database. */
const configuration = (folder: string): string => `
[ca]
default_ca = issuing
[issuing]
database = ${folder}/libest/index.txt
serial = ${folder}/libest/serial
new_certs_dir = ${folder}/libest/new
certificate = ${folder}/ca/issuing.pem
private_key = ${folder}/ca/issuing.key
default_md = sha256
default_days = 397
unique_subject = no
policy = any
x509_extensions = leaf
copy_extensions = copy
email_in_dn = no
[any]
commonName = supplied
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`;

/** @param folder of the fleet @param options of estserver @returns once it listens */
export async function startLibest(
  folder: string,
  options: readonly string[] = [],
): Promise<{ readonly port: number; readonly process: ChildProcess }> {
  const own = join(folder, 'libest');
  mkdirSync(join(own, 'new'), { recursive: true });
  writeFileSync(join(own, 'index.txt'), '');
  writeFileSync(join(own, 'serial'), '1000\n');
  writeFileSync(join(own, 'ca.cnf'), configuration(folder));
  const anchors = join(own, 'cacerts.pem');
  writeFileSync(anchors, ['issuing', 'root'].map((name) => readFileSync(join(folder, 'ca', `${name}.pem`))).join(''));
  const [loader = '', ...rest] = program();
  const port = await freePort();
  const pair = ['-c', join(folder, 'tls', 'server.pem'), '-k', join(folder, 'tls', 'server.key')];
  const child = spawn(loader, [...rest, ...pair, '-r', 'estrealm', '-n', ...options, '-p', String(port)], {
    cwd: own,
    stdio: 'ignore',
    env: {
      ...process.env,
      EST_TRUSTED_CERTS: anchors,
      EST_CACERTS_RESP: anchors,
      EST_OPENSSL_CACONFIG: join(own, 'ca.cnf'),
    },
  });
  await until('estserver listens', () => {
    if (child.exitCode !== null) throw new Error('estserver does not listen');
    return accepts(port);
  });
  return { port, process: child };
}

/** As the wrapper of `estclient` starts its program: with the loader and the libraries that it was built for. */
function program(): string[] {
  const find = (name: string): string =>
    execFileSync('find', [join(PLACE, 'usr', 'lib'), '-name', name, '-print', '-quit'], { encoding: 'utf8' }).trim();
  const loader = find('ld-linux*.so.*');
  return [loader, '--library-path', join(loader, '..'), join(PLACE, 'usr', 'bin', 'estserver')];
}
