/** `client enroll`: a first certificate, by a configuration or by options of which one is made. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'smol-toml';
import type { StepResult } from '../../../client/certificate-agent.ts';
import { stepAll } from '../../../client/client.ts';
import type { ClientConfig } from '../../../client/config/client-config.ts';
import { loadClientConfig, readClientConfig } from '../../../client/config/load.ts';
import { EXIT, UsageError, type CommandContext } from '../command.ts';
import { chosen, clientContext, sleep } from './client-context.ts';

/** As the table of commands has them. */
export interface EnrollOptions {
  readonly config: string | undefined;
  readonly name: string | undefined;
  readonly force: boolean;
  readonly wait: string | undefined;
  readonly url: string | undefined;
  readonly out: string | undefined;
  readonly label: string | undefined;
  readonly 'ca-fingerprint': string | undefined;
  readonly ca: string | undefined;
  readonly 'accept-cmc-ra': boolean;
  readonly subject: string | undefined;
  readonly dns: string | undefined;
  readonly ip: string | undefined;
  readonly 'key-type': string | undefined;
  readonly username: string | undefined;
  readonly 'otp-file': string | undefined;
  readonly 'otp-env': string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly kerberos: boolean;
  readonly 'pkcs11-module': string | undefined;
  readonly token: string | undefined;
  readonly 'pin-file': string | undefined;
  readonly 'pin-env': string | undefined;
  readonly reload: string | undefined;
}

/** Accepted by the CA, where somebody has to approve it. */
const NOT_YET = 3;
const MAX_WAIT = 604_800;

/** @throws UsageError; ConfigError; ClientError */
export async function run(options: EnrollOptions, context: CommandContext): Promise<number> {
  const config =
    options.config === undefined ? fromOptions(options) : loadClientConfig(onlyFile(options, options.config));
  const deadline = context.now() + readWait(options.wait) * 1000;
  const certificates = chosen(config, options.name);
  const client = clientContext(context, true);
  // Only the first attempt is forced: a second one would ask for a second certificate.
  let results = await stepAll(config, certificates, client, { force: options.force ? 'enroll' : undefined });
  for (let next = soonest(results); next !== undefined && next <= deadline; next = soonest(results)) {
    await sleep(Math.max(next - context.now(), 1000), new AbortController().signal);
    results = await stepAll(config, certificates, client);
  }
  if (results.some(({ outcome, error }) => outcome === 'failed' || error !== undefined)) return EXIT.failed;
  if (results.some(({ outcome }) => outcome === 'pending')) return NOT_YET;
  for (const { folder } of certificates) context.out(`${join(folder, 'live')}\n`);
  return EXIT.ok;
}

function soonest(results: readonly StepResult[]): number | undefined {
  const waiting = results.filter(({ outcome }) => outcome === 'pending').map(({ next }) => next);
  return waiting.length === 0 ? undefined : Math.min(...waiting);
}

const WITH_CONFIG: ReadonlySet<string> = new Set(['config', 'name', 'force', 'wait']);

function onlyFile(options: EnrollOptions, file: string): string {
  const other = Object.entries(options).find(
    ([name, given]) => !WITH_CONFIG.has(name) && given !== undefined && given !== false,
  );
  if (other !== undefined) throw new UsageError(`--${other[0]} does not go with --config`);
  return file;
}

/** Writes `client.toml` into the folder, so that `renew` and `run` have it. A second enrolment of the same folder writes it anew. */
function fromOptions(options: EnrollOptions): ClientConfig {
  const { url, out } = options;
  if (url === undefined || out === undefined)
    throw new UsageError('--config FILE, or --url URL and --out DIR are missing');
  const file = join(resolve(out), 'client.toml');
  const document = documentOf(options, url, out);
  const config = readClientConfig(document, file);
  mkdirSync(resolve(out), { recursive: true, mode: 0o755 });
  if (!existsSync(file) || options.force) writeFileSync(file, stringify(document), { mode: 0o644 });
  return config;
}

function documentOf(options: EnrollOptions, url: string, out: string): Record<string, unknown> {
  const path = (file: string | undefined): string | undefined => (file === undefined ? undefined : resolve(file));
  const list = (text: string | undefined): string[] | undefined => text?.split(',').map((one) => one.trim());
  return {
    server: given({
      url,
      trust_anchors: path(options.ca),
      ca_fingerprint: options['ca-fingerprint'],
      accept_cmc_ra: options['accept-cmc-ra'] ? true : undefined,
    }),
    ...(options['pkcs11-module'] === undefined
      ? {}
      : {
          token: given({
            module: path(options['pkcs11-module']),
            label: options.token,
            pin_file: path(options['pin-file']),
            pin_env: options['pin-env'],
          }),
        }),
    certificate: [
      given({
        folder: resolve(out),
        label: options.label,
        subject: options.subject,
        dns_names: list(options.dns),
        ip_addresses: list(options.ip),
        key_type: options['key-type'],
        username: options.username,
        otp_file: path(options['otp-file']),
        otp_env: options['otp-env'],
        certificate: path(options.cert),
        private_key: options.key?.startsWith('pkcs11:') === true ? options.key : path(options.key),
        key_store: options['pkcs11-module'] === undefined ? undefined : 'token',
        kerberos: options.kerberos ? true : undefined,
        reload: options.reload,
      }),
    ],
  };
}

const given = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

function readWait(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d{1,6}$/.test(text) || Number(text) > MAX_WAIT)
    throw new UsageError(`--wait is not a whole number of seconds from 0 to ${MAX_WAIT}`);
  return Number(text);
}
