/** `client status`: how the certificates are. */
import { loadClientConfig } from '../../../client/config/load.ts';
import { DISK } from '../../../client/keep/disk.ts';
import { healthOf } from '../../../client/reports.ts';
import { describeStatus, isWell, statusOf } from '../../../client/status.ts';
import { EXIT, type CommandContext } from '../command.ts';

interface StatusOptions {
  readonly config: string;
  readonly json: boolean;
}

/** @throws ConfigError; ClientError */
export function run({ config: file, json }: StatusOptions, context: CommandContext): Promise<number> {
  const config = loadClientConfig(file);
  const now = context.now();
  const all = config.certificate.map((one) => statusOf(one, DISK, now));
  context.out(json ? `${JSON.stringify(healthOf(all, now), null, 2)}\n` : all.map(describeStatus).join(''));
  return Promise.resolve(all.every(isWell) ? EXIT.ok : EXIT.failed);
}
