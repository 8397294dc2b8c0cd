/** Concurrent activities of devices, administrators, relying parties and strangers. */
import { approving, looking, reloading, revoking } from './administrators.ts';
import { enrolling, renewing } from './devices.ts';
import type { Activity } from './load.ts';
import { relyingParty } from './relying-party.ts';
import { dawdling, garbage, guessing } from './strangers.ts';

export const ACTIVITIES: readonly Activity[] = [
  enrolling,
  renewing,
  guessing,
  garbage,
  dawdling,
  revoking,
  approving,
  reloading,
  looking,
  relyingParty,
];
