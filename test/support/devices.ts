import type { DeviceRow, DeviceStore } from '../../src/store/device-store.ts';

/** The only device with an ID. */
export async function deviceOf(store: Pick<DeviceStore, 'getDevices'>, id: string): Promise<DeviceRow> {
  const [device, ...others] = await store.getDevices(id);
  if (device === undefined || others.length > 0) throw new Error(`${others.length} further devices are ${id}`);
  return device;
}
