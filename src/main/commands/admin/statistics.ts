/** `admin statistics`. */
import { EXIT } from '../command.ts';
import { recordsAt } from './json.ts';
import { kindOf } from './kinds.ts';
import { csvOf, formatOf, printRecord, tableOf } from './output.ts';
import type { Session } from './session.ts';
import { readTime } from './times.ts';

interface StatisticsValues {
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly by: string | undefined;
  readonly 'ca-label': string | undefined;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: StatisticsValues, session: Session): Promise<number> {
  const format = formatOf(values);
  const time = (option: string, text: string | undefined): string | undefined =>
    text === undefined ? undefined : readTime(option, text, session.now(), -1);
  const query = {
    since: time('--since', values.since),
    until: time('--until', values.until),
    interval: values.by,
    ca: values['ca-label'],
  };
  const record = await session.client.record('GET', '/admin/statistics', { query });
  const items = recordsAt(record, 'items');
  if (format === 'json') printRecord(record, values, session);
  else session.out(format === 'csv' ? csvOf(items) : tableOf(kindOf(items), items, session));
  return EXIT.ok;
}
