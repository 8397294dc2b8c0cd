/** `client run`, the daemon, and `client status`. They load neither HTTP nor TLS, for a fast start. */
import { spawn } from 'node:child_process';
import { isSea } from 'node:sea';
import type { ClientConfig } from '../../../client/config/schema.ts';
import { loadClientConfig } from '../../../client/config/load.ts';
import { HOOKS } from '../../../client/hooks.ts';
import { type DaemonContext, keepUp, type StepElsewhere } from '../../../client/keep-up.ts';
import { DISK } from '../../../client/keep/disk.ts';
import { describe } from '../../../errors.ts';
import { type CommandContext, EXIT, type Values } from '../command.ts';
import type { ClientContext } from '../../../client/context.ts';
import type { RUN, STATUS } from './options.ts';
import { describeStatus, healthOf, isWell, statusOf } from '../../../client/status.ts';

/** Runs until SIGTERM or SIGINT; SIGHUP reloads the configuration. @throws ConfigError; ClientError */
export async function keepRenewed({ config: file }: Values<typeof RUN>, context: CommandContext): Promise<number> {
  let config = loadClientConfig(file);
  const ends = new AbortController();
  let pause = new AbortController();
  context.signals.pass((signal) => {
    if (signal !== 'SIGHUP') ends.abort();
    pause.abort();
  });
  const client: DaemonContext = { disk: DISK, env: context.env, now: () => context.now(), log: logger(context) };
  const ended = (): boolean => ends.signal.aborted;
  while (!ended()) {
    await keepUp(config, client, renewElsewhere(file), pause.signal);
    pause = new AbortController();
    if (!ended()) config = again(file, config, client);
  }
  return EXIT.ok;
}

/** An invalid configuration leaves the old one in force. */
function again(file: string, former: ClientConfig, client: DaemonContext): ClientConfig {
  try {
    const config = loadClientConfig(file);
    client.log('info', 'client', 'reloaded the configuration');
    return config;
  } catch (error) {
    client.log('error', 'client', describe(error));
    return former;
  }
}

/** Milliseconds that a token and a server take at most together. */
const LONGEST_STEP = 900_000;

/** Runs `client renew` for one certificate in a child process. If it is killed, the next run continues. */
const renewElsewhere =
  (file: string): StepElsewhere =>
  ({ name, hook_timeout: hook }, stop) =>
    new Promise((resolve) => {
      const program = isSea() ? [] : [...process.execArgv, process.argv[1] ?? ''];
      const child = spawn(process.execPath, [...program, 'client', 'renew', '--config', file, '--name', name], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        timeout: LONGEST_STEP + HOOKS.length * hook * 1000,
        killSignal: 'SIGKILL',
        signal: stop,
      });
      let report: unknown;
      child.once('message', (message) => (report = message));
      child.once('error', () => undefined);
      child.once('close', () => resolve(report));
    });

export const logger =
  (context: Pick<CommandContext, 'err'>): ClientContext['log'] =>
  (level, certificate, message) =>
    context.err(`${level === 'info' ? '' : `${level}: `}${certificate}: ${message}\n`);

export function status({ config: file, json }: Values<typeof STATUS>, context: CommandContext): Promise<number> {
  const config = loadClientConfig(file);
  const now = context.now();
  const all = config.certificate.map((certificate) => statusOf(certificate, DISK, now));
  context.out(json ? `${JSON.stringify(healthOf(all, now), null, 2)}\n` : all.map(describeStatus).join(''));
  return Promise.resolve(all.every(isWell) ? EXIT.ok : EXIT.failed);
}
