/**
 * CAs in folders for a two-tier PKI: `ca init --root DIR --issuing DIR`, `ca sign` and `ca renew`. Each folder has one
 * CA: NAME.key (0600), NAME.pem and, for a subordinate CA, chain.pem with the certificates above it, root last.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FileSigner } from '../../ca/local/signing.ts';
import { caCertificate, type NewCa } from '../../ca/local/new-ca.ts';
import { isKeyOf, readCertificates, readPrivateKey } from '../../config/material/reader.ts';
import { Secret } from '../../config/secret.ts';
import { describe } from '../../errors.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { OID } from '../../pki/der/oids.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseCsr, verifyCsr } from '../../pki/pkcs10/csr.ts';
import { parseCertificate, pemOf, verifyCertificateSignature, type Certificate } from '../../pki/x509/certificate.ts';
import { findExtension } from '../../pki/x509/extensions.ts';
import { canGenerateKey, GENERATED_KEY_TYPES, newKeyPair } from '../../pki/x509/key-pair.ts';
import { encodeNameConstraints } from '../../pki/x509/name-constraints.ts';
import { formatName, parseDistinguishedName, type Name } from '../../pki/x509/name.ts';
import { CommandError, EXIT, UsageError, type CommandContext, type Values } from './command.ts';
import type { CA_INIT, CA_RENEW, CA_SIGN, SUBORDINATE } from './options.ts';

interface CaFolder {
  readonly name: string;
  readonly certificate: Certificate;
  /** The certificates above it, root last. */
  readonly chain: readonly Certificate[];
  readonly key: KeyObject;
}

const ISSUING_DAYS = 1825;
const ROOT_DAYS = 7300;

/** An integer within bounds. @throws UsageError that names the option */
export function wholeNumber(
  option: string,
  text: string | undefined,
  usual: number,
  least: number,
  most: number,
): number {
  const number = text === undefined ? usual : /^\d+$/.test(text) ? Number(text) : NaN;
  if (number >= least && number <= most) return number;
  throw new UsageError(`--${option} "${text ?? ''}" must be a whole number from ${least} to ${most}`);
}

export function subjectOf(option: string, text: string): Name {
  try {
    const name = parseDistinguishedName(text);
    if (name.rdns.length > 0) return name;
  } catch (error) {
    throw new UsageError(`--${option}: ${describe(error)}`);
  }
  throw new UsageError(`--${option} is empty`);
}

export function keyTypeOf(text: string | undefined): string {
  const keyType = text ?? 'ec:P-256';
  if (canGenerateKey(keyType)) return keyType;
  throw new UsageError(`--key-type "${keyType}" is unknown (${GENERATED_KEY_TYPES.join(', ')})`);
}

function subordinate(
  options: Pick<Values<typeof CA_SIGN>, 'days' | keyof typeof SUBORDINATE>,
): Pick<NewCa, 'days' | 'pathLength' | 'nameConstraints'> {
  const { 'permitted-dns': dns, 'permitted-ip': ip } = options;
  let nameConstraints: Buffer | undefined;
  try {
    if (dns.length + ip.length > 0) nameConstraints = encodeNameConstraints({ dns, ip });
  } catch (error) {
    if (error instanceof InputError) throw new UsageError(`--permitted-dns, --permitted-ip: ${error.message}`);
    throw error;
  }
  return {
    days: wholeNumber('days', options.days, ISSUING_DAYS, 1, 36_500),
    pathLength: wholeNumber('path-length', options['path-length'], 0, 0, 16),
    nameConstraints,
  };
}

type ForOneCa = 'config' | 'ca' | 'csr' | 'use-existing-key' | 'root' | 'issuing';
export type TwoTierOptions = Omit<Values<typeof CA_INIT>, ForOneCa> & Readonly<Record<'root' | 'issuing', string>>;

