/** `client status`: the state of the certificates. Loads neither HTTP nor TLS, for a fast start. */
import { loadClientConfig } from '../../../client/config/load.ts';
import { DISK } from '../../../client/keep/disk.ts';
import { describeStatus, healthOf, isWell, statusOf } from '../../../client/status.ts';
import { type CommandContext, EXIT } from '../command.ts';

interface StatusOptions {
  readonly config: string;
  readonly json: boolean;
}

export function status({ config: file, json }: StatusOptions, context: CommandContext): Promise<number> {
  const config = loadClientConfig(file);
  const now = context.now();
  const all = config.certificate.map((one) => statusOf(one, DISK, now));
  context.out(json ? `${JSON.stringify(healthOf(all, now), null, 2)}\n` : all.map(describeStatus).join(''));
  return Promise.resolve(all.every(isWell) ? EXIT.ok : EXIT.failed);
}
