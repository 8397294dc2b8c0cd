/** `ca init`: creates a CA in a PKCS#11 token or in a file, or a root and an issuing CA in two folders. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { FileCaTable } from '../../ca/local/index.ts';
import { FileSigner } from '../../ca/local/signing.ts';
import { selfSignedRoot, subordinateRequest } from '../../ca/local/new-ca.ts';
import { generateKey } from '../../ca/pkcs11/generate-key.ts';
import { moduleOutput } from '../../ca/pkcs11/module-output.ts';
import { openSigner, type Pkcs11CaTable } from '../../ca/pkcs11/index.ts';
import { tokenAccess } from '../../ca/pkcs11/access.ts';
import { TOKEN_KEY_TYPES } from '../../ca/pkcs11/wire.ts';
import { loadConfigOnly } from '../../config/load.ts';
import { readPrivateKey } from '../../config/material/reader.ts';
import type { Config } from '../../config/schema.ts';
import type { Signer } from '../../ca/driver.ts';
import { codeOf, describe } from '../../errors.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { encodePem } from '../../pki/der/pem.ts';
import { describeCertificate, initTwoTiers, keyTypeOf, newPrivateKey, subjectOf, wholeNumber } from './ca-folder.ts';
import { EXIT, UsageError, type CommandContext, type Values } from './command.ts';
import type { CA_INIT } from './options.ts';

type CaInitOptions = Values<typeof CA_INIT>;

type Order = ReturnType<typeof readOrder>;

/** @throws UsageError; ConfigError; Error of the token or the file system */
export async function run(options: CaInitOptions, context: CommandContext): Promise<number> {
  const { root, issuing, config, ca } = options;
  if ((root ?? issuing) === undefined) {
    await makeCa(readOrder(options), context);
    return EXIT.ok;
  }
  if (root === undefined || issuing === undefined) throw new UsageError('--root DIR and --issuing DIR go together');
  if ((config ?? ca ?? options.csr) !== undefined || options['use-existing-key'])
    throw new UsageError(
      '--root and --issuing create new CAs: --config, --ca, --csr and --use-existing-key do not apply',
    );
  return initTwoTiers({ ...options, root, issuing }, context);
}

function readOrder(options: CaInitOptions) {
  const { config, ca: label, csr } = options;
  if (config === undefined || label === undefined)
    throw new UsageError(
      '--config FILE and --ca LABEL are missing, or --root DIR and --issuing DIR for a new two-tier PKI',
    );
  const foreign = (['root-subject', 'root-days', 'root-passphrase-file', 'path-length'] as const).find(
    (name) => options[name] !== undefined,
  );
  if (foreign !== undefined || options['permitted-dns'].length + options['permitted-ip'].length > 0)
    throw new UsageError(`--${foreign ?? 'permitted-dns, --permitted-ip'} needs --root DIR and --issuing DIR`);
  const keyType = keyTypeOf(options['key-type']);
  const days = wholeNumber('days', options.days, 3650, 1, 36_500);
  if (csr !== undefined && options.days !== undefined)
    throw new UsageError('--days applies to a root: the CA above decides how long a subordinate CA is valid');
  const subject = subjectOf('subject', options.subject ?? `CN=${label} CA`);
  return { config, label, keyType, subject, days, csr, useExistingKey: options['use-existing-key'] };
}

async function makeCa(order: Order, context: CommandContext): Promise<void> {
  // The CA's certificate need not exist yet.
  const { config } = await loadConfigOnly(order.config, context.env);
  const ca = ownCa(config, order.label);
  refuseToOverwrite(order, ca);
  const signer = ca.driver === 'file' ? await fileSigner(order, ca, context) : await tokenSigner(order, ca, context);
  try {
    if (order.csr === undefined) await writeRoot(order, ca, signer, context);
    else await writeRequest(order, order.csr, signer, context);
  } catch (error) {
    if (!order.useExistingKey) context.err('The key exists now. Pass --use-existing-key to continue with it.\n');
    throw error;
  } finally {
    await signer.close?.();
  }
}

/** A CA with a local key. */
type OwnCa = FileCaTable | Pkcs11CaTable;

