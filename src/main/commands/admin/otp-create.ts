/** `admin otp create`: a one-time password, and how a device enrols with it. */
import { resolve } from 'node:path';
import { readyLines, type Enrolment } from '../../../ready-lines.ts';
import { EXIT, type CommandContext } from '../command.ts';
import { estUrlOf } from './est-url.ts';
import { textAt } from './json.ts';
import { formatOf, printRecord } from './output.ts';
import type { Session } from './session.ts';
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
  const anchors = values['est-ca'] ?? session.client.connection.files.ca;
  const enrolment = {
    est: est.url,
    label: ca,
    clientId: client_id,
    token: textAt(record, 'token'),
    anchors: anchors === undefined ? undefined : resolve(anchors),
  };
  if (format === 'table') {
    printRecord(record, values, session);
    const { client, curl } = readyLines(enrolment);
    session.out(`\nwith Estuary:\n\n${client}\n\nwith curl and openssl:\n\n${curl}\n`);
    if (est.isGuessed)
      session.err(
        `\nThe address of the EST listener is a guess (${est.url}): --est-url, ESTUARY_EST_URL or est_url of a profile says it.\n`,
      );
  } else printRecord(record, values, session);
  if (values.qr) await printQr(enrolment, format === 'table' ? session.out : session.err);
  return EXIT.ok;
}

async function printQr(enrolment: Enrolment, out: CommandContext['err']): Promise<void> {
  const { enrolmentQr } = await import('./qr.ts');
  out(`\n${enrolmentQr(enrolment)}`);
}
