/** `admin cert revoke`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { confirm } from './confirm.ts';
import { textAt } from './json.ts';
import { inWords } from './kinds.ts';
import { formatOf, printRecord } from './output.ts';
import { inPath } from './show.ts';
import { readTime } from './times.ts';

export interface WhyValues {
  readonly reason: string | undefined;
  readonly 'invalidity-date': string | undefined;
}

interface CertRevokeValues extends WhyValues {
  readonly serial: string;
  readonly 'ca-label': string | undefined;
  readonly yes: boolean;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: CertRevokeValues, session: Session): Promise<number> {
  formatOf(values);
  const body = whyOf(values, session.now());
  const path = `/admin/certificates/${inPath(values.serial)}`;
  const query = { ca: values['ca-label'] };
  const record = await session.client.record('GET', path, { query });
  const about = inWords(record, ['serial', 'ca', 'subject', 'sans', 'status', 'not_after', 'requester']);
  await confirm({ about, question: 'Revoke this certificate?', yes: values.yes }, session);
  // Of the CA that was shown.
  const ca = textAt(record, 'ca');
  printRecord(await session.client.record('POST', `${path}/revoke`, { query: { ca }, body }), values, session);
  return EXIT.ok;
}

/** @throws UsageError */
export function whyOf({ reason, 'invalidity-date': since }: WhyValues, now: number) {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(since === undefined ? {} : { invalidity_date: readTime('--invalidity-date', since, now, -1) }),
  };
}
