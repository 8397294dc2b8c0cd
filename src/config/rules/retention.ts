import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';
import type { Finding } from './finding.ts';

/** The checks on `[retention]` and `[audit]`. */
export function* retentionChecks(config: Config): Generator<Finding> {
  const { retention, audit } = config;
  if (retention.audit > 0 && audit.archive === undefined)
    yield {
      key: 'audit.archive',
      message:
        'is missing, and retention.audit is given (the folder where audit records go before they leave the store)',
      about: ['retention.audit'],
    };
  if (audit.checkpoint_interval > 0 && audit.checkpoint_key === undefined)
    yield {
      key: 'audit.checkpoint_key',
      message: 'is missing, and audit.checkpoint_interval is given (a PEM file with a private key)',
      about: ['audit.checkpoint_interval'],
    };
  if (retention.certificates === 0) return;
  for (const {
    key,
    table: { profile },
  } of labelsOf(config))
    if (retention.certificates < profile.renewal_grace_days)
      yield {
        key: 'retention.certificates',
        message: `${retention.certificates} is less than ${key}.profile.renewal_grace_days: a certificate would be forgotten while it may be renewed (0, or at least ${profile.renewal_grace_days})`,
        about: [`${key}.profile.renewal_grace_days`],
      };
}
