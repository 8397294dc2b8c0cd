/** `admin status`: alive, ready, and who is calling. */
import { CommandError, EXIT } from '../command.ts';
import { lookOf, painted, printable } from '../text-table.ts';
import type { Session } from './session.ts';
import { cell, colourOf } from './kinds.ts';
import { isRecord, textAt, type JsonRecord } from './json.ts';

/** @throws CommandError: nobody answers */
export async function run({ json }: { readonly json: boolean }, session: Session): Promise<number> {
  const { client, out } = session;
  const alive = await client.record('GET', '/healthz');
  const ready = await readiness(session);
  const caller = client.connection.credential === undefined ? undefined : await client.record('GET', '/admin/session');
  if (json) {
    const answer = { alive: alive['status'] === 'ok', ...ready, caller: caller ?? null };
    out(`${JSON.stringify(answer, null, 2)}\n`);
  } else {
    const look = lookOf(session);
    const line = (name: string, text: string): void =>
      out(`${printable(name).padEnd(12)}  ${painted(printable(text), colourOf(text), look)}\n`);
    line('server', client.connection.origin);
    line('status', textAt(ready, 'status'));
    for (const [part, health] of Object.entries(isRecord(ready['parts']) ? ready['parts'] : {}))
      line(part, cell(health));
    if (ready['message'] !== undefined) line('why', cell(ready['message']));
    if (caller !== undefined) {
      line('caller', textAt(caller, 'subject'));
      line('roles', cell(caller['roles']));
    }
  }
  return ready['status'] === 'down' ? EXIT.unavailable : EXIT.ok;
}

async function readiness({ client }: Session): Promise<JsonRecord> {
  try {
    return await client.record('GET', '/readyz');
  } catch (error) {
    if (!(error instanceof CommandError) || !error.message.includes('NOT_READY')) throw error;
    return { status: 'down', parts: {}, message: error.message };
  }
}
