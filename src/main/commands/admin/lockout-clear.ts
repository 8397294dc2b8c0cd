/** `admin lockout clear`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';
import { inPath } from './show.ts';

/** @throws CommandError */
export async function run({ lockout }: { readonly lockout: string }, { client, out }: Session): Promise<number> {
  await client.record('DELETE', `/admin/lockouts/${inPath(lockout)}`);
  out(`the lockout of ${lockout} is ended\n`);
  return EXIT.ok;
}
