import type { FastifyRequest } from 'fastify';
import type { AuditEvent, AuditType } from '../../audit/event.ts';
import { conflict, type EstuaryError } from '../../errors.ts';
import type { DeviceChange, DeviceRow } from '../../store/device-store.ts';
import { actor } from './access.ts';

/** 409, or what a row of many is answered. */
export const deviceExists = (): EstuaryError =>
  conflict('DEVICE_EXISTS', 'there is a device with this id (mode=upsert changes it)');

/** The given fields, for the audit log; a restore reads `enabled` from it. */
export const changedFields = ({ enabled, ...others }: DeviceChange): string =>
  [...(enabled === undefined ? [] : [`enabled ${enabled}`]), ...Object.keys(others)].join(', ');

/** What the audit log says of a change of a device. */
export function deviceEvent(
  request: FastifyRequest,
  type: Extract<AuditType, `device.${string}`>,
  { id, ca }: Pick<DeviceRow, 'id' | 'ca'>,
  what = '',
): AuditEvent {
  return {
    type,
    outcome: 'success',
    ...actor(request),
    ...(ca === null ? {} : { ca }),
    detail: `device ${id}${what === '' ? '' : `: ${what}`}`,
  };
}
