import type { AuditEvent } from '../audit/event.ts';

/** Where the delivery to a receiver is: the last audit record of each node's chain that is done. */
export interface NotificationStore {
  /** By node. A driver with one chain has the node ''. */
  notificationPlaces(name: string): Promise<ReadonlyMap<string, number>>;
  /** The chains of audit records, with their newest record. */
  auditChains(): Promise<ReadonlyMap<string, number>>;
  /** Sets places that do not exist yet. */
  beginNotification(name: string, places: ReadonlyMap<string, number>): Promise<void>;
  advanceNotification(name: string, node: string, seq: number, events: readonly AuditEvent[]): Promise<void>;
}