/** Creates a root and an issuing CA. @throws UsageError; CommandError */
export async function initTwoTiers(options: TwoTierOptions, context: CommandContext): Promise<number> {
  const below = subordinate(options);
  const keyType = keyTypeOf(options['key-type']);
  const subject = subjectOf('subject', options.subject ?? 'CN=Issuing CA');
  const rootSubject = subjectOf('root-subject', options['root-subject'] ?? 'CN=Root CA');
  const rootDays = wholeNumber('root-days', options['root-days'], ROOT_DAYS, 1, 36_500);
  if (subject.der.equals(rootSubject.der)) throw new UsageError('--subject and --root-subject must differ');
  const files = [
    ...['root.key', 'root.pem'].map((file) => join(options.root, file)),
    ...['issuing.key', 'issuing.pem', 'chain.pem'].map((file) => join(options.issuing, file)),
  ];
  const existing = files.find((file) => existsSync(file));
  if (existing !== undefined)
    throw new CommandError(`${existing} already exists. Move it away, or name another folder.`);
  const passphrase = await passphraseIn('root-passphrase-file', options['root-passphrase-file']);
  for (const folder of [options.root, options.issuing]) await mkdir(folder, { recursive: true, mode: 0o700 });

  const now = context.now();
  const root = await newKey(join(options.root, 'root.key'), keyType, passphrase);
  const anyCa = { pathLength: undefined, nameConstraints: undefined };
  const rootCa = { subject: rootSubject, spki: root.spki, days: rootDays, now, ...anyCa };
  const rootCertificate = parseCertificate(await caCertificate(root, undefined, rootCa));
  const issuing = await newKey(join(options.issuing, 'issuing.key'), keyType);
  const issuingCa = { subject, spki: issuing.spki, now, ...below };
  const certificate = await certify({ certificate: rootCertificate, signer: root }, issuingCa);
  const [rootFile, issuingFile] = [join(options.root, 'root.pem'), join(options.issuing, 'issuing.pem')];
  await writeNew(rootFile, pemOf([rootCertificate]));
  await writeNew(issuingFile, pemOf([certificate]));
  await writeNew(join(options.issuing, 'chain.pem'), pemOf([rootCertificate]));
  describeCertificate(context, `Created the root CA: ${rootFile}, root.key`, rootCertificate);
  describeCertificate(context, `Created the issuing CA: ${issuingFile}, issuing.key`, certificate);
  context.out(`Take ${join(options.root, 'root.key')} offline: the server never needs it.\n`);
  return EXIT.ok;
}

/** `ca sign`: signs an issuing CA's CSR with the key of a CA in a folder. */
export async function sign(options: Values<typeof CA_SIGN>, context: CommandContext): Promise<number> {
  const below = subordinate(options);
  if (existsSync(options.out)) throw new CommandError(`${options.out} already exists. Move it away first.`);
  const issuer = await readFolder('issuer', options.issuer, options['issuer-passphrase-file']);
  const csr = await readRequest(options.csr);
  if (csr.subject.rdns.length === 0) throw new CommandError(`${options.csr}: the subject of a CA must not be empty`);
  const ca = { subject: csr.subject, spki: csr.publicKey.spki, now: context.now(), ...below };
  const certificate = await certify({ ...issuer, signer: new FileSigner(issuer.key) }, ca);
  await writeNew(options.out, pemOf([certificate]));
  describeCertificate(context, `Signed a CA certificate: ${options.out}`, certificate);
  return EXIT.ok;
}

/**
 * `ca renew`: a new certificate for a CA in a folder, with the same name, path length and constraints. Keeps the old
 * files.
 */
export async function renew(options: Values<typeof CA_RENEW>, context: CommandContext): Promise<number> {
  const days = wholeNumber('days', options.days, ISSUING_DAYS, 1, 36_500);
  const issuer = await readFolder('issuer', options.issuer, options['issuer-passphrase-file']);
  const { name, certificate: former, key } = await readFolder('ca', options.ca);
  if (former.subject.der.equals(former.issuer.der))
    throw new CommandError(`${join(options.ca, `${name}.pem`)} is self-signed. Create a new root with "ca init".`);
  const file = (ending: string): string => join(options.ca, `${name}.${ending}`);
  const kept = (ending: string): string => file(`${former.serialNumber}.${ending}`);
  const signer = options['new-key']
    ? await newKey(file('key.new'), keyTypeOf(former.publicKey.keyType))
    : new FileSigner(key);
  const certificate = await certify(
    { ...issuer, signer: new FileSigner(issuer.key) },
    {
      subject: former.subject,
      spki: signer.spki,
      days,
      now: context.now(),
      pathLength: former.pathLength,
      nameConstraints: findExtension(former.extensions, OID.nameConstraints)?.value,
    },
  );
  // Each rename is atomic, so after a crash every file still has one of its names.
  await writeFile(file('pem.new'), pemOf([certificate]), { mode: 0o644 });
  await writeFile(join(options.ca, 'chain.pem'), pemOf([issuer.certificate, ...issuer.chain]));
  await rename(file('pem'), kept('pem'));
  if (options['new-key']) {
    await rename(file('key'), kept('key'));
    await rename(file('key.new'), file('key'));
  }
  await rename(file('pem.new'), file('pem'));
  describeCertificate(context, `Renewed ${file('pem')}`, certificate);
  context.out(`The former certificate is ${kept('pem')}. Add it to renewal_issuers if the key is new.\n`);
  return EXIT.ok;
}

