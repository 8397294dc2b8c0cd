/** `admin device import`. */
import { sendRows } from './send-rows.ts';
import type { Session } from './session.ts';

interface DeviceImportValues {
  readonly file: string;
  readonly upsert: boolean;
  readonly out: string | undefined;
}

/** @throws UsageError; CommandError */
export function run({ file, upsert, out }: DeviceImportValues, session: Session): Promise<number> {
  const query = { mode: upsert ? 'upsert' : undefined };
  return sendRows({ path: '/admin/devices', query, file, out, what: 'importing', done: 'devices registered' }, session);
}
