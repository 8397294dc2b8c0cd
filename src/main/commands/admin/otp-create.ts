/** `admin otp create`: a one-time password, and how a device enrols with it. */
import { EXIT, type CommandContext } from '../command.ts';
import { textAt } from './json.ts';
import { formatOf, printRecord } from './output.ts';
import type { Session } from './session.ts';
import { enrolmentLines, estUrlOf, type Enrolment } from './enrolment-lines.ts';
import { readCount, readTime } from './times.ts';

interface OtpCreateValues {
  readonly 'client-id': string;
  readonly 'max-uses': string | undefined;
  readonly 'expires-at': string | undefined;
  readonly 'ca-label': string | undefined;
  readonly 'est-url': string | undefined;
  readonly 'est-ca': string | undefined;
  readonly qr: boolean;
  readonly json: boolean;
  readonly csv: boolean;
}

/** @throws UsageError; CommandError */
export async function run(values: OtpCreateValues, session: Session): Promise<number> {
  const format = formatOf(values);
  const { 'client-id': client_id, 'ca-label': ca } = values;
  const max_uses = readCount('--max-uses', values['max-uses']);
  const ends = values['expires-at'];
  const est = estUrlOf(values['est-url'], session.client.connection);
  const record = await session.client.record('POST', '/admin/otp', {
    body: {
      client_id,
      ...(max_uses === undefined ? {} : { max_uses }),
      ...(ends === undefined ? {} : { expires_at: readTime('--expires-at', ends, session.now(), 1) }),
      ...(ca === undefined ? {} : { ca }),
    },
  });
  const enrolment = {
    est: est.url,
    label: ca,
    clientId: client_id,
    token: textAt(record, 'token'),
    anchors: values['est-ca'] ?? session.client.connection.files.ca,
  };
  if (format === 'table') {
    printRecord(record, values, session);
    for (const [head, text] of enrolmentLines(enrolment)) session.out(`\n${head}:\n\n${text}\n`);
    if (est.isGuessed)
      session.err(
        `\nThe address of the EST listener is a guess (${est.url}): --est-url, ESTUARY_EST_URL or est_url of a profile says it.\n`,
      );
  } else printRecord(record, values, session);
  if (values.qr) await printQr(enrolment, format === 'table' ? session.out : session.err);
  return EXIT.ok;
}

async function printQr(enrolment: Enrolment, out: CommandContext['out']): Promise<void> {
  const { enrolmentQr } = await import('./qr.ts');
  out(`\n${enrolmentQr(enrolment)}`);
}
