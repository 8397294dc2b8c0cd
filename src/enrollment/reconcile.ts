import { certificateFailed } from '../audit/applied-events.ts';
import type { Logger } from '../log.ts';
import type { CmcStore } from '../store/cmc-store.ts';
import type { IssuanceStore } from '../store/issuance-store.ts';
import type { RequestStore } from '../store/request-store.ts';

/**
 * Closes intents of processes that ended before they recorded a certificate, and so before the response. Returns OTP
 * uses; the serial numbers stay unused. A request in submission to a remote CA waits until its outcome there is known.
 * Another process may take over CMC messages in progress.
 * @param instance the dead process; undefined: all, when a service starts that owns its store
 * @returns how many were closed
 */
export async function reconcile(
  store: CmcStore & IssuanceStore & RequestStore,
  log: Logger,
  instance?: string,
): Promise<number> {
  const open = await store.openReservations(instance);
  for (const reservation of open) {
    const atCa = (await store.getRequest(reservation.request_id))?.decider === 'ca';
    await store.releaseReservation(reservation.request_id, [
      certificateFailed(
        {
          subject: reservation.requester,
          ca: reservation.ca,
          request_id: reservation.request_id,
          ...(reservation.serial === null ? {} : { serial: reservation.serial }),
        },
        atCa
          ? 'the process ended during the submission; the CA may have the request'
          : 'the process ended between the intent and the record; no certificate was delivered',
      ),
    ]);
  }
  // After their reservations: a process that takes over a message must not find an open one.
  await store.releaseCmcMessages(instance);
  if (open.length > 0) log.warn({ reservations: open.length }, 'closed the reservations of an interrupted process');
  return open.length;
}
