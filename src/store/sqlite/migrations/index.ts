import { initial } from './0001-initial.ts';
import { crl } from './0002-crl.ts';
import { requests } from './0003-requests.ts';
import { cmc } from './0004-cmc.ts';
import { generatedKeys } from './0005-generated-keys.ts';
import { archivedKeys } from './0006-archived-keys.ts';
import { requestsAtCa } from './0007-requests-at-ca.ts';
import { tokenLookup } from './0008-token-lookup.ts';
import { presentedIntermediates } from './0009-presented-intermediates.ts';
import { devices } from './0010-devices.ts';
import { requesters } from './0011-requesters.ts';
import { otpUses } from './0012-otp-uses.ts';
import { requestOverride } from './0013-request-override.ts';
import { revocationChallenges } from './0014-revocation-challenges.ts';
import { certifiedNames } from './0015-certified-names.ts';
import { retention } from './0016-retention.ts';
import { deciders } from './0017-deciders.ts';
import { filters } from './0018-filters.ts';
import { labels } from './0019-labels.ts';
import { search } from './0020-search.ts';
import { sessions } from './0021-sessions.ts';
import { statistics } from './0022-statistics.ts';
import { countedRecords } from './0023-counted-records.ts';
import { recordsIndexedBehind } from './0024-records-indexed-behind.ts';
import { crlEntries } from './0025-crl-entries.ts';
import { approvals } from './0026-approvals.ts';

/** SQL scripts in order; the n-th (from 1) takes a database to version n. Never change one that was released. */
export const MIGRATIONS: readonly string[] = [
  initial,
  crl,
  requests,
  cmc,
  generatedKeys,
  archivedKeys,
  requestsAtCa,
  tokenLookup,
  presentedIntermediates,
  devices,
  requesters,
  otpUses,
  requestOverride,
  revocationChallenges,
  certifiedNames,
  retention,
  deciders,
  filters,
  labels,
  search,
  sessions,
  statistics,
  countedRecords,
  recordsIndexedBehind,
  crlEntries,
  approvals,
];
