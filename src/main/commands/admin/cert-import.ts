/** `admin cert import`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { readInput } from './connection.ts';
import { formatOf, printRecord } from './output.ts';

interface CertImportValues {
  readonly file: string;
  readonly 'ca-label': string;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: CertImportValues, session: Session): Promise<number> {
  formatOf(values);
  const body = { pem: await readInput('FILE', values.file), ca: values['ca-label'] };
  printRecord(await session.client.record('POST', '/admin/certificates', { body }), values, session);
  return EXIT.ok;
}
