/** Shared by the commands that perform one EST operation: settings, waiting, output. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ClientError } from '../../../client/client-error.ts';
import { loadClientConfig, readClientConfig } from '../../../client/config/load.ts';
import type { ClientContext, EstOperations } from '../../../client/context.ts';
import { chooseIdentity } from '../../../client/identity.ts';
import { accessOf, CertificateFolder } from '../../../client/keep/certificate-folder.ts';
import { DISK } from '../../../client/keep/disk.ts';
import { send, withServer, type IssuedAnswer, type OneShot, type ReadyRequest } from '../../../client/one-shot.ts';
import type { EnrollmentOperation, ServerKey } from '../../../client/http/est-server.ts';
import type { CaCertificates } from '../../../client/trust/anchors.ts';
import { memoryTrust } from '../../../client/trust/establish.ts';
import { pemOf, type Certificate } from '../../../pki/x509/certificate.ts';
import { formatGeneralName } from '../../../pki/x509/general-name.ts';
import { formatName } from '../../../pki/x509/name.ts';
import { sleep } from '../../../client/keep-up.ts';
import { EXIT, UsageError, type CommandContext, type Values } from '../command.ts';
import { chosen, clientContext, errorJson, NOT_YET, readWait } from './client-context.ts';
import { documentOf, type QUERY, type SettingOptions } from './options.ts';

export type OnceOptions = Values<typeof QUERY> & SettingOptions;

/** @throws UsageError; ConfigError; ClientError */
function openOnce(options: OnceOptions, context: CommandContext): OneShot {
  const client = clientContext(context, true);
  const { config: file, name, url } = options;
  if (file !== undefined) {
    const settings = loadClientConfig(file);
    const [config] = chosen(settings, name);
    if (config === undefined) throw new UsageError('--name is empty');
    return oneShot(config, settings.server, client, new CertificateFolder(config.folder, DISK, accessOf(config)));
  }
  if (url === undefined) throw new UsageError('--url URL or --config FILE is missing');
  // client.toml requires a name, which an operation without a request does not use.
  const named = options.subject === undefined && options.dns === undefined && options.ip === undefined;
  const document = documentOf(named ? { ...options, subject: 'CN=unused' } : options, url, '.');
  const { certificate, server } = readClientConfig(document, 'the options');
  const [config] = certificate;
  if (config === undefined) throw new UsageError('--url URL is missing');
  return oneShot(config, server, client);
}

function oneShot(
  config: OneShot['config'],
  server: OneShot['server'],
  context: ClientContext,
  folder?: CertificateFolder,
): OneShot {
  const { identity } = chooseIdentity(config, folder?.live(), context.now(), context);
  return { config, server, context, identity, store: memoryTrust(folder) };
}

/** Runs one operation and prints what it returns, or its failure. @throws UsageError; ConfigError */
export const printOnce = (
  options: OnceOptions,
  context: CommandContext,
  operate: (shot: OneShot) => Promise<string | Buffer>,
): Promise<number> =>
  reported(options, context, async () => {
    write(await operate(openOnce(options, context)), options, context);
    return EXIT.ok;
  });

/** Runs a command and prints its failure. */
async function reported(
  { json, out, stdout, force }: OnceOptions,
  context: CommandContext,
  work: () => Promise<number>,
): Promise<number> {
  if (out !== undefined && stdout) throw new UsageError('--out and --stdout exclude each other');
  if (out !== undefined && !existsSync(dirname(out))) throw new UsageError(`${dirname(out)} does not exist`);
  if (out !== undefined && existsSync(out) && !force)
    throw new UsageError(`${out} already exists. Pass --force to overwrite it.`);
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    context.err(`error: ${error.message}\n`);
    if (json) context.out(jsonText({ outcome: 'failed', error: errorJson(error) }));
    return EXIT.failed;
  }
}

export const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

function write(content: string | Buffer, { out }: Pick<OnceOptions, 'out'>, context: CommandContext): void {
  if (out === undefined) context.out(content);
  else writeNew(out, content, 0o644);
}

function writeNew(file: string, content: string | Buffer, mode: number): void {
  rmSync(file, { force: true });
  writeFileSync(file, content, { mode, flag: 'wx' });
}

