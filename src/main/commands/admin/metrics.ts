/** `admin metrics`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';

/** @throws CommandError */
export async function run(_values: object, { client, out }: Session): Promise<number> {
  out(await client.text('GET', '/metrics', { accept: 'text/plain' }));
  return EXIT.ok;
}