function ownCa({ ca }: Config, label: string): OwnCa {
  const found = ca.find((table) => table.label === label);
  if (found === undefined) {
    const labels = ca.map((table) => `"${table.label}"`).join(', ');
    throw new UsageError(`the configuration has no CA "${label}" (it has ${labels})`);
  }
  if (found.driver === 'file' || found.driver === 'pkcs11') return found;
  throw new UsageError(
    `the CA "${label}" has driver = "${found.driver}"; ca init creates CAs whose key this server has`,
  );
}

/** Writes the key before signing with it; never overwrites a file. */
async function fileSigner(order: Order, { file, label }: FileCaTable, context: CommandContext): Promise<Signer> {
  if (order.useExistingKey) return new FileSigner(await readPrivateKey(file.private_key));
  const key = await newPrivateKey(order.keyType);
  await writeFile(file.private_key, key.export({ format: 'pem', type: 'pkcs8' }), { flag: 'wx', mode: 0o600 }).catch(
    (error: unknown) => {
      const hint =
        codeOf(error) === 'EEXIST' ? `${file.private_key} already exists (--use-existing-key)` : describe(error);
      throw new Error(`ca "${label}": ${hint}`, { cause: error });
    },
  );
  context.out(`Created a key of the type ${order.keyType}: ${file.private_key}\n`);
  return new FileSigner(key);
}

async function tokenSigner(order: Order, ca: Pkcs11CaTable, context: CommandContext): Promise<Signer> {
  if (!order.useExistingKey) await makeTokenKey(order, ca, context);
  return openSigner(ca, { env: context.env, retryAfter: 1, log: warningsTo(context) });
}

function refuseToOverwrite({ csr, useExistingKey }: Order, { certificate }: OwnCa): void {
  if (csr !== undefined && existsSync(csr)) throw new Error(`${csr} already exists. Move it away first.`);
  // A subordinate is renewed by requesting a new certificate for its existing key; a new key would not match.
  if (existsSync(certificate) && !(csr !== undefined && useExistingKey))
    throw new Error(`${certificate} already exists, so this CA exists. Move the file away to create another one.`);
}

async function makeTokenKey(order: Order, { pkcs11 }: Pkcs11CaTable, context: CommandContext): Promise<void> {
  const { key_label, key_id, ...access } = tokenAccess(pkcs11);
  const type = TOKEN_KEY_TYPES.find((type) => type === order.keyType);
  if (type === undefined)
    throw new UsageError(`--key-type: in a PKCS#11 token, Estuary creates only ${TOKEN_KEY_TYPES.join(', ')} keys`);
  const wanted = { access, reference: { key_label, key_id }, type, label: order.label };
  const printed = moduleOutput(order.label, warningsTo(context));
  const { label, id, leftOut } = await generateKey(wanted, context.env, printed).catch((error: unknown) => {
    const hint = error instanceof IsolatedError && /already has/.test(error.message) ? ' (--use-existing-key)' : '';
    throw new Error(`ca "${order.label}": ${describe(error)}${hint}`, { cause: error });
  });
  context.out(
    `Created a key of the type ${order.keyType} in the token: label "${label}", id ${Buffer.from(id).toString('hex')}\n`,
  );
  if (leftOut.length > 0)
    context.err(`warning: the token refused ${leftOut.join(' and ')}: the key may also decrypt\n`);
}

async function writeRoot(order: Order, ca: OwnCa, signer: Signer, context: CommandContext): Promise<void> {
  const der = await selfSignedRoot(signer, order.subject, order.days, context.now());
  await writeFile(ca.certificate, encodePem('CERTIFICATE', der), { flag: 'wx' });
  describeCertificate(context, `Wrote the self-signed certificate to ${ca.certificate}`, parseCertificate(der));
}

async function writeRequest(order: Order, file: string, signer: Signer, context: CommandContext): Promise<void> {
  const der = await subordinateRequest(signer, order.subject);
  await writeFile(file, encodePem('CERTIFICATE REQUEST', der), { flag: 'wx' });
  context.out(`Wrote the request for ${formatName(order.subject)} to ${file}\n`);
  context.out('Have the parent CA certify it. Write the certificate to the path in `certificate`,\n');
  context.out('and the certificates above it to the path in `chain`.\n');
}

/** Prints warnings for the operator, but not the process's lifecycle. */
function warningsTo(context: CommandContext) {
  return {
    info: () => undefined,
    warn: (_: object, message: string) => context.err(`warning: ${message}\n`),
    error: () => undefined,
  };
}
