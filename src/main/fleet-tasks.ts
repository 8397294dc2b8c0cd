/** What a node does in the background for the states of the fleet. */
import { setTimeout as delay } from 'node:timers/promises';
import { reportOverdue } from '../administration/renewals.ts';
import { validatePresented } from '../auth/mtls/mtls.ts';
import { checkNotRevokedHere } from '../auth/mtls/revocation-lists.ts';
import type { PresentedCertificates } from '../auth/mtls/presented-certificates.ts';
import { holderOf } from '../auth/certificate-holder.ts';
import { isUnauthenticated } from '../errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { UseRecorder } from '../fleet/use-recorder.ts';
import type { Logger } from '../log.ts';
import type { CertificateStore } from '../store/certificate-store.ts';
import type { Store } from '../store/store.ts';
import type { LiveSettings } from './live-settings.ts';
import { type Part, recurring, reporting } from './part.ts';

/** Milliseconds between writes of what was seen, and between derivations. */
const [FLUSH, DERIVE] = [5000, 2000];
/** Milliseconds of work before the next pause, so that requests do not wait, and before a stop. */
const [TURN, LAST] = [20, 2000];

interface Sources {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly recorder: UseRecorder;
  readonly isOnDuty: () => boolean;
  readonly now: () => number;
  readonly log: Pick<Logger, 'error'>;
}

export function fleetTasks({ store, fleet, recorder, isOnDuty, now, log }: Sources): Part[] {
  const failed = reporting(log, 'cannot derive the states of the fleet');
  const flush = (all = false): Promise<void> =>
    recorder.flush(all).catch(reporting(log, 'cannot record the use of certificates'));
  const derive = async ({ stopped }: { readonly stopped: AbortSignal }): Promise<void> => {
    while (isOnDuty() && !stopped.aborted && !(await fleet.catchUp(TURN))) await delay(TURN);
    if (!isOnDuty() || stopped.aborted) return;
    await fleet.report();
    await reportOverdue(store, fleet.campaigns, now());
  };
  let isStarted = false;
  return [
    {
      start: () => void (isStarted = true),
      stop: async () => {
        if (!isStarted) return;
        await flush(true);
        if (isOnDuty()) await fleet.catchUp(LAST).catch(failed);
      },
    },
    recurring(FLUSH, () => flush()),
    recurring(DERIVE, (run) => derive(run).catch(failed)),
  ];
}

/** Whether a certificate would authenticate, if the operation had required it. */
export async function isValidClient(
  live: LiveSettings,
  store: Pick<CertificateStore, 'findRevoked'>,
  certificates: PresentedCertificates,
  now: number,
): Promise<boolean> {
  try {
    await checkNotRevokedHere(store, holderOf(await validatePresented(live.clientTrust, certificates, now)));
    return true;
  } catch (error) {
    if (isUnauthenticated(error)) return false;
    throw error;
  }
}
