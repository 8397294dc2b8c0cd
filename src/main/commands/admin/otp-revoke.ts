/** `admin otp revoke`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { confirm } from './confirm.ts';
import { inWords } from './kinds.ts';
import { inPath } from './show.ts';

/** @throws UsageError; CommandError */
export async function run(
  { id, yes }: { readonly id: string; readonly yes: boolean },
  session: Session,
): Promise<number> {
  const path = `/admin/otp/${inPath(id)}`;
  const record = await session.client.record('GET', path);
  await confirm(
    { about: inWords(record, ['id', 'client_id', 'ca', 'status', 'expires_at']), question: 'Revoke this token?', yes },
    session,
  );
  await session.client.record('DELETE', path);
  session.out(`the token ${id} is revoked\n`);
  return EXIT.ok;
}
