/** `admin events`: server-sent events, each on a line. */
import { setTimeout as pause } from 'node:timers/promises';
import { CommandError, EXIT } from '../command.ts';
import { printable } from '../text-table.ts';
import { asRecord } from './json.ts';
import { cell } from './kinds.ts';
import type { Session } from './session.ts';

/** Milliseconds before it is tried again. */
const PAUSE = 3000;
const SHOWN = ['time', 'type', 'outcome', 'subject', 'ca', 'detail'];

/** Goes on while the server is away; ends when it refuses. @throws CommandError */
export async function run({ json }: { readonly json: boolean }, session: Session): Promise<number> {
  const { client, out, err } = session;
  let last: string | undefined;
  for (;;) {
    try {
      const headers = last === undefined ? {} : { 'last-event-id': last };
      const answer = await client.open('GET', '/admin/events', { accept: 'text/event-stream', headers });
      for await (const line of client.lines(answer)) {
        const [, field, text = ''] = /^(id|data): ?(.*?)\r?$/.exec(line) ?? [];
        if (field === 'id') last = text;
        const record = field === 'data' ? asRecord(text) : undefined;
        if (record === undefined) continue;
        out(json ? `${text}\n` : `${SHOWN.map((name) => printable(cell(record[name]))).join('  ')}\n`);
        await session.drained?.();
      }
      err('the server ended the stream; listening again\n');
    } catch (error) {
      if (!(error instanceof CommandError) || error.exitCode !== EXIT.unavailable) throw error;
      err(`${error.message}; listening again\n`);
    }
    await pause(PAUSE);
  }
}
