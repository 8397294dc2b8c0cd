import { duplicateExtension } from '../../../pki/x509/extensions.ts';
import { oidName } from '../../../pki/der/oids.ts';
import type { LintRule } from './rule.ts';

export const noDuplicateExtensions: LintRule = {
  name: 'no-duplicate-extensions',
  source: 'RFC 5280 §4.2',
  blames: 'ca',
  check: ({ tbs }) => {
    const twice = duplicateExtension(tbs.extensions);
    return twice === undefined ? undefined : `the extension ${oidName(twice)} must not occur twice`;
  },
};
