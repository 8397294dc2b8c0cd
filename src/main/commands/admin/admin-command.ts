/** Defines commands that call the admin API: their options, their calls and the required roles. */
import {
  command,
  type Command,
  type CommandContext,
  CommandError,
  EXIT,
  flag,
  type Options,
  type Run,
  UsageError,
  type Values,
} from '../command.ts';
import { AdminClient, type Method, type Query } from './client.ts';
import { CONNECTION, readConnection } from './connection.ts';
import type { JsonRecord } from './json.ts';
import { type FormatValues, printRecord } from './output.ts';

/** Output format; tables by default. */
export const FORMATS = {
  json: flag('print JSON, for programs'),
  csv: flag('print CSV with a header line (RFC 4180)'),
};

/** For irreversible actions. */
export const YES = { yes: flag('do not ask for confirmation; required without a terminal') };

interface Extras {
  /** As in the API description: `GET /admin/otp/{id}`. */
  readonly calls: readonly string[];
  /** Any one suffices (`x-roles`); empty: any authenticated caller. */
  readonly roles: readonly string[];
  readonly about?: string;
}

export interface Session extends CommandContext {
  readonly client: AdminClient;
}

/** @param run resolves with the exit code; throws UsageError or CommandError */
export function adminCommand<const O extends Options>(
  name: string,
  summary: string,
  options: O,
  run: (values: Values<NoInfer<O>>, session: Session) => Promise<number>,
  { calls, roles, about }: Extras,
): Command {
  const rights = roles.length === 0 ? [] : [`Needs the role ${roles.join(' or ')}.`];
  const connected: Run<Values<O & typeof CONNECTION>> = async (values, context) => {
    const client = new AdminClient(await readConnection(values, context), roles);
    try {
      return await run(values, { ...context, client });
    } finally {
      client.close();
    }
  };
  return command<O & typeof CONNECTION>(
    name,
    summary,
    { ...options, ...CONNECTION },
    () => Promise.resolve(connected),
    { about: [...(about === undefined ? [] : [about]), ...rights].join(' '), misuse: EXIT.refused, calls, roles },
  );
}

interface RecordCall {
  readonly method?: Method;
  readonly path: string;
  readonly query?: Query;
  readonly body?: JsonRecord;
}

/** A command that prints the record in a call's response. @param callOf may throw UsageError */
export function records<V extends FormatValues>(callOf: (values: V, now: number) => RecordCall) {
  return async (values: V, session: Session): Promise<number> => {
    const { method = 'GET', path, ...call } = callOf(values, session.now());
    printRecord(await session.client.record(method, path, call), values, session);
    return EXIT.ok;
  };
}

/**
 * @param about text above the question
 * @throws UsageError without a terminal and --yes; CommandError if the answer is no
 */
export async function confirm(
  { about = '', question, yes }: { readonly about?: string; readonly question: string; readonly yes: boolean },
  { terminal, err }: Pick<CommandContext, 'terminal' | 'err'>,
): Promise<void> {
  if (yes) return;
  if (terminal?.ask === undefined)
    throw new UsageError('this cannot be undone. Pass --yes to confirm, because there is no terminal to ask');
  err(about);
  const answer = await terminal.ask(`${question} [y/N] `);
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new CommandError('not confirmed: nothing was changed');
}
