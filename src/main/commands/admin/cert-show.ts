/** `admin cert show`. */
import { CommandError, EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { textAt } from './json.ts';
import { formatOf, printRecord } from './output.ts';
import { inPath } from './show.ts';

interface CertShowValues {
  readonly serial: string;
  readonly 'ca-label': string | undefined;
  readonly pem: boolean;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: CertShowValues, session: Session): Promise<number> {
  formatOf(values);
  const path = `/admin/certificates/${inPath(values.serial)}`;
  const record = await session.client.record('GET', path, { query: { ca: values['ca-label'] } });
  if (!values.pem) printRecord(record, values, session);
  else {
    const pem = textAt(record, 'pem');
    if (pem === '')
      throw new CommandError('the store knows this certificate from the audit log alone, without its PEM');
    session.out(`${pem.trimEnd()}\n`);
  }
  return EXIT.ok;
}
