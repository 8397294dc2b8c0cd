/** `estuary admin overview|statistics|history|configuration|events`. */
import { setTimeout as pause } from 'node:timers/promises';
import { CommandError, type Entry, EXIT, time, value, type Values } from '../command.ts';
import { printable } from '../text-table.ts';
import { adminCommand, FORMATS, queryOf, recordCommand, type Session } from './admin-command.ts';
import { asRecord, recordsAt } from './json.ts';
import { cell, csvOf, formatOf, kindOf, printRecord, tableOf } from './output.ts';

const seeing = ['admin', 'ra', 'auditor', 'operator'];

const PERIOD = {
  since: time('from this time on, or the last period, such as 7d', -1),
  until: time('up to this time', -1),
  'ca-label': value('LABEL', "a CA's label"),
};
const STATISTICS = { ...PERIOD, by: value('INTERVAL', 'hour (the default) or day', ['hour', 'day']), ...FORMATS };

export const OVERVIEW_COMMANDS: readonly Entry[] = [
  recordCommand('overview', 'Show the state of the service. Parts that your roles do not include are left out.', {
    call: 'GET /admin/overview',
    roles: seeing,
    options: {},
  }),
  adminCommand('statistics', 'Show issuance, renewals and rejections over time.', {
    options: STATISTICS,
    run: statistics,
    calls: ['GET /admin/statistics'],
    roles: seeing,
  }),
  recordCommand('history', 'Show everything about a device, a requester or a request.', {
    call: 'GET /admin/history',
    roles: ['admin', 'ra', 'auditor'],
    options: {
      device: value('ID', 'ID of a device, also of a deleted one'),
      requester: value('NAME', 'the requester, as in certificates'),
      'request-id': value('ID', 'ID of a request'),
    },
  }),
  recordCommand('configuration', 'Show the configuration in force, without its secrets.', {
    call: 'GET /admin/configuration',
    roles: ['admin', 'operator'],
    options: {},
  }),
  adminCommand('events', 'Follow the audit records until interrupted.', {
    options: { json: FORMATS.json },
    run: follow,
    calls: ['GET /admin/events'],
    roles: seeing,
  }),
];

async function statistics(values: Values<typeof STATISTICS>, session: Session): Promise<number> {
  const format = formatOf(values);
  const query = { ...queryOf(PERIOD, values, session.now()), interval: values.by };
  const record = await session.client.record('GET', '/admin/statistics', { query });
  const items = recordsAt(record, 'items');
  if (format === 'json') printRecord(record, values, session);
  else session.out(format === 'csv' ? csvOf(items) : tableOf(kindOf(items), items, session));
  return EXIT.ok;
}

/** Milliseconds before a retry. */
const PAUSE = 3000;
const SHOWN = ['time', 'type', 'outcome', 'subject', 'ca', 'detail'];

/**
 * Prints server-sent events, one per line. Continues while the server is down; ends if it rejects the call. @throws
 * CommandError
 */
async function follow({ json }: { readonly json: boolean }, session: Session): Promise<number> {
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
      err('the server ended the stream. Reconnecting.\n');
    } catch (error) {
      if (!(error instanceof CommandError) || error.exitCode !== EXIT.unavailable) throw error;
      err(`${error.message}. Reconnecting.\n`);
    }
    await pause(PAUSE);
  }
}
