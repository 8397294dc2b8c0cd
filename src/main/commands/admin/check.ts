/** `admin check`: what would become of a request. */
import { EXIT, UsageError } from '../command.ts';
import type { Session } from './session.ts';
import { readInput } from './connection.ts';
import { textAt } from './json.ts';
import { formatOf, printRecord } from './output.ts';

interface CheckValues {
  readonly csr: string;
  readonly 'ca-label': string;
  readonly 'client-id': string | undefined;
  readonly principal: string | undefined;
  readonly certificate: string | undefined;
  readonly device: string | undefined;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: CheckValues, session: Session): Promise<number> {
  formatOf(values);
  const { csr, certificate, principal, device } = values;
  const given = Object.entries({ client_id: values['client-id'], principal, certificate, device }).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  const [sender] = given;
  if (sender === undefined || given.length > 1)
    throw new UsageError('as whom? One of --client-id, --principal, --certificate and --device');
  const [how, who] = sender;
  const as = { [how]: how === 'certificate' ? await readInput('--certificate', who) : who };
  const body = { ca: values['ca-label'], csr: await readInput('--csr', csr), as };
  const answer = await session.client.record('POST', '/admin/check', { body });
  printRecord(answer, values, session);
  return textAt(answer, 'verdict') === 'refuse' ? EXIT.failed : EXIT.ok;
}