/** @throws CommandError if the issuer may not sign this CA */
async function certify(
  issuer: { readonly certificate: Certificate; readonly signer: FileSigner },
  ca: NewCa,
): Promise<Certificate> {
  const above = issuer.certificate;
  const name = formatName(above.subject);
  if (!above.isCa) throw new CommandError(`The certificate of the issuer ${name} is not a CA certificate.`);
  if (above.notAfter.getTime() <= ca.now)
    throw new CommandError(`The certificate of the issuer ${name} expired at ${above.notAfter.toISOString()}.`);
  const { pathLength } = above;
  if (pathLength !== undefined && (ca.pathLength === undefined || ca.pathLength >= pathLength))
    throw new CommandError(
      pathLength === 0
        ? `The issuer ${name} has the path length 0, so it cannot sign CA certificates.`
        : `The issuer ${name} has the path length ${pathLength}. Pass --path-length ${pathLength - 1} or less.`,
    );
  if (ca.subject.der.equals(above.subject.der))
    throw new CommandError(`The CA has the same subject as its issuer, ${name}. Choose another one.`);
  const certificate = parseCertificate(await caCertificate(issuer.signer, above, ca));
  if (!(await verifyCertificateSignature(certificate, above)))
    throw new CommandError(`The private key of ${name} does not belong to its certificate.`);
  return certificate;
}

/** A line of a file. @throws CommandError */
async function passphraseIn(option: string, file: string | undefined): Promise<Secret | undefined> {
  if (file === undefined) return undefined;
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CommandError(`--${option}: cannot read ${file}: ${describe(error)}`);
  });
  const line = text.replace(/\r?\n$/, '');
  if (line === '') throw new CommandError(`--${option}: ${file} is empty`);
  return new Secret(Buffer.from(line));
}

async function readFolder(option: string, folder: string, passphraseFile?: string): Promise<CaFolder> {
  const entries = await readdir(folder).catch((error: unknown) => {
    throw new CommandError(`--${option}: cannot read ${folder}: ${describe(error)}`);
  });
  // Names of old keys contain their certificate's serial number.
  const names = entries.filter((entry) => /^[^.]+\.key$/.test(entry)).map((entry) => entry.slice(0, -'.key'.length));
  const [name, ...others] = names;
  if (name === undefined || others.length > 0)
    throw new CommandError(`--${option}: ${folder} must contain one file NAME.key and its certificate NAME.pem`);
  const from = `${option}-passphrase-file`;
  const password = await passphraseIn(from, passphraseFile);
  const key = await readPrivateKey(join(folder, `${name}.key`), { password, from: `--${from}` });
  const [certificate] = await readCertificates(join(folder, `${name}.pem`));
  if (!isKeyOf(key, certificate))
    throw new CommandError(`--${option}: ${join(folder, `${name}.key`)} does not belong to ${name}.pem`);
  const above = join(folder, 'chain.pem');
  return { name, key, certificate, chain: existsSync(above) ? await readCertificates(above) : [] };
}

async function readRequest(file: string) {
  const text = await readFile(file).catch((error: unknown) => {
    throw new CommandError(`--csr: cannot read ${file}: ${describe(error)}`);
  });
  const block = parsePem(text.toString('latin1')).find(({ label }) => /^(NEW )?CERTIFICATE REQUEST$/.test(label));
  return verifyCsr(parseCsr(block?.der ?? text));
}

export async function newPrivateKey(keyType: string): Promise<KeyObject> {
  const { privateKey: der } = await newKeyPair(keyType);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return key;
}

/** Creates a key file (0600). @param passphrase encrypts it */
async function newKey(file: string, keyType: string, passphrase?: Secret): Promise<FileSigner> {
  const key = await newPrivateKey(keyType);
  const encrypted = passphrase && { cipher: 'aes-256-cbc', passphrase: passphrase.reveal() };
  await writeNew(file, key.export({ format: 'pem', type: 'pkcs8', ...encrypted }), 0o600);
  return new FileSigner(key);
}

async function writeNew(file: string, text: string | Buffer, mode = 0o644): Promise<void> {
  await writeFile(file, text, { flag: 'wx', mode }).catch((error: unknown) => {
    throw new CommandError(`Cannot write ${file}: ${describe(error)}`);
  });
}

export function describeCertificate(context: CommandContext, headline: string, certificate: Certificate): void {
  const { subject, publicKey, notAfter, fingerprint } = certificate;
  context.out(`${headline}\n`);
  context.out(`  subject      ${formatName(subject)}\n`);
  context.out(`  key          ${publicKey.keyType}\n`);
  context.out(`  valid until  ${notAfter.toISOString()}\n`);
  context.out(`  SHA-256      ${fingerprint}\n`);
}
