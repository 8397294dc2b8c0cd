/** `client reenroll`: renews a certificate once (RFC 7030 §4.2.2). */
import { readFileSync } from 'node:fs';
import { ClientError } from '../../../client/client-error.ts';
import { forKey } from '../../../client/enrolment.ts';
import { readCertificates } from '../../../client/identity.ts';
import { requestFrom, requestWith } from '../../../client/one-shot.ts';
import { openPrivateKey, wantedOf } from '../../../client/request/csr.ts';
import { UsageError, type CommandContext, type Values } from '../command.ts';
import { enrollOnce, openOnce, reported } from './once.ts';
import type { REENROLL } from './options.ts';

/** @throws UsageError; ConfigError */
export function run(options: Values<typeof REENROLL>, context: CommandContext): Promise<number> {
  return reported(options, context, async () => {
    const { csr, wait } = options;
    const shot = openOnce(options, context);
    const { config, identity } = shot;
    if (identity === undefined) throw new UsageError('--cert FILE and --key FILE are missing: what to renew');
    const { certificate, privateKey } = identity;
    const [renewed] = readCertificates(certificate, config.certificate ?? 'the certificate');
    if (renewed === undefined) throw new ClientError('local', 'FILES_UNUSABLE', 'there is no certificate to renew');
    return enrollOnce(
      shot,
      {
        operation: 'simplereenroll',
        wait,
        request: async (server) => {
          if (csr !== undefined) return requestFrom(readFileSync(csr), csr);
          const text = typeof privateKey === 'string' ? privateKey : privateKey.uri;
          const token = config.token && shot.context.token(config.token);
          const key = await openPrivateKey(text, config.private_key ?? 'the key', token);
          return requestWith(() => Promise.resolve(key), forKey(wantedOf(config, renewed), key), shot, server);
        },
      },
      options,
      context,
    );
  });
}
