/** `admin device delete`. */
import { EXIT } from '../command.ts';
import { confirm } from './confirm.ts';
import { recordsAt } from './json.ts';
import { inWords } from './kinds.ts';
import type { Session } from './session.ts';
import { inPath } from './show.ts';

interface DeviceDeleteValues {
  readonly id: string;
  readonly revoke: boolean;
  readonly yes: boolean;
}

/** @throws UsageError; CommandError */
export async function run({ id, revoke, yes }: DeviceDeleteValues, session: Session): Promise<number> {
  const path = `/admin/devices/${inPath(id)}`;
  const device = await session.client.record('GET', path);
  const valid = recordsAt(device, 'certificates').filter(({ status }) => status === 'valid').length;
  const about = `${inWords(device, ['id', 'ca', 'match', 'note'])}  ${valid} of its latest certificates are valid${revoke ? '; they are revoked' : ''}\n`;
  await confirm({ about, question: 'Forget this device?', yes }, session);
  await session.client.record('DELETE', path, { query: { revoke: revoke ? 'true' : undefined } });
  session.out(`the device ${id} is forgotten${revoke ? ', and its certificates are revoked' : ''}\n`);
  return EXIT.ok;
}
