/** `client enroll --csr` and `--stdout`: one certificate for a request or a key from elsewhere. */
import { readFileSync } from 'node:fs';
import { forKey, givenKey } from '../../../client/enrolment.ts';
import { requestFrom, requestWith } from '../../../client/one-shot.ts';
import { wantedOf } from '../../../client/request/csr.ts';
import { UsageError, type CommandContext, type Values } from '../command.ts';
import { enrollOnce, openOnce, reported } from './once.ts';
import type { ENROLL } from './options.ts';

/** @throws UsageError; ConfigError */
export function run(options: Values<typeof ENROLL>, context: CommandContext): Promise<number> {
  return reported(options, context, async () => {
    const { csr, wait } = options;
    const shot = openOnce(options, context);
    const { config } = shot;
    if (csr === undefined && config.key_file === undefined)
      throw new UsageError('--stdout needs --csr FILE, or --key FILE without --cert: a new key would be lost');
    const key = csr === undefined ? givenKey(config.key_file ?? '', shot.context) : undefined;
    const operation = 'simpleenroll';
    return enrollOnce(
      shot,
      {
        operation,
        wait,
        request: async (server) =>
          key === undefined
            ? requestFrom(readFileSync(csr ?? ''), csr ?? '')
            : requestWith(() => Promise.resolve(key), forKey(wantedOf(config, undefined), key), shot, server),
      },
      options,
      context,
    );
  });
}
