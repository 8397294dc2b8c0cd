import type { Config } from '../schema.ts';
import type { Finding } from './finding.ts';

/** The checks on `[retention]`. */
export function* retentionChecks({ retention, audit, ca }: Config): Generator<Finding> {
  if (retention.audit > 0 && audit.archive === undefined)
    yield {
      key: 'audit.archive',
      message:
        'is missing, and retention.audit is given (the folder where audit records go before they leave the store)',
      about: ['retention.audit'],
    };
  if (retention.certificates === 0) return;
  for (const [index, { profile }] of ca.entries())
    if (retention.certificates < profile.renewal_grace_days)
      yield {
        key: 'retention.certificates',
        message: `${retention.certificates} is less than ca[${index}].profile.renewal_grace_days: a certificate would be forgotten while it may be renewed (0, or at least ${profile.renewal_grace_days})`,
        about: [`ca[${index}].profile.renewal_grace_days`],
      };
}
