/** `admin openapi`. */
import { EXIT } from '../command.ts';
import type { Session } from './session.ts';

/** @throws CommandError */
export async function run(_values: object, { client, out }: Session): Promise<number> {
  out(`${JSON.stringify(await client.record('GET', '/admin/openapi.json'), null, 2)}\n`);
  return EXIT.ok;
}
