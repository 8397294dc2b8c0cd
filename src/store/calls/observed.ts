import type { AuditEvent } from '../../audit/event.ts';
import type { Store } from '../store.ts';

type Observed =
  | 'recordCertificate'
  | 'reserve'
  | 'claimRequest'
  | 'queueRequest'
  | 'revokeCertificate'
  | 'releaseCertificate'
  | 'recordFailure'
  | 'audit'
  | 'auditDevice';

/** Reports events of requests, certificates and rejected credentials after their commit, for the metrics. */
export function observed(
  writes: Pick<Store, Observed>,
  onCommit: (events: readonly AuditEvent[]) => void,
): Pick<Store, Observed> {
  return {
    async recordCertificate(...args) {
      await writes.recordCertificate(...args);
      onCommit(args[1]);
    },
    async reserve(...args) {
      const result = await writes.reserve(...args);
      if (result === 'reserved') onCommit(args[1]);
      return result;
    },
    async claimRequest(...args) {
      const result = await writes.claimRequest(...args);
      if (result === 'reserved') onCommit(args[1]);
      return result;
    },
    async queueRequest(...args) {
      const result = await writes.queueRequest(...args);
      if (result === 'queued') onCommit(args[2]);
      return result;
    },
    async revokeCertificate(...args) {
      const result = await writes.revokeCertificate(...args);
      if (result === 'revoked') onCommit(args[1]);
      return result;
    },
    async releaseCertificate(...args) {
      const result = await writes.releaseCertificate(...args);
      if (result === 'released') onCommit(args[2]);
      return result;
    },
    async recordFailure(...args) {
      await writes.recordFailure(...args);
      onCommit(args[3]);
    },
    async audit(events) {
      await writes.audit(events);
      onCommit(events);
    },
    async auditDevice(key, events) {
      await writes.auditDevice(key, events);
      onCommit(events);
    },
  };
}
