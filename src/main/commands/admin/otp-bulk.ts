/** `admin otp bulk`: tokens for the rows of a file. */
import type { Session } from './session.ts';
import { sendRows } from './send-rows.ts';

interface OtpBulkValues {
  readonly file: string;
  readonly out: string | undefined;
}

/** @throws UsageError; CommandError */
export function run({ file, out }: OtpBulkValues, session: Session): Promise<number> {
  return sendRows({ path: '/admin/otp/bulk', file, out, what: 'making tokens', done: 'tokens made' }, session);
}
