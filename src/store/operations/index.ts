/** The operations common to both drivers. */
import { certificateReads, certificateWrites } from './certificates.ts';
import { cmcReads, cmcWrites } from './cmc.ts';
import { crlReads, crlWrites } from './crl.ts';
import { deviceReads, deviceWrites } from './devices.ts';
import { intermediateReads, intermediateWrites } from './intermediates.ts';
import { issuanceReads, issuanceWrites } from './issuance.ts';
import { lockoutReads, lockoutWrites } from './lockout.ts';
import { notificationReads, notificationWrites } from './notifications.ts';
import { otpReads, otpWrites } from './otp.ts';
import type { Database } from './port.ts';
import { remoteRequestReads, remoteRequestWrites } from './remote-requests.ts';
import { requestReads, requestWrites } from './requests.ts';
import { renewalReads, renewalWrites } from './renewals.ts';
import { retentionReads, retentionWrites } from './retention.ts';
import { sessionReads, sessionWrites } from './sessions.ts';
import { statisticsReads } from './statistics.ts';

export function commonReads(db: Database) {
  return {
    ...otpReads(db),
    ...lockoutReads(db),
    ...issuanceReads(db),
    ...certificateReads(db),
    ...deviceReads(db),
    ...crlReads(db),
    ...requestReads(db),
    ...remoteRequestReads(db),
    ...cmcReads(db),
    ...intermediateReads(db),
    ...sessionReads(db),
    ...retentionReads(db),
    ...renewalReads(db),
    ...notificationReads(db),
    ...statisticsReads(db),
  };
}

/** @param ofDead condition on a CMC message's instance without a living node */
export function commonWrites(db: Database, ofDead: string) {
  return {
    ...otpWrites(db),
    ...lockoutWrites(db),
    ...issuanceWrites(db),
    ...certificateWrites(db),
    ...deviceWrites(db),
    ...crlWrites(db),
    ...requestWrites(db),
    ...remoteRequestWrites(db),
    ...cmcWrites(db, ofDead),
    ...intermediateWrites(db),
    ...sessionWrites(db),
    ...retentionWrites(db),
    ...renewalWrites(db),
    ...notificationWrites(db),
  };
}
