/** `serve`: the server itself. */
import { ConfigError } from '../../config/problem.ts';
import { describe } from '../../errors.ts';
import { notifyReady } from '../service-manager.ts';
import { ServiceSignals } from '../signals.ts';
import { startService, type RunningService } from '../start.ts';
import { run as check } from './check.ts';
import { EXIT, type CommandContext } from './command.ts';
import { loadService } from './load-service.ts';

interface ServeOptions {
  readonly config: string;
  readonly check: boolean;
}

/**
 * Resolves with the exit code when the server is up, or will not be.
 *
 * @throws ConfigError
 */
export async function run(
  { config: configFile, check: checkOnly }: ServeOptions,
  context: CommandContext,
): Promise<number> {
  if (checkOnly) {
    context.signals.release();
    return check({ config: configFile }, context);
  }
  const up = Promise.withResolvers<RunningService>();
  const control = new ServiceSignals(context.signals, up.promise, (error) => {
    if (error !== undefined) context.err(`estuary: ${describe(error)}\n`);
    process.exit(error === undefined ? EXIT.ok : EXIT.failed);
  });
  try {
    const loaded = await loadService(configFile, context);
    // Nothing is open yet.
    if (control.stopping) return EXIT.ok;
    const service = await startService({ ...loaded, configFile });
    up.resolve(service);
    void service.failure.then((reason) => control.fail(reason));
    await notifyReady(process.env, (reason) => context.err(`estuary: the service manager was not told: ${reason}\n`));
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    context.err(`estuary: could not start: ${describe(error)}\n`);
    // The signal may also have ended a child process that the start needs.
    return process.exit(control.stopping ? EXIT.ok : EXIT.failed);
  }
}