export const certificateJson = (certificate: Certificate): object => ({
  subject: formatName(certificate.subject),
  issuer: formatName(certificate.issuer),
  names: certificate.subjectAltNames.map(formatGeneralName),
  serial: certificate.serialNumber,
  not_before: certificate.notBefore.toISOString(),
  not_after: certificate.notAfter.toISOString(),
  sha256: certificate.fingerprint,
  pem: pemOf([certificate]),
});

interface Enrollment {
  readonly operation: EnrollmentOperation;
  /** Creates the request; retries send it unchanged. */
  readonly request: (server: EstOperations) => Promise<ReadyRequest>;
  readonly open?: (
    key: ServerKey,
    cas: CaCertificates,
    sent: readonly string[],
  ) => Promise<{ readonly pem: string; readonly spki: Buffer }>;
}

/** Gets and prints one certificate; prints a failure. @throws UsageError; ConfigError */
export const enrollOnce = (
  options: OnceOptions & { readonly wait: string | undefined },
  context: CommandContext,
  prepare: (shot: OneShot) => Enrollment | Promise<Enrollment>,
): Promise<number> =>
  reported(options, context, async () => {
    const shot = openOnce(options, context);
    return enrolled(shot, await prepare(shot), options, context);
  });

async function enrolled(
  shot: OneShot,
  { operation, request: make, open }: Enrollment,
  options: OnceOptions & { readonly wait: string | undefined },
  context: CommandContext,
): Promise<number> {
  const deadline = context.now() + readWait(options.wait) * 1000;
  let request: ReadyRequest | undefined;
  const attempt = (): Promise<IssuedAnswer> =>
    withServer(shot, async (server, cas, sent) => {
      request ??= await make(server);
      return send(operation, request, shot, server, cas, open && ((key) => open(key, cas, sent)));
    });
  const answer = await untilAnswered(attempt, shot.context, deadline);
  if (answer.kind === 'issued') {
    writeIssued(answer, options, context);
    return EXIT.ok;
  }
  const { retryAfter } = answer;
  context.err(`The CA accepted the request and has not issued the certificate yet. Try again in ${retryAfter} s.\n`);
  if (options.json) context.out(jsonText({ outcome: 'pending', retry_after: retryAfter }));
  return NOT_YET;
}

/** Seconds before a retry after a temporary failure without Retry-After. */
const RETRY_DELAY = 15;

async function untilAnswered(
  attempt: () => Promise<IssuedAnswer>,
  context: ClientContext,
  deadline: number,
): Promise<IssuedAnswer> {
  const isWaitable = (seconds: number): boolean => context.now() + seconds * 1000 <= deadline;
  for (;;) {
    let seconds: number;
    try {
      const answer = await attempt();
      if (answer.kind === 'issued' || !isWaitable(answer.retryAfter)) return answer;
      seconds = answer.retryAfter;
    } catch (error) {
      seconds = error instanceof ClientError ? (error.retryAfter ?? RETRY_DELAY) : RETRY_DELAY;
      if (!(error instanceof ClientError) || error.kind !== 'later' || !isWaitable(seconds)) throw error;
      context.log('warning', 'client', `${error.message}; next attempt in ${seconds} s`);
    }
    await sleep(seconds * 1000, new AbortController().signal);
  }
}

function writeIssued(
  { certificate, chain, privateKey }: Extract<IssuedAnswer, { kind: 'issued' }>,
  options: OnceOptions,
  context: CommandContext,
): void {
  const { out, der, json } = options;
  const pem = pemOf([certificate]);
  if (json && out === undefined) {
    const shown = { certificate: certificateJson(certificate), chain: chain.map(certificateJson) };
    context.out(jsonText({ outcome: 'issued', ...shown, private_key: privateKey }));
    return;
  }
  if (privateKey !== undefined && out !== undefined) {
    mkdirSync(out, { recursive: true });
    writeNew(`${out}/key.pem`, privateKey, 0o600);
    writeNew(`${out}/cert.pem`, pem, 0o644);
  } else write(der ? certificate.der : `${privateKey ?? ''}${pem}`, options, context);
  if (json) context.out(jsonText({ outcome: 'issued', certificate: certificateJson(certificate) }));
}
