/** `client run` (the daemon) and `client renew`: keep the configured certificates valid. */
import { spawn } from 'node:child_process';
import { isSea } from 'node:sea';
import { keepUp, stepAll, type StepElsewhere } from '../../../client/client.ts';
import type { ClientConfig } from '../../../client/config/client-config.ts';
import { loadClientConfig } from '../../../client/config/load.ts';
import type { ClientContext } from '../../../client/context.ts';
import { describe } from '../../../errors.ts';
import { type CommandContext, EXIT } from '../command.ts';
import { chosen, clientContext, resultsJson, sleep } from './client-context.ts';

/** Runs until SIGTERM or SIGINT; SIGHUP reloads the configuration. @throws ConfigError; ClientError */
export async function keepRenewed(
  { config: file }: { readonly config: string },
  context: CommandContext,
): Promise<number> {
  let config = loadClientConfig(file);
  const ends = new AbortController();
  let pause = new AbortController();
  context.signals.pass((signal) => {
    if (signal !== 'SIGHUP') ends.abort();
    pause.abort();
  });
  const client = clientContext(context, false);
  const ended = (): boolean => ends.signal.aborted;
  while (!ended()) {
    await keepUp(config, client, renewElsewhere(file), sleep, pause.signal);
    pause = new AbortController();
    if (!ended()) config = again(file, config, client);
  }
  return EXIT.ok;
}

/** An invalid configuration leaves the old one in force. */
function again(file: string, former: ClientConfig, client: ClientContext): ClientConfig {
  try {
    const config = loadClientConfig(file);
    client.log('info', 'client', 'has read its configuration again');
    return config;
  } catch (error) {
    client.log('error', 'client', describe(error));
    return former;
  }
}

/** Milliseconds; more than a token and a server take together. */
const LONGEST_STEP = 900_000;

/** Runs `client renew` for one certificate in a child process. If it is killed, the next run continues. */
const renewElsewhere =
  (file: string): StepElsewhere =>
  (name, stop) =>
    new Promise((resolve) => {
      const program = isSea() ? [] : [...process.execArgv, process.argv[1] ?? ''];
      const child = spawn(process.execPath, [...program, 'client', 'renew', '--config', file, '--name', name], {
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: LONGEST_STEP,
        killSignal: 'SIGKILL',
        signal: stop,
      });
      child.once('error', () => undefined);
      child.once('close', () => resolve());
    });

interface RenewOptions {
  readonly config: string;
  readonly name: string | undefined;
  readonly force: boolean;
  readonly json: boolean;
}

/** @throws UsageError; ConfigError; ClientError */
export async function renew(
  { config: file, name, force, json }: RenewOptions,
  context: CommandContext,
): Promise<number> {
  const config = loadClientConfig(file);
  const options = { force: force ? 'renew' : undefined } as const;
  const results = await stepAll(config, chosen(config, name), clientContext(context, false), options);
  if (json) context.out(resultsJson(results));
  return results.some(({ outcome, error }) => outcome === 'failed' || error !== undefined) ? EXIT.failed : EXIT.ok;
}
