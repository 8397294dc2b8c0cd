import { oidName } from '../../../pki/der/oids.ts';
import { requireDer } from '../../../pki/der/well-formed.ts';
import { MAX_EXTENSION_LENGTH, reservedExtension } from '../../../pki/x509/reserved-extensions.ts';
import type { LintRule } from './rule.ts';

/** What the profile fixes was checked when it was read, so that a finding is about a copied one. */
export const profileExtensions: LintRule = {
  name: 'profile-extensions',
  source: 'RFC 5280 §4.2, ca.profile.extensions',
  blames: 'request',
  check: ({ tbs }) => {
    for (const { oid, value } of tbs.extensions) {
      if (reservedExtension(oid) !== undefined) continue;
      if (value.length > MAX_EXTENSION_LENGTH)
        return `the extension ${oidName(oid)} must not have more than ${MAX_EXTENSION_LENGTH} octets`;
      requireDer(value, oidName(oid));
    }
    return undefined;
  },
};
