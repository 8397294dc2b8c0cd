/** Programs that run before an attempt, after a change, after an attempt and after a failure. */
import { join } from 'node:path';
import { ClientError } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import { SYSTEM } from './system.ts';

export const HOOKS = ['before', 'deploy', 'after', 'failure'] as const;
export type HookKind = (typeof HOOKS)[number];

/**
 * Runs the programs in the folder of hooks, in the order of their names, then the configured command line. A failed
 * `before` ends it; otherwise every hook runs.
 * @throws ClientError `HOOK_FAILED`: the first failure
 */
export async function runHooks(
  kind: HookKind,
  config: CertificateConfig,
  context: ClientContext,
  values: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const folder = join(config.hooks, kind);
  const own = kind === 'deploy' ? config.reload : config[kind];
  const commands = [
    ...context.disk.programs(folder).map((name) => SYSTEM.quote(join(folder, name))),
    ...(own === undefined ? [] : [own]),
  ];
  const environment = { ...environmentOf(config, context), ...values, ESTUARY_HOOK: kind };
  const failures: ClientError[] = [];
  for (const command of commands)
    try {
      const line = (text: string): void => context.log('info', config.name, `${kind}: ${text}`);
      await context.runHook(command, environment, config.hook_timeout * 1000, line);
    } catch (error) {
      if (kind === 'before' || !(error instanceof ClientError)) throw error;
      failures.push(error);
    }
  const [failure] = failures;
  if (failure !== undefined) throw failure;
}

/** Without the password and the PIN. */
function environmentOf(config: CertificateConfig, { env }: ClientContext): Record<string, string | undefined> {
  const secret = [config.otp_env, config.token?.pin_env];
  const folder = join(config.folder, 'live');
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !secret.includes(name))),
    ESTUARY_CERTIFICATE: config.name,
    ESTUARY_FOLDER: folder,
  };
}
