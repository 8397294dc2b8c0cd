/** `client renew`: renews what is due, once. */
import { stepAll } from '../../../client/client.ts';
import { loadClientConfig } from '../../../client/config/load.ts';
import { type CommandContext, EXIT } from '../command.ts';
import { chosen, clientContext, resultsJson } from './client-context.ts';

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
