/** Shared by the `estuary client` commands. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { StepResult } from '../../../client/certificate-agent.ts';
import type { ClientError } from '../../../client/client-error.ts';
import type { CertificateConfig, ClientConfig } from '../../../client/config/schema.ts';
import { type ClientContext, realContext } from '../../../client/context.ts';
import { nearest } from '../../../config/nearest.ts';
import { type CommandContext, UsageError } from '../command.ts';
import { logger } from './run.ts';

export function clientContext(context: CommandContext, attended: boolean): ClientContext {
  return realContext({
    env: context.env,
    now: () => context.now(),
    log: logger(context),
    ask: attended ? terminal() : undefined,
  });
}

/** @param names of `--name`. @throws UsageError */
export function chosen({ certificate }: ClientConfig, names: string | undefined): readonly CertificateConfig[] {
  if (names === undefined) return certificate;
  return names.split(',').map((name) => {
    const found = certificate.find((config) => config.name === name.trim());
    if (found !== undefined) return found;
    const near = nearest(
      name,
      certificate.map((config) => config.name),
    );
    throw new UsageError(`--name: unknown certificate "${name}" (the nearest known one is "${near ?? ''}")`);
  });
}

/** Exit code for a request that awaits approval. */
export const NOT_YET = 3;
const MAX_WAIT = 604_800;

/** @param text of `--wait`. @returns seconds. @throws UsageError */
export function readWait(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d{1,6}$/.test(text) || Number(text) > MAX_WAIT)
    throw new UsageError(`--wait must be a whole number of seconds from 0 to ${MAX_WAIT}`);
  return Number(text);
}

export const errorJson = ({ code, message, status, retryAfter }: ClientError): object => ({
  code,
  message,
  status,
  retry_after: retryAfter,
});

export const resultsJson = (results: readonly StepResult[]): string => {
  const certificates = results.map(({ name, outcome, next, error }) => ({
    name,
    outcome,
    next: new Date(next).toISOString(),
    error: error && errorJson(error),
  }));
  return `${JSON.stringify({ certificates }, null, 2)}\n`;
};

/** Asks on the terminal; secrets are not echoed. */
function terminal(): ((question: string, options: { readonly secret: boolean }) => Promise<string>) | undefined {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  return (question, { secret }) =>
    new Promise((resolve) => {
      stderr.write(question);
      const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
      const lines = createInterface({ input: stdin, output: secret ? silent : stderr, terminal: true });
      lines.once('line', (line) => {
        lines.close();
        if (secret) stderr.write('\n');
        resolve(line.trim());
      });
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    });
}
