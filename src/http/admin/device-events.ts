import type { FastifyRequest } from 'fastify';
import type { AuditEvent, AuditType } from '../../audit/event.ts';
import { conflict, type EstuaryError } from '../../errors.ts';
import type { DeviceRow } from '../../store/device-store.ts';
import { actor } from './access.ts';

/** 409, or what a row of many is answered. */
export const deviceExists = (): EstuaryError =>
  conflict('DEVICE_EXISTS', 'there is a device with this id (mode=upsert replaces it)');

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
