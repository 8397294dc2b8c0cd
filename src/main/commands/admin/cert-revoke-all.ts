/** `admin cert revoke-all`: counted first, and asked; then so many and no others. */
import { CommandError, EXIT, UsageError } from '../command.ts';
import { progress } from '../progress.ts';
import type { Session } from './session.ts';
import { CERTIFICATE_FILTERS, CERTIFICATE_TIMES } from './certificate-filters.ts';
import { whyOf, type WhyValues } from './cert-revoke.ts';
import { confirm } from './confirm.ts';
import { textAt } from './json.ts';
import { readFilters } from './list.ts';
import { readCount } from './times.ts';

interface CertRevokeAllValues extends WhyValues {
  readonly status: string | undefined;
  readonly count: string | undefined;
  readonly 'dry-run': boolean;
  readonly yes: boolean;
}

const PATH = '/admin/certificates/revoke';

/** @throws UsageError; CommandError: what was revoked before stays so */
export async function run(values: CertRevokeAllValues, session: Session): Promise<number> {
  const { client, out } = session;
  const meant = readCount('--count', values.count, 0);
  const why = whyOf(values, session.now());
  const filter = readFilters({ filters: CERTIFICATE_FILTERS, times: CERTIFICATE_TIMES }, { ...values }, session.now());
  if (Object.keys(filter).every((name) => name === 'status'))
    throw new UsageError('which certificates? A filter beside --status is missing: it would be every one');
  const count = Number(textAt(await client.record('POST', PATH, { body: { filter, dry_run: true } }), 'count'));
  out(`the filters find ${count} certificates\n`);
  if (meant !== undefined && meant !== count) throw new CommandError(`--count says ${meant}: nothing was revoked`);
  if (values['dry-run'] || count === 0) return EXIT.ok;
  await confirm({ question: `Revoke these ${count} certificates?`, yes: values.yes }, session);
  const shown = progress(session, { what: 'revoking', unit: 'certificates', total: count });
  let [left, revoked] = [count, 0];
  try {
    while (left > 0) {
      const result = await client.record('POST', PATH, { body: { filter, ...why, count: left } });
      const now = Number(textAt(result, 'revoked'));
      revoked += now;
      left = Number(textAt(result, 'remaining'));
      shown.update(revoked);
      if (now === 0) break;
    }
  } finally {
    shown.end();
    out(`${revoked} revoked\n`);
  }
  return left === 0 ? EXIT.ok : EXIT.failed;
}
