/** The drivers, one line each. The configuration and everything else know a driver from here only. */
import type { CaTable } from '../config/schema/label.ts';
import { acmeDriver } from './acme/index.ts';
import { commandDriver } from './command/index.ts';
import type { DriverDefinition } from './driver.ts';
import { dogtagDriver } from './dogtag/index.ts';
import { estDriver } from './est/index.ts';
import { fileDriver } from './local/index.ts';
import { pkcs11Driver } from './pkcs11/index.ts';

export const DRIVERS = [
  fileDriver, //
  pkcs11Driver,
  dogtagDriver,
  estDriver,
  acmeDriver,
  commandDriver,
] as const;

/** @throws TypeError for an unknown driver, which the configuration refuses */
export function driverOf({ driver }: Pick<CaTable, 'driver'>): DriverDefinition {
  const found: DriverDefinition | undefined = DRIVERS.find(({ name }) => name === driver);
  if (found === undefined) throw new TypeError(`no driver "${driver}"`);
  return found;
}

/** Prepares every driver for a reload. */
export function beforeReload(): void {
  const drivers: readonly Pick<DriverDefinition, 'reloading'>[] = DRIVERS;
  for (const { reloading } of drivers) reloading?.();
}
