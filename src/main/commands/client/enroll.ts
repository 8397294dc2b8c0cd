/** `client enroll` gets a first certificate, configured by a file or by options. `client renew` renews what is due, once. */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'smol-toml';
import { stepAll, type StepResult } from '../../../client/certificate-agent.ts';
import type { CertificateConfig, ClientConfig } from '../../../client/config/schema.ts';
import { loadClientConfig, readClientConfig } from '../../../client/config/load.ts';
import type { ClientContext } from '../../../client/context.ts';
import { DISK } from '../../../client/keep/disk.ts';
import { PIN_REJECTED, sleep } from '../../../client/keep-up.ts';
import { hasRejectedPin } from '../../../client/token/token.ts';
import { type CommandContext, EXIT, UsageError, type Values } from '../command.ts';
import { chosen, clientContext, NOT_YET, readWait, resultsJson } from './client-context.ts';
import { documentOf, type ENROLL, type RENEW } from './options.ts';

export type EnrollOptions = Values<typeof ENROLL>;

/** @throws UsageError; ConfigError; ClientError */
export async function enroll(options: EnrollOptions, context: CommandContext): Promise<number> {
  if (options.csr !== undefined || options.stdout)
    return (await import('./operations.ts')).enrollFromRequest(options, context);
  const client = clientContext(context, true);
  const made = options.config === undefined ? fromOptions(options) : undefined;
  const config = made?.config ?? loadClientConfig(onlyFile(options, options.config ?? ''));
  const deadline = context.now() + readWait(options.wait) * 1000;
  const certificates = chosen(config, options.name);
  made?.saveBefore(client);
  const results = await untilDone(config, certificates, client, options.force ? 'enroll' : undefined, deadline);
  made?.saveAfter(client, results);
  if (options.json) context.out(resultsJson(results));
  if (results.some(({ outcome, error }) => outcome === 'failed' || error !== undefined)) return EXIT.failed;
  if (results.some(({ outcome }) => outcome === 'pending')) return NOT_YET;
  if (!options.json) for (const { folder } of certificates) context.out(`${join(folder, 'live')}\n`);
  return EXIT.ok;
}

/** Retries what can still succeed: requests that await approval (202), and temporary failures such as 429 and 503. */
async function untilDone(
  config: ClientConfig,
  certificates: readonly CertificateConfig[],
  client: ClientContext,
  force: 'enroll' | undefined,
  deadline: number,
): Promise<readonly StepResult[]> {
  const results = new Map<string, StepResult>();
  for (let open = certificates; ;) {
    for (const result of await stepAll(config, open, client, { force, explicit: true }))
      results.set(result.name, result);
    const waiting = [...results.values()].filter(
      ({ outcome, error }) => outcome === 'pending' || error?.kind === 'later',
    );
    const earliest = Math.min(...waiting.map(({ next }) => next));
    if (earliest > deadline)
      for (const { name, next } of waiting)
        client.log(
          'warning',
          name,
          `this command ends before the next attempt (${new Date(next).toISOString()}): run it again, or use a longer --wait`,
        );
    // Without a waiting one, the earliest is infinity.
    if (earliest > deadline) return [...results.values()];
    await sleep(Math.max(earliest - client.now(), 1000), new AbortController().signal);
    const due = new Set(waiting.filter(({ next }) => next <= client.now()).map(({ name }) => name));
    open = certificates.filter(({ name }) => due.has(name));
  }
}

const WITH_CONFIG: ReadonlySet<string> = new Set(['config', 'name', 'force', 'wait', 'json']);

function onlyFile(options: EnrollOptions, file: string): string {
  const other = Object.entries(options).find(
    ([name, given]) => !WITH_CONFIG.has(name) && given !== undefined && given !== false,
  );
  if (other !== undefined) throw new UsageError(`--${other[0]} and --config exclude each other`);
  return file;
}

/** A configuration made from options, and its `client.toml` for `renew` and `run`. */
interface MadeConfig {
  readonly config: ClientConfig;
  /** Without a certificate, save the latest settings. */
  saveBefore(client: ClientContext): void;
  /** Save settings that obtained a certificate. */
  saveAfter(client: ClientContext, results: readonly StepResult[]): void;
}

function fromOptions(options: EnrollOptions): MadeConfig {
  const { url, out } = options;
  if (url === undefined || out === undefined)
    throw new UsageError('either --config FILE, or --url URL and --out DIR is required');
  const file = join(resolve(out), 'client.toml');
  const document = documentOf(options, url, out);
  const config = readClientConfig(document, file);
  const content = stringify(document);
  const [name, folder] = [config.certificate[0]?.name ?? '', resolve(out)];
  return {
    config,
    saveBefore(client) {
      mkdirSync(folder, { recursive: true, mode: 0o755 });
      if (!existsSync(join(folder, 'live'))) save(file, content, client, name);
    },
    saveAfter(client, results) {
      if (results.some(({ outcome }) => outcome === 'changed' || outcome === 'pending'))
        save(file, content, client, name);
      else if (DISK.read(file) !== content)
        client.log(
          'warning',
          name,
          `${file} keeps its settings, which differ from the options. Run with --force to use the options.`,
        );
    },
  };
}

function save(file: string, content: string, client: ClientContext, name: string): void {
  const former = DISK.read(file);
  if (former === content) return;
  const [old, fresh] = [`${file}.old`, `${file}.new`];
  DISK.remove(fresh);
  DISK.write(fresh, content, { mode: modeOf(content) });
  if (former !== undefined) {
    DISK.remove(old);
    DISK.write(old, former, { mode: modeOf(former) });
    client.log('info', name, `wrote the new settings to ${file}, and the former ones to ${old}`);
  }
  DISK.rename(fresh, file);
}

/** A proxy URL may contain a password. */
const modeOf = (content: string): number => (/^proxy = .*@/m.test(content) ? 0o600 : 0o644);

/** @throws UsageError; ConfigError; ClientError */
export async function renew(
  { config: file, name, force, json }: Values<typeof RENEW>,
  context: CommandContext,
): Promise<number> {
  const config = loadClientConfig(file);
  const options = { force: force ? 'renew' : undefined } as const;
  const results = await stepAll(config, chosen(config, name), clientContext(context, false), options);
  if (json) context.out(resultsJson(results));
  // Only a process that the daemon started has a channel to it.
  if (hasRejectedPin()) process.send?.(PIN_REJECTED);
  return results.some(({ outcome, error }) => outcome === 'failed' || error !== undefined) ? EXIT.failed : EXIT.ok;
}
