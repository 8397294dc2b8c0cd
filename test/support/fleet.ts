import { Fleet, type FleetOptions, type FleetStore } from '../../src/fleet/fleet.ts';

/** The derivation of the holders of a store, which has seen no certificates in use. */
export function fleetOf(store: FleetStore, now: () => number, more: Partial<FleetOptions> = {}): Fleet {
  const flush = () => Promise.resolve();
  return new Fleet({
    ...{ store, cas: { all: [] }, now, flush },
    ...{ authorities: () => [], forgetExpired: () => 90, isOnDuty: () => true, reports: false },
    ...more,
  });
}
